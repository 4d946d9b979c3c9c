"""Batching rules of products, convolutions, normalisations, losses and linear algebra (see batching.py)."""

import numpy as np

from cygrad._core.batches import NoBatchingRule
from cygrad._core.opdef import registry
from cygrad._core.record import apply_n
from cygrad._core.tensor import Tensor
from cygrad._ops.batching import operands, regroup, rule
from cygrad._ops.batching_layers import of_given_statistics
from cygrad._ops.ldl import linalg_ldl_factor_ex, linalg_ldl_solve
from cygrad._ops.least_squares import linalg_lstsq
from cygrad._ops.linear_systems import linalg_solve, linalg_solve_ex
from cygrad._ops.lu import linalg_lu, linalg_lu_factor_ex, lu_unpack, permutation
from cygrad._ops.ranges import arange

NONE, MEAN = 0, 1  # reductions of losses

# -- products of matrices --


def product(call, a, b):
    """`matmul` of two operands."""
    if call.has(a) and not call.has(b) and b.ndim <= 2:
        return call.samples(a) @ b
    if call.has(b) and not call.has(a) and a.ndim == 2 and b.ndim in (1, 2) and b.shape[1:].numel() == 1:
        return (call.samples(b).flatten(1) @ a.transpose(0, 1)).unsqueeze(2)  # the vectors of all as one matrix
    a, b = _as_matrices(call, a, True), _as_matrices(call, b, False)
    ndim = max(a.ndim, b.ndim)
    a, b = (x.view(x.shape[:1] + (1,) * (ndim - x.ndim) + x.shape[1:]) for x in (a, b))
    return a @ b


def _as_matrices(call, x, is_first):
    found = call.near(x)
    return found if x.ndim > 1 else found.unsqueeze(1 if is_first else 2)


@rule("matmul mm bmm mv dot")
def _matmul(call):
    return call.shaped(product(call, *call.inputs[:2]), call.out.shape)


@rule("linear")
def _linear(call):
    bias, x, weight = call.inputs
    found = product(call, x, weight) if call.op.name == "matmul" else None
    if found is None and not call.has(weight) and (bias is None or not call.has(bias)):
        return call.shaped(registry["linear"].entry(call.samples(x), weight, bias), call.out.shape)
    found = _times_transposed(call, x, weight)
    found = call.shaped(found, call.out.shape)
    return found if bias is None else found + call.aligned(bias, call.out.ndim)


def _times_transposed(call, x, weight):
    w = call.near(weight).transpose(-1, -2)
    found = call.near(x)
    rows = found.unsqueeze(1) if x.ndim == 1 else found
    return rows @ w.view(w.shape[:1] + (1,) * (rows.ndim - w.ndim) + w.shape[1:])


@rule("addmm addmv addr addbmm baddbmm")
def _add_product(call):
    t, a, b = call.inputs
    beta, alpha = call.args
    if call.key == "addr":
        found = call.near(a).unsqueeze(2) * call.near(b).unsqueeze(1)
    else:
        found = product(call, a, b)
        found = found.flatten(1) if call.key == "addmv" else found.sum(1) if call.key == "addbmm" else found
    found = found if alpha == 1 else found * alpha
    if beta == 0:
        return call.shaped(found.expand(call.size, *found.shape[1:]), call.out.shape)
    return call.aligned(t, call.out.ndim) * beta + found


@rule("attention_by_blocks")
def _attention(call):
    mask, _, scale, is_causal, _ = call.args
    if mask is not None:
        raise NoBatchingRule(call.key)
    return registry[call.key].entry(*(call.full(t) for t in call.inputs), None, scale, is_causal)


# -- convolutions --


@rule("convolution")
def _convolution(call):
    x, weight, bias = call.inputs
    if x.ndim != call.out.ndim or x.ndim != weight.ndim:
        raise NoBatchingRule("convolution")
    if not any(call.has(t) for t in (weight, bias)):
        found = apply_n(call.op, (call.samples(x).flatten(0, 1), weight, bias), call.args)
        return call.shaped(found, call.out.shape)
    # samples side by side, as groups of channels
    images, filters = call.full(x).transpose(0, 1).flatten(1, 2), call.full(weight).flatten(0, 1)
    found = apply_n(call.op, (images, filters, None), (*call.args[:5], call.args[5] * call.size, *call.args[6:]))
    n, channels = call.out.shape[:2]
    found = regroup(found, (n, call.size, channels, *call.out.shape[2:])).transpose(0, 1)
    if bias is None:
        return found
    b = call.near(bias)
    return found + b.view(b.shape[0], 1, channels, *(1,) * (call.out.ndim - 2))


@rule("filter_gradient")
def _filter_gradient(call):
    x, g = (call.full(t).transpose(0, 1).flatten(1, 2) for t in call.inputs)
    args = (*call.args[:4], call.args[4] * call.size, *call.args[5:])
    return call.shaped(apply_n(call.op, (x, g), args), call.out.shape)


@rule(
    "max_pool2d_with_indices max_pool3d_with_indices adaptive_max_pool2d_with_indices adaptive_max_pool3d_with_indices"
)
def _max_pool(call):
    _, dims, how = call.needed_args()
    images = call.samples(call.inputs[0])
    found = registry[call.key].entry(images.flatten(0, -dims - 2), *how)
    return [call.shaped(part, out.shape) for part, out in zip(found, call.outs, strict=False)]


# -- normalisations --


@rule("layer_norm rms_norm")
def _layer_norm(call):
    x, *parameters = call.inputs
    eps, shape = call.args[0].eps, call.args[4]
    entry = registry[call.key].entry
    if not any(call.has(p) for p in parameters):
        return entry(call.samples(x), shape, *parameters, eps)
    found = entry(call.full(x), shape, eps=eps)
    weight, bias = (*parameters, None)[:2]
    found = found if weight is None else found * call.aligned(weight, x.ndim)
    return found if bias is None else found + call.aligned(bias, x.ndim)


@rule("group_norm instance_norm")
def _group_norm(call):
    x, *parameters = call.inputs
    groups, eps = call.args[4:6]
    found = registry["group_norm"].entry(call.full(x).flatten(0, 1), groups, eps=eps)
    return _scaled(call, call.shaped(found, x.shape), parameters)


def _scaled(call, found, parameters):
    for p, combine in zip(parameters, (Tensor.mul, Tensor.add), strict=True):
        if p is not None:
            values = call.near(p)
            found = combine(found, values.view(values.shape[0], 1, -1, *(1,) * (found.ndim - 3)))
    return found


@rule("batch_norm")
def _batch_norm(call):
    x, *parameters = call.inputs
    mean, variance, training, eps = call.args[4:8]
    if not training:
        return of_given_statistics(call)
    if mean is not None or variance is not None:
        raise NoBatchingRule("batch_norm")  # which changes statistics of each sample
    side_by_side = call.full(x).transpose(0, 1).flatten(1, 2)
    found = registry["batch_norm"].entry(side_by_side, None, None, None, None, True, 0.1, eps)
    found = regroup(found, (x.shape[0], call.size, *x.shape[1:])).transpose(0, 1)
    return _scaled(call, found, parameters)


# -- losses --


def reduced(losses, reduction):
    """The losses of all elements, or their mean or sum in each sample."""
    if reduction == NONE:
        return losses
    flat = losses.flatten(1) if losses.ndim > 1 else losses.unsqueeze(1)
    return flat.mean(1) if reduction == MEAN else flat.sum(1)


@rule("mse_loss smooth_l1_loss huber_loss binary_cross_entropy binary_cross_entropy_with_logits")
def _pointwise_loss(call):
    if call.kept or len(call.inputs) > 2 or any(a is not None for a in call.args[2:3] if not isinstance(a, float)):
        raise NoBatchingRule(call.op.name)
    a, b = operands(call, call.inputs)
    entry = registry[call.key].entry
    more = {"smooth_l1_loss": "beta", "huber_loss": "delta"}.get(call.key)
    ndim = max(x.ndim for x in call.inputs)
    shape = (call.size, *max((x.shape for x in call.inputs), key=lambda s: (len(s) == ndim, s.numel())))
    losses = entry(a.expand(shape), b.expand(shape), reduction="none", **({more: call.args[2]} if more else {}))
    return reduced(losses, call.args[0])


@rule("l1_loss poisson_nll_loss hinge_embedding_loss margin_ranking_loss")
def _loss_of_elements(call):
    reduction, _, *more = call.args
    given = [*call.inputs, *call.kept.values()]  # a target without a gradient is kept
    shape = (call.size, *np.broadcast_shapes(*[x.shape for x in given]))
    inputs = [x.expand(shape) for x in operands(call, given)]
    named = dict(zip(call.op.attributes[2:], more, strict=True))
    return reduced(registry[call.op.name].entry(*inputs, reduction="none", **named), reduction)


@rule("nll_loss")
def _nll(call):
    return _nll_of(call, call.full(call.inputs[0]), call.kept[1], call.kept.get(2))


@rule("cross_entropy_of_softmax")
def _cross_entropy(call):
    (target, weight), _ = call.kept[2]
    logs = call.full(call.inputs[0]).log_softmax(2)
    return [_nll_of(call, logs, target, weight), logs.exp()]


def _nll_of(call, rows, target, weight):
    ignored, reduction, _ = call.args
    if weight is not None and call.has(weight):
        raise NoBatchingRule("nll_loss")
    classes = call.full(target)
    if rows.ndim == 2:
        rows, classes = rows.unsqueeze(1), classes.reshape(call.size, 1)
    rows = rows.movedim(2, -1).flatten(0, -2)
    losses = registry["nll_loss"].entry(rows, classes.flatten(), weight, ignore_index=ignored, reduction="none")
    losses = losses.view(classes.shape)
    if reduction == NONE:
        return call.shaped(losses, call.out.shape)
    total = losses.flatten(1).sum(1)
    return total / _weights(classes, weight, ignored).flatten(1).sum(1) if reduction == MEAN else total


def _weights(classes, weight, ignored):
    counts = classes != ignored
    if weight is None:
        return counts
    taken = weight[registry["where"].entry(counts, classes, 0)]
    return taken * counts


@rule("nll_loss_backward")
def _nll_backward(call):
    ignored, reduction, _, shape = call.args
    target, weight = call.kept[1], call.kept.get(2)
    if weight is not None and call.has(weight):
        raise NoBatchingRule("nll_loss_backward")
    classes = call.full(target)
    classes = classes.reshape(call.size, 1) if len(shape) == 1 else classes
    g = call.full(call.inputs[0])
    weights = _weights(classes, weight, ignored).to(g.dtype)
    if reduction == MEAN:
        g = g / weights.flatten(1).sum(1)
    g = g.view(-1, *(1,) * (classes.ndim - 1)) if reduction != NONE or len(shape) == 1 else g
    found = -(g * weights)
    channel = 2 if len(shape) > 1 else 1
    full = (call.size, *shape)
    places = registry["where"].entry(classes == ignored, 0, classes).long()
    if len(shape) == 1:
        return found.new_zeros(full).scatter(1, places, found)
    return found.new_zeros(full).scatter(channel, places.unsqueeze(channel), found.unsqueeze(channel))


# -- linear algebra, which takes any number of matrices --


@rule("linalg_inv_ex cholesky linalg_cholesky_ex linalg_eigh linalg_eig linalg_svd linalg_qr slogdet")
def _decomposition(call):
    named = dict(zip(call.op.attributes, call.args, strict=True))
    return registry[call.key].entry(call.full(call.inputs[0]), **named)


@rule("cholesky_inverse linalg_householder_product")
def _of_factors(call):
    return registry[call.key].entry(*[call.full(x) for x in call.inputs], *call.args)


@rule("linalg_pinv")
def _pseudoinverse(call):
    if not all(isinstance(bound, (int, float, type(None))) for bound in call.args):
        raise NoBatchingRule(call.key)  # of bounds for each matrix
    return apply_n(call.op, (call.full(call.inputs[0]),), call.args)


@rule("cholesky_solve")
def _solve_factored(call):
    ndim = call.out.ndim
    b, factor = (call.aligned(x, ndim) for x in call.inputs)
    return call.shaped(registry["cholesky_solve"].entry(b, factor, *call.args), call.out.shape)


@rule("linalg_solve_ex")
def _solve(call):
    (left, is_vector), (a, b) = call.args, call.inputs
    if a.ndim != b.ndim + is_vector:
        raise NoBatchingRule("linalg_solve_ex")
    columns = call.full(b).unsqueeze(-1) if is_vector else call.full(b)
    if len(call.outs) == 1:
        return call.shaped(linalg_solve(call.full(a), columns, left=left), call.out.shape)
    found, info = linalg_solve_ex(call.full(a), columns, left=left)
    return call.shaped(found, call.out.shape), info


@rule("linalg_solve_triangular")
def _solve_triangular(call):
    ndim = call.out.ndim
    upper, left, unitriangular = call.args
    a, b = (call.aligned(x, ndim) for x in call.inputs)
    found = registry["linalg_solve_triangular"].entry(a, b, upper=upper, left=left, unitriangular=unitriangular)
    return found


# -- LU and LDL factors, least squares --


@rule("linalg_lu_factor_ex")
def _lu_factor(call):
    if len(call.outs) == 1:
        return _permutation(call)
    return linalg_lu_factor_ex(call.full(call.inputs[0]), check_errors=call.args[1])


@rule("linalg_lu_solve")
def _permutation(call):
    pivots, like = call.inputs[:2]
    return permutation(call.key, call.full(pivots), call.out.shape[-1], like)


@rule("linalg_lu")
def _lu(call):
    p, *triangles = linalg_lu(call.full(call.inputs[0]))
    return p if len(call.outs) == 1 else triangles


@rule("lu_unpack")
def _lu_unpack(call):
    x = call.inputs[0]
    if len(call.outs) == 1:
        return _permutation(call) if len(call.inputs) > 1 else x.new_zeros((call.size, 0))
    if not call.args[1]:
        return [x.new_zeros((call.size, 0))] * 2
    return lu_unpack(call.full(x), arange(0, device=x.device), unpack_pivots=False)[1:]


@rule("linalg_ldl_factor_ex")
def _ldl_factor(call):
    hermitian, check_errors = call.args
    return linalg_ldl_factor_ex(call.full(call.inputs[0]), hermitian=hermitian, check_errors=check_errors)


@rule("linalg_ldl_solve")
def _ldl_solve(call):
    factors, pivots, b = call.inputs
    ndim = max(factors.ndim, b.ndim)
    if call.has(factors) or call.has(pivots):
        shape = (*(1,) * (ndim - factors.ndim), *factors.shape)
        factors, pivots = call.shaped(call.full(factors), shape), call.shaped(call.full(pivots), shape[:-1])
    return linalg_ldl_solve(factors, pivots, call.aligned(b, ndim), hermitian=call.args[0])


@rule("linalg_lstsq")
def _least_squares(call):
    is_vector, rcond, driver = call.args
    a, b = (call.full(x) for x in call.inputs)
    found = linalg_lstsq(a, b.unsqueeze(-1) if is_vector else b, rcond, driver=driver)
    pairs = zip(found, call.outs, strict=True)
    return [
        call.shaped(part, out.shape) if out.numel() else part.new_zeros((call.size, *out.shape)) for part, out in pairs
    ]
