"""Calls of ops that add up many terms, forward or backward; and why all other ops add up nothing.

Each function below returns {name of op: calls}, with operands that make a result or a gradient a sum of `t.n` terms of
about `t.v`, which is in the range of float16.
"""

from functools import partial

import numpy as np

import cygrad as torch

F = torch.nn.functional


class Sum:
    """`function(*operands)`, where all operands of floating-point type are differentiated, unless `grad` is false.

    `units` is how many units in the last place results and gradients may differ from those in float64, `gradient` the
    gradient of each result, and `most` the largest number of terms for which the call takes less than a second.
    """

    def __init__(self, function, *operands, units=2, gradient=None, grad=True, most=10**9):
        self.function, self.operands, self.units = function, operands, units
        self.gradient, self.grad, self.most = gradient, grad, most


class Terms:
    """Operands of `n` terms `v`."""

    def __init__(self, n, v):
        self.n, self.v = n, v
        self.one, self.many = np.ones(1), np.full(n, v)
        self.here = np.zeros(n, np.int64)  # the same place n times
        self.row, self.column = self.many[None], self.many[:, None]
        self.side = int(n**0.5)
        self.square = np.full((self.side, self.side), v)
        self.spread = np.tile([0.0, v], n // 2)
        self.peak = np.eye(1, 2999, 1499)[0]


def ones(*shape):
    return np.ones(shape)


def copies(t):
    n, one, many, here = t.n, t.one, t.many, t.here
    number, mask = np.asarray(1.0), np.ones(t.n, bool)
    return {
        "expand": [Sum(lambda x: x.expand(n), one)],
        "expand_as": [Sum(lambda x, y: x.expand_as(y), one, many)],
        "expand_copy": [Sum(lambda x: torch.expand_copy(x, (n,)), one)],
        "broadcast_to": [Sum(lambda x: x.broadcast_to(n), one)],
        "broadcast_tensors": [Sum(torch.broadcast_tensors, one, many)],
        "meshgrid": [Sum(lambda x, y: torch.meshgrid(x, y, indexing="ij"), one, many)],
        "cartesian_prod": [Sum(torch.cartesian_prod, one, many)],
        "combinations": [Sum(lambda x: torch.combinations(x, 2), ones(300), most=5000)],
        "copy": [Sum(lambda x, y: x.clone().copy_(y), many, one)],
        "fill.Tensor": [Sum(lambda x, y: x.clone().fill_(y), many, number)],
        "repeat": [Sum(lambda x: x.repeat(n), one), Sum(lambda x: x.repeat(n, 2), ones(1, 2))],
        "tile": [Sum(lambda x: x.tile(n), one)],
        "repeat_interleave": [Sum(lambda x: x.repeat_interleave(n), one)],
        "as_strided": [Sum(lambda x: x.as_strided((n,), (0,)), one)],
        "as_strided_copy": [Sum(lambda x: torch.as_strided_copy(x, (n,), (0,)), one)],
        "unfold": [Sum(lambda x: x.unfold(0, 1500, 1), ones(2999), most=5000)],
        "unfold_copy": [Sum(lambda x: torch.unfold_copy(x, 0, 1500, 1), ones(2999), most=5000)],
        "where": [Sum(torch.where, mask, one, many), Sum(torch.where, ~mask, many, one)],
        "masked_fill": [Sum(lambda x, m: x.masked_fill(m, 1.0), one, ~mask)],
        "masked_fill.Tensor": [Sum(lambda x, m, y: x.masked_fill(m, y), many, mask, number)],
        "masked_select": [Sum(lambda x, m: x.masked_select(m), one, mask)],
        "masked_scatter": [Sum(lambda x, m, y: x.masked_scatter(m, y), one, ~mask, many)],
        "index_fill.Tensor": [Sum(lambda x, i, y: x.index_fill(0, i, y), many, np.arange(n), number)],
        "index": [
            Sum(lambda x, i: x[i], one, here),
            Sum(lambda x, i: x[i], ones(1, 3), here),
            Sum(lambda x, i: x[:, i], ones(2, 1), here),
            Sum(lambda x, i: x[i, i], ones(1, 1), here),
        ],
        "index_select": [
            Sum(lambda x, i: x.index_select(0, i), one, here),
            Sum(lambda x, i: x.index_select(1, i), ones(2, 1), here),
        ],
        "gather": [
            Sum(lambda x, i: x.gather(0, i), one, here),
            Sum(lambda x, i: x.gather(1, i), ones(2, 1), np.stack([here, here])),
        ],
        "take_along_dim": [Sum(lambda x, i: torch.take_along_dim(x, i, 0), one, here)],
        "take": [Sum(lambda x, i: x.take(i), one, here)],
    }


def writes(t):
    n, one, many, here = t.n, t.one, t.many, t.here
    rows, both = np.full((n, 3), t.v), np.full((2, n), t.v)
    reductions = ("mean", "amax", "amin") if n > 5000 else ("mean", "amax", "amin", "prod")
    return {
        "index_put": [
            Sum(lambda x, i, y: x.index_put((i,), y, accumulate=True), one, here, many),
            Sum(lambda x, i, y: x.clone().index_put_((i,), y, accumulate=True), ones(1, 1), here, t.column),
            Sum(lambda x, i, y: x.index_put((i, i), y, accumulate=True), ones(1, 1), here, many),
            Sum(lambda x, i, y: x.index_put((i,), y), many, np.arange(n), np.asarray(1.0)),
        ],
        "put": [
            Sum(lambda x, i, y: x.put(i, y, accumulate=True), one, here, many),
            Sum(lambda x, i, y: x.clone().put_(i, y, accumulate=True), one, here, many),
        ],
        "index_add": [
            Sum(lambda x, i, y: x.index_add(0, i, y), one, here, many),
            Sum(lambda x, i, y: x.index_add(1, i, y, alpha=0.5), ones(2, 1), here, both),
            Sum(lambda x, i, y: x.clone().index_add_(0, i, y), ones(1, 3), here, rows),
            Sum(lambda x, i, y: x.clone().index_add_(0, i, y), ones(5 * n, 1), here, t.column),
        ],
        "scatter_add": [
            Sum(lambda x, i, y: x.scatter_add(0, i, y), one, here, many),
            Sum(lambda x, i, y: x.scatter_add(1, i, y), ones(2, 1), np.stack([here, here]), both),
            Sum(lambda x, i, y: x.clone().scatter_add_(0, i, y), one, here, many),
            Sum(lambda x, i, y: x.scatter_add(0, i[:, None].expand(n, 3), y), ones(1, 3), here, rows),
        ],
        "segment_reduce": [
            Sum(lambda y: torch.segment_reduce(y, "sum", lengths=torch.tensor([y.shape[0]], device=y.device)), many)
        ],
        "scatter_reduce.sum": [Sum(lambda x, i, y: x.scatter_reduce(0, i, y, "sum"), one, here, many)],
        "scatter_reduce": [
            Sum(lambda x, i, y, r=r, own=own: x.scatter_reduce(0, i, y, r, include_self=own), one * t.v, here, many)
            for r in reductions
            for own in (True, False)
        ]
        + [Sum(lambda x, i, y: x.clone().scatter_reduce_(0, i, y, "mean"), one, here, many)],
        "index_reduce": [
            Sum(lambda x, i, y, r=r, own=own: x.index_reduce(0, i, y, r, include_self=own), one * t.v, here, many)
            for r in reductions
            for own in (True, False)
        ]
        + [Sum(lambda x, i, y: x.clone().index_reduce_(0, i, y, "mean"), ones(1, 3), here, rows)],
    }


def reductions(t):
    n, one, many, spread = t.n, t.one, t.many, t.spread
    near_one = np.ones(n)
    each = {
        name: [Sum(getattr(torch, name), many, gradient=1.0)]
        for name in ("max", "min", "aminmax", "median", "nanmedian")
    }
    return {
        **each,
        "amax": [Sum(lambda x: x.amax(), many, gradient=1.0), Sum(lambda x: x.amax(0), t.column, gradient=1.0)],
        "amin": [Sum(lambda x: x.amin(), many, gradient=1.0), Sum(lambda x: x.amin(1), t.row, gradient=1.0)],
        "sum": [Sum(torch.sum, many), Sum(torch.sum, t.square.T)],
        "sum.dim": [Sum(lambda x: x.sum(1), t.row), Sum(lambda x: x.sum(0), np.full((n, 3), t.v))],
        "sum_to_size": [Sum(lambda x: x.sum_to_size(1), many)],
        "nansum": [Sum(torch.nansum, many), Sum(lambda x: x.nansum(1), t.row)],
        "mean": [Sum(torch.mean, many)],
        "mean.dim": [Sum(lambda x: x.mean(1), t.row), Sum(lambda x: x.mean(0), np.full((n, 3), t.v))],
        "nanmean": [Sum(torch.nanmean, many, units=3), Sum(lambda x: x.nanmean(1), t.row, units=3)],
        "var": [Sum(lambda x: x.var(), spread), Sum(lambda x: x.var(0), spread, units=3)],
        "std": [Sum(lambda x: x.std(), spread), Sum(lambda x: x.std(0), spread)],
        "var_mean": [Sum(torch.var_mean, spread, grad=False)],
        "std_mean": [Sum(torch.std_mean, spread, grad=False)],
        "cov": [Sum(lambda x: x.cov(), spread[None], units=4)],
        "corrcoef": [Sum(lambda x: x.corrcoef(), np.stack([spread, np.roll(spread, 1)]), units=4, grad=False)],
        "trace": [Sum(torch.trace, ones(1500, 1500), most=5000)],
        "prod": [Sum(torch.prod, near_one)],
        "prod.dim_int": [Sum(lambda x: x.prod(0), near_one)],
        "cumsum": [
            Sum(lambda x: x.cumsum(0), many),
            Sum(lambda x: x.cumsum(1), t.row),
            Sum(lambda x: x.cumsum(0), np.full((n, 3), t.v)),
            Sum(lambda x: x.clone().cumsum_(0), many),
            Sum(lambda x: x.t().cumsum(0), np.full((3, n), t.v)),
        ],
        "cumprod": [Sum(lambda x: x.cumprod(0), near_one), Sum(lambda x: x.clone().cumprod_(0), near_one)],
        "cummax": [Sum(lambda x: x.cummax(0).values, np.eye(1, n)[0])],
        "cummin": [Sum(lambda x: x.cummin(0).values, -np.eye(1, n)[0])],
        "logcumsumexp": [
            Sum(lambda x: x.logcumsumexp(0), np.zeros(n), units=4),
            Sum(lambda x: x.logcumsumexp(1), np.zeros((2, n)), units=4),
        ],
        "logsumexp": [
            Sum(lambda x: x.logsumexp(0), np.zeros(n), grad=False)
        ],  # the gradient divides by the rounded sum
        "cumulative_trapezoid": [Sum(torch.cumulative_trapezoid, many, units=3)],
        "trapezoid": [Sum(torch.trapezoid, many), Sum(lambda x: torch.trapezoid(x, dx=0.5), many)],
        "trapz": [Sum(torch.trapz, many)],
        "linalg_vector_norm": [
            Sum(lambda x, p=p: torch.linalg.vector_norm(x, p), near_one if p == 2 else many, gradient=1.0, units=3)
            for p in (0, 1, 2, 3, float("inf"), -float("inf"))
        ],
        "norm": [Sum(lambda x: x.norm(), many), Sum(lambda x: x.norm(p=1), many)],
        "linalg_norm": [Sum(torch.linalg.norm, many)],
        "dist": [Sum(torch.dist, many, 0 * one)],
        "pairwise_distance": [Sum(F.pairwise_distance, ones(1, n), np.zeros((1, n)), units=4, grad=False)],
        "cdist": [Sum(torch.cdist, ones(1, n), np.zeros((1, n)), grad=False)],
        "histc": [Sum(lambda x: torch.histc(x, 1, 0.0, 1.0), many, grad=False)],
        "cosine_similarity": [
            Sum(lambda x, y: F.cosine_similarity(x, y, 0), near_one, near_one / 2, units=4, grad=False)
        ],
        "normalize": [Sum(lambda x: F.normalize(x, dim=0), near_one, units=4, grad=False)],
        "renorm": [Sum(lambda x: x.renorm(1, 1, t.v), t.column, units=4, grad=False)],
        "bincount": [Sum(torch.bincount, t.here, many, grad=False)],
        "softmax": [Sum(lambda x: x.softmax(0), np.zeros(shape), grad=False) for shape in (n, (n, 3))],
        "log_softmax": [Sum(lambda x: x.log_softmax(0), np.zeros(shape), grad=False) for shape in (n, (n, 3))],
        "softmin": [Sum(lambda x: F.softmin(x, 0), np.zeros(n), grad=False)],
    }


def products(t):
    n, one, many, row, column = t.n, t.one, t.many, t.row, t.column
    near_one, single = np.ones(n), ones(1, 1)
    inner = {name: [Sum(getattr(torch, name), many, near_one)] for name in ("dot", "vdot", "inner")}
    return {
        **inner,
        "mm": [Sum(torch.mm, row, column), Sum(torch.mm, single, row)],
        "bmm": [Sum(torch.bmm, row[None], column[None]), Sum(torch.bmm, ones(1, 1, 1), row[None])],
        "mv": [Sum(torch.mv, row, near_one), Sum(torch.mv, column, one)],
        "outer": [Sum(torch.outer, one, many)],
        "ger": [Sum(torch.ger, one, many)],
        "kron": [Sum(torch.kron, one, many)],
        "matmul": [Sum(torch.matmul, row, near_one), Sum(torch.matmul, single, row)],
        "linear": [
            Sum(F.linear, row, ones(1, n), one),
            Sum(F.linear, column, single, one),
            Sum(F.linear, np.full((n, 1, 1), t.v), ones(2, 1), ones(2)),
        ],
        "einsum": [Sum(lambda x, y: torch.einsum("i,i->", x, y), many, near_one)],
        "tensordot": [Sum(lambda x, y: torch.tensordot(x, y, 1), many, near_one)],
        "chain_matmul": [Sum(torch.chain_matmul, row, ones(n, 1))],
        "linalg_multi_dot": [Sum(lambda x, y: torch.linalg.multi_dot([x, y]), row, ones(n, 1))],
        "linalg_vecdot": [Sum(torch.linalg.vecdot, many, near_one)],
        "addmm": [Sum(torch.addmm, single, row, ones(n, 1)), Sum(torch.addmm, single, column, single)],
        "addmv": [Sum(torch.addmv, one, row, near_one), Sum(torch.addmv, one, column, one)],
        "addr": [Sum(torch.addr, one, one, many)],
        "addbmm": [Sum(torch.addbmm, single, np.full((n, 1, 1), t.v), ones(n, 1, 1))],
        "baddbmm": [
            Sum(torch.baddbmm, ones(1, 1, 1), row[None], ones(1, n, 1)),
            Sum(torch.baddbmm, ones(1, 1, 1), np.full((n, 1, 1), t.v), ones(n, 1, 1)),
        ],
        "bilinear": [
            Sum(F.bilinear, ones(1, n), single, np.full((1, n, 1), t.v), one),
            Sum(F.bilinear, column, ones(n, 1), ones(1, 1, 1), one),
        ],
        "scaled_dot_product_attention": [
            Sum(F.scaled_dot_product_attention, single, ones(n, 1), column, units=4, grad=False),
            Sum(F.scaled_dot_product_attention, ones(n, 1), single, single, units=4),
        ],
        "prelu": [Sum(F.prelu, -many, one / 2), Sum(F.prelu, np.full((1, 1, n), -t.v), one / 2)],
    }


def convolutions(t):
    n, one, square = t.n, t.one, t.square
    line, image, volume = np.full((1, 1, n), t.v), square[None, None], square[None, None, None]
    point, cube = np.full((1, 1, 1), t.v), ones(1, 1, 1, t.side, t.side)
    channels = np.full((1, 4, t.side, t.side), t.v)
    return {
        "convolution": [
            Sum(F.conv1d, line, ones(1, 1, n), one, most=5000),
            Sum(F.conv1d, line, ones(1, 1, 1), one),
        ],
        "conv1d": [
            Sum(F.conv1d, line.reshape(1, n, 1), ones(1, n, 1), one),
            Sum(F.conv1d, line.reshape(n, 1, 1), ones(1, 1, 1), one, most=5000),
            Sum(lambda x, w, b: F.conv1d(x, w, b, padding=1), line, ones(1, 1, 3), one),
            Sum(lambda x, w: F.conv1d(x, w, padding=1, groups=2), np.full((1, 2, n), t.v), ones(2, 1, 3)),
        ],
        "conv2d": [
            Sum(F.conv2d, image, cube[0], one, most=5000),
            Sum(lambda x, w, b: F.conv2d(x, w, b, padding=1), image, ones(2, 1, 3, 3), ones(2)),
            Sum(lambda x, w, b: F.conv2d(x, w, b, padding=1, groups=4), channels, ones(4, 1, 3, 3), ones(4)),
            Sum(F.conv2d, np.full((1, n // 4, 2, 2), t.v), ones(1, n // 4, 2, 2), one),
        ],
        "conv3d": [Sum(F.conv3d, volume, cube, one, most=5000), Sum(F.conv3d, volume, ones(1, 1, 1, 1, 1), one)],
        "conv_transpose1d": [
            Sum(F.conv_transpose1d, line.reshape(1, n, 1), ones(n, 1, 1), one),
            Sum(F.conv_transpose1d, point, ones(1, 1, n), one, most=5000),
            Sum(F.conv_transpose1d, line, ones(1, 1, 3), one),
        ],
        "conv_transpose2d": [Sum(F.conv_transpose2d, image, ones(1, 1, 3, 3), one)],
        "conv_transpose3d": [Sum(F.conv_transpose3d, volume, ones(1, 1, 1, 3, 3), one)],
        "fold": [Sum(lambda x: F.fold(x, (1, 2999), (1, 1500)), ones(1, 1500, 1500), most=5000)],
        "im2col": [Sum(lambda x: F.unfold(x, (1, 1500)), ones(1, 1, 1, 2999), most=5000)],
    }


def windows(t):
    n, side, row, image, volume, peak = t.n, t.side, t.row, t.square[None], t.square[None, None], t.peak
    flat = (1, side, side)
    corner, center = ones(1, 1, 1), np.zeros((1, 1, n, 2))
    return {
        "avg_pool1d": [
            Sum(lambda x: F.avg_pool1d(x, n), row),
            Sum(lambda x: F.avg_pool1d(x, 1500, 1), ones(1, 2999), most=5000),
        ],
        "avg_pool2d": [
            Sum(lambda x: F.avg_pool2d(x, side), image),
            Sum(lambda x: F.avg_pool2d(x, side, divisor_override=1), image),
        ],
        "avg_pool3d": [Sum(lambda x: F.avg_pool3d(x, flat), volume)],
        "adaptive_avg_pool1d": [
            Sum(lambda x: F.adaptive_avg_pool1d(x, 1), row),
            Sum(lambda x: F.adaptive_avg_pool1d(x, n), ones(1, 1)),
        ],
        "adaptive_avg_pool2d": [
            Sum(lambda x: F.adaptive_avg_pool2d(x, 1), image),
            Sum(lambda x: F.adaptive_avg_pool2d(x, side), corner),
        ],
        "adaptive_avg_pool3d": [
            Sum(lambda x: F.adaptive_avg_pool3d(x, 1), volume),
            Sum(lambda x: F.adaptive_avg_pool3d(x, flat), corner[None]),
        ],
        "lp_pool1d": [Sum(lambda x, p=p: F.lp_pool1d(x, p, n), row, units=4) for p in (1, 2)],
        "lp_pool2d": [Sum(lambda x: F.lp_pool2d(x, 2, side), image, units=4)],
        "lp_pool3d": [Sum(lambda x: F.lp_pool3d(x, 2, flat), volume, units=4)],
        "max_pool1d": [Sum(lambda x: F.max_pool1d(x, 1500, 1), peak[None], most=5000)],
        "max_pool2d_with_indices": [Sum(lambda x: F.max_pool2d(x, (1, 1500), 1), peak[None, None], most=5000)],
        "max_pool3d_with_indices": [Sum(lambda x: F.max_pool3d(x, (1, 1, 1500), 1), peak[None, None, None], most=5000)],
        "adaptive_max_pool1d_with_indices": [Sum(lambda x: F.adaptive_max_pool1d(x, n), corner[0])],
        "adaptive_max_pool2d_with_indices": [Sum(lambda x: F.adaptive_max_pool2d(x, side), corner)],
        "adaptive_max_pool3d_with_indices": [Sum(lambda x: F.adaptive_max_pool3d(x, flat), corner[None])],
        "interpolate": [
            Sum(lambda x: F.interpolate(x, size=n, mode="nearest"), corner),
            Sum(lambda x: F.interpolate(x, size=n, mode="linear"), corner, most=5000),
            Sum(lambda x: F.interpolate(x, size=n, mode="linear", align_corners=True), ones(1, 1, 2), most=5000),
            Sum(lambda x: F.interpolate(x, size=(side, side), mode="nearest-exact"), corner[None]),
            Sum(lambda x: F.interpolate(x, size=(side, side), mode="bilinear"), corner[None]),
            Sum(lambda x: F.interpolate(x, size=(side, side), mode="bicubic"), corner[None], units=4),
            Sum(lambda x: F.interpolate(x, size=(1, 1), mode="bilinear", antialias=True), volume),
            Sum(lambda x: F.interpolate(x, size=flat, mode="trilinear"), corner[None, None]),
            Sum(lambda x: F.interpolate(x, size=1, mode="area"), row[None]),
        ],
        "grid_sampler_2d": [
            Sum(lambda x, y, m=m: F.grid_sample(x, y, m, "border", align_corners=True), corner[None], center)
            for m in ("bilinear", "nearest", "bicubic")
        ],
        "grid_sampler_3d": [
            Sum(
                lambda x, y: F.grid_sample(x, y, padding_mode="border", align_corners=True),
                corner[None, None],
                np.zeros((1, 1, 1, n, 3)),
            )
        ],
        "pad.replicate1": [Sum(lambda x: F.pad(x, (n, 0), "replicate"), corner[0])],
        "pad.replicate2": [Sum(lambda x: F.pad(x, (side,) * 4, "replicate"), corner)],
        "pad.replicate3": [Sum(lambda x: F.pad(x, (side, side, side, side, 1, 1), "replicate"), corner[None])],
        "affine_grid_generator": [
            Sum(
                lambda x: F.affine_grid(
                    torch.cat([torch.eye(2).to(x.device, x.dtype)[None], x], 2), (1, 1, side, side), True
                ),
                np.full((1, 2, 1), 4.0),
            )
        ],
        "local_response_norm": [Sum(lambda x: F.local_response_norm(x, n), row.reshape(1, n, 1), units=4, most=5000)],
    }


def layers(t):
    n, one, here = t.n, t.one, t.here
    halves = np.tile([0.0, 1.0], n // 2)
    table, bags = ones(2, 3), ("sum", "mean", "max")
    cells = {
        f"{name}_cell": [
            Sum(
                getattr(torch, f"{name}_cell"),
                np.full((1, n), t.v / n),
                np.zeros((1, 1)),
                ones(gates, n),
                np.zeros((gates, 1)),
                grad=False,
                units=4,
                most=5000,
            )
        ]
        for name, gates in (("rnn_tanh", 1), ("rnn_relu", 1), ("gru", 3))
    }
    return {
        **cells,
        "batch_norm": [
            Sum(lambda x, w, b: F.batch_norm(x, None, None, w, b, True), x, one, one, units=4, grad=grad)
            for x, grad in ((halves[:, None], True), (halves[None, None], False))
        ],
        "instance_norm": [
            Sum(lambda x, w, b: F.instance_norm(x, None, None, w, b), halves[None, None], one, one, units=4, grad=False)
        ],
        "group_norm": [
            Sum(lambda x, w, b: F.group_norm(x, 1, w, b), halves[None, None], one, one, units=4, grad=False)
        ],
        "layer_norm": [
            Sum(lambda x, w, b: F.layer_norm(x, (n,), w, b), halves[None], ones(n), ones(n), units=4),
            Sum(lambda x, w, b: F.layer_norm(x, (2,), w, b), np.tile([0.0, 1.0], (n, 1)), ones(2), ones(2), units=4),
        ],
        "rms_norm": [
            Sum(lambda x, w: F.rms_norm(x, (n,), w), ones(1, n), ones(n), units=4, grad=False),
            Sum(lambda x, w: F.rms_norm(x, (2,), w), ones(n, 2), ones(2), units=4, grad=False),
        ],
        "embedding": [
            Sum(F.embedding, here, table),
            Sum(lambda i, w: F.embedding(i, w, scale_grad_by_freq=True), here, table, gradient=1.0),
        ],
        "embedding_bag": [
            *(Sum(lambda i, w, m=m: F.embedding_bag(i[None], w, mode=m), here, table * t.v) for m in bags),
            *(Sum(lambda i, w, m=m: F.embedding_bag(i[:, None], w, mode=m), here, table, most=5000) for m in bags),
            Sum(
                lambda i, w, p: F.embedding_bag(i[None], w, mode="sum", per_sample_weights=p),
                here,
                table * t.v,
                ones(1, n),
            ),
        ],
    }


def losses(t):
    n, many, here = t.n, t.many, t.here
    half, classes = np.full(n, 0.5), np.zeros((n, 2))
    of_two = {
        name: [
            Sum(partial(getattr(F, name), reduction=r), many / 2, many / 4, gradient=1.0, units=3)
            for r in ("mean", "sum")
        ]
        for name in ("mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss", "poisson_nll_loss")
    }
    of_chances = {
        name: [Sum(getattr(F, name), half, half, gradient=1.0, units=3)]
        for name in ("binary_cross_entropy", "binary_cross_entropy_with_logits", "soft_margin_loss")
    }
    return {
        **of_two,
        **of_chances,
        "kl_div": [Sum(partial(F.kl_div, reduction="sum"), many / 2, many / 4, gradient=1.0, units=3)],
        "hinge_embedding_loss": [Sum(lambda x: F.hinge_embedding_loss(x, torch.ones_like(x)), many, gradient=1.0)],
        "margin_ranking_loss": [
            Sum(lambda x, y: F.margin_ranking_loss(x, y, torch.ones_like(x), 1.0), half, half, gradient=1.0)
        ],
        "gaussian_nll_loss": [
            Sum(lambda x, y: F.gaussian_nll_loss(x, y, torch.ones_like(x)), many, 0 * many, gradient=1.0, units=3)
        ],
        "nll_loss": [
            Sum(F.nll_loss, classes - 1, here, gradient=1.0),
            Sum(F.nll_loss, classes - 1, here, ones(2), gradient=1.0, grad=False),
            Sum(lambda x, i: F.nll_loss(x, i, reduction="sum"), classes - t.v, here, gradient=1.0),
        ],
        "cross_entropy_of_softmax": [
            Sum(F.cross_entropy, classes, here, gradient=1.0, units=3),
            Sum(lambda x, i: F.cross_entropy(x, i, label_smoothing=0.5), classes, here, units=4, grad=False),
            Sum(
                lambda x, i, w: F.cross_entropy(x, i, w, label_smoothing=0.5),
                classes,
                here,
                ones(2),
                units=4,
                grad=False,
            ),
            Sum(F.cross_entropy, classes, classes + 0.5, units=4, grad=False),
        ],
        "multilabel_margin_loss": [Sum(F.multilabel_margin_loss, classes, np.stack([here, here - 1], 1), gradient=1.0)],
        "multi_margin_loss": [Sum(F.multi_margin_loss, classes, here, gradient=1.0)],
        "multilabel_soft_margin_loss": [Sum(F.multilabel_soft_margin_loss, classes, classes, units=4, grad=False)],
        "cosine_embedding_loss": [
            Sum(
                lambda x, y: F.cosine_embedding_loss(x, y, -torch.ones_like(x[:, 0])),
                classes + 1,
                classes + 1,
                units=4,
                grad=False,
            )
        ],
        "triplet_margin_loss": [Sum(F.triplet_margin_loss, classes, classes + 1, classes + 1, units=6, grad=False)],
    }


def cases(n, v):
    """All calls of `n` terms `v`, by name of op."""
    t = Terms(n, v)
    parts = copies, writes, reductions, products, convolutions, windows, layers, losses
    return {name: calls for part in parts for name, calls in part(t).items()}


# Ops of half precision without a call above, by what they do instead of adding up many terms
NO_SUMS = {
    "copies elements, each to one place, and gets each gradient from there": """
    select_backward slice_backward cat stack clone to fill zero reshape.copy pixel_shuffle pixel_unshuffle
    max_unpool2d max_unpool3d scatter.value index_copy index_fill masked_scatter_backward diagonal_backward diag_embed
    block_diag tril triu shift value_selecting_reduction value_selecting_reduction_backward max.dim min.dim flip roll
    rot90 channel_shuffle sort sort.stable topk kthvalue median.dim nanmedian.dim mode constant_pad_nd select_scatter
    slice_scatter diagonal_scatter as_strided_scatter stacked_grids lengthened adjoint alias_copy atleast_1d
    atleast_2d atleast_3d chunk column_stack contiguous cpu detach_copy diag diagflat diagonal_copy dsplit dstack
    fftshift flatten fliplr flipud hsplit hstack ifftshift linalg_diagonal max_unpool1d moveaxis movedim msort narrow
    narrow_copy permute_copy positive ravel real reshape reshape_as resolve_conj resolve_neg row_stack select_copy
    slice_copy split_copy split_with_sizes_copy squeeze_copy swapaxes t_copy tensor_split transpose_copy type_as
    unbind_copy unflatten unsafe_chunk unsafe_split unsafe_split_with_sizes unsqueeze_copy view_as view_copy vsplit
    vstack _neg_view
    """,
    "is computed for each element by itself, or of a few": """
    frexp glu rrelu square float_power linalg_cross cross diff gradient vander linalg_vander pad.reflect1 pad.reflect2
    pad.reflect3 pad.circular
    """,
    "has a result that is no sum, and no gradient": """
    all any count_nonzero nonzero argmax argmin argsort histogram histogramdd searchsorted isin unique
    unique_consecutive bernoulli multinomial poisson binomial allclose argwhere bucketize equal hash_tensor is_conj
    is_neg
    """,
    "is called by an op above, forward or backward": """
    index_backward steps linear_steps resample filter_gradient col2im put_back take_columns add_columns
    grid_neighbourhoods strided_sum strided_gather strided_scatter summed_products softmax_backward_data
    log_softmax_backward_data nll_loss_backward channel_window unit trilinear attention_by_blocks repeat_backward
    both_extrema gram pad_backward unfold_backward
    """,
    "is composed of ops above": """
    adaptive_max_pool2d adaptive_max_pool3d frobenius_norm grid_sampler linalg_matrix_norm linear_cross_entropy
    max_pool1d_with_indices max_pool2d max_pool3d multi_head_attention_forward native_batch_norm native_group_norm
    native_layer_norm pad triplet_margin_with_distance_loss matrix_power scatter _grouped_mm _grouped_mm.ends
    """,
    "is computed from float32 copies of the operands": """
    recurrent_layer gru lstm lstm_cell rnn_relu rnn_tanh lu_unpack linalg_lu_solve lu_solve linalg_matrix_exp
    matrix_exp fractional_max_pool2d_with_indices fractional_max_pool3d_with_indices pdist fft_c2c fft_r2c
    windowed_spectra ctc_loss_backward
    """,
}
