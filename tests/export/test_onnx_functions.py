"""Functions, operators and changes in place as ONNX models, for two batch sizes."""

import inspect

import pytest
from export.onnx_support import check

import cygrad as torch
from cygrad.nn import functional as F

pytest.importorskip("onnxruntime", reason="needs cygrad[onnx]")
pytest.importorskip("onnx", reason="needs cygrad[onnx]")


def assigned(x):
    x = x.clone()
    x[:, 1] = 0
    x[0] = x[1]
    x[:, 2:4] += 1
    x[:, [4, 5]] = x[:, [0, 1]]
    return x


def masked(x):
    x = x.clone()
    x[x > 0] = -1.0
    x[x[:, 0] < 0] = 2.0
    return x


def changed(x):
    y = x * 1
    y.add_(1).mul_(2)
    y.clamp_(min=0)
    z = y.view(-1, 2, 3)
    z.mul_(3)
    return y + 1, z


def changed_views(x):
    y = x * 1
    part = y[:, 1:3]
    part.add_(5)
    turned = y.T
    part.mul_(2)
    turned[0] += 1
    return y, turned, part


def changed_data(x):
    y = x * 1
    y.data[0] = 5
    y.data.mul_(2)
    return y


def into_out(x):
    y = torch.empty_like(x)
    torch.add(x, 1, out=y)
    return y.zero_() + x, x.clone().fill_(3).copy_(x)


def heads(x):
    batch, width = x.shape
    return x.reshape(batch, -1, 2).reshape(batch, 3, 2, 1).permute(0, 2, 1, 3).contiguous().view(batch, width)


def grid(x):
    at = F.affine_grid(torch.eye(2, 3).expand(x.size(0), 2, 3), (x.size(0), 1, 4, 4), align_corners=False)
    image = x.view(-1, 1, 2, 3)
    return [F.grid_sample(image, at, mode, "border", align_corners=False) for mode in ("bilinear", "nearest")]


def attended(x):
    q = x.view(-1, 1, 3, 2)
    seen = torch.tensor([[True, False, False]] * 3)
    shared = x.view(-1, 1, 3, 2).expand(-1, 2, -1, -1)
    return (
        F.scaled_dot_product_attention(q, q, q),
        F.scaled_dot_product_attention(q, q, q, is_causal=True, scale=0.3),
        F.scaled_dot_product_attention(q, q, q, attn_mask=seen),
        F.scaled_dot_product_attention(shared, q, q, enable_gqa=True),
    )


def functions(*names):
    return lambda x: [getattr(torch, name)(x) for name in names]


FUNCTIONS = {
    "index": lambda x: (
        x[0],
        x[:, 1],
        x[..., 1:4],
        x[:, None],
        x[:, ::2],
        x[:, [0, 2]],
        x[:, -1],
        x[-1:],
        x[:, :, None],
    ),
    "index by tensors": lambda x: (x[:, torch.tensor([1, 0])], x[torch.tensor(1)], x[[0, 1], [1, 2]]),
    "index with several": lambda x: (
        x[None][:, [0, 1], [1, 2]],
        x.view(-1, 2, 3)[:, [0, 1], [1, 2]],
        x.view(-1, 2, 3)[:, 0, [1, 2]],
        x.view(-1, 2, 3)[[0, 1], :, [1, 2]],
        x.view(-1, 2, 3)[[[0], [1]], 0, [1, 2]],
    ),
    "index by mask": lambda x: (x[x > 0], x[x[:, 0] > -9], x.masked_select(x > 0)),
    "assigned": assigned,
    "masked": masked,
    "changed": changed,
    "changed views": changed_views,
    "changed data": changed_data,
    "into out": into_out,
    "arithmetic": lambda x, y: (
        *(x + 1, 1 - x, x * 2, x / 3, 2 / y, x // 2, x % 2, y**2, y**0.5, 2**x, x - y, x + y, -x, abs(x), x // y),
        *(x.add(y, alpha=2), torch.sub(x, y, alpha=0.5), torch.remainder(x, -2), torch.fmod(x, 2), x @ y.T),
        *(torch.div(x, y, rounding_mode="trunc"), torch.div(x, y, rounding_mode="floor"), torch.rsub(x, y)),
    ),
    "integers": lambda x: (
        *(x.long() + 1, x.long() / 2, x.long() // 2, x.long() % 3, x.long() + 0.5, (x > 0).sum(), (x > 0) + 1),
        *(x.long() ** 2, x.long() // -2, x.long() & 1, x.long() | 4, x.long() ^ 1, ~x.long(), (x > 0) * x),
    ),
    "comparisons": lambda x, y: (
        *(x > y, x < 0, x >= y, x <= 0, x == y, x != 0, (x > 0) & (y > 1), (x > 0) | (y > 1), ~(x > 0)),
        *((x > 0) ^ (y > 1), torch.logical_and(x, y), torch.logical_not(x > 0), torch.isclose(x, x + 1e-9)),
    ),
    "positive numbers": lambda x, y: [
        f(y) for f in (torch.log, torch.sqrt, torch.rsqrt, torch.log2, torch.log10, torch.log1p, torch.acosh)
    ],
    "small numbers": lambda x: [
        f(x.tanh() * 0.9) for f in (torch.asin, torch.acos, torch.atanh, torch.expm1, torch.log1p, torch.sinc)
    ],
    "logit": lambda x: (x.sigmoid().logit(), x.sigmoid().logit(0.3)),
    "elementwise": functions(
        *"exp sin cos tan tanh sigmoid erf erfc floor ceil round sign reciprocal square trunc frac isnan isinf".split(),
        *"isfinite exp2 sinh cosh asinh atan nan_to_num deg2rad rad2deg relu selu neg positive".split(),
    ),
    "clamped": lambda x, y: (
        *(x.clamp(0, 1), x.clamp(min=0), x.clamp(max=y), torch.clip(x, -1, 1), x.clamp_min(0.2), x.clamp_max(0.2)),
        *(torch.maximum(x, y), torch.minimum(x, y), torch.where(x > 0, x, y), torch.where(x > 0, 1.0, 0.0)),
        *(x.masked_fill(x > 0, 2.0), torch.lerp(x, y, 0.3), torch.addcmul(x, x, y, value=0.5)),
        *(torch.addcdiv(x, x, y), torch.atan2(x, y), torch.hypot(x, y), torch.logaddexp(x, y), torch.xlogy(x, y)),
        *(torch.logaddexp2(x, y), torch.heaviside(x, y)),
    ),
    "reductions": lambda x: (
        *(x.sum(), x.mean(), x.sum(1), x.mean(0, keepdim=True), x.max(), x.min(), x.max(1), x.min(1, True)),
        *(x.amax(1), x.amin((0, 1)), x.argmax(), x.argmin(1), x.argmax(1, keepdim=True), x.prod(1), x.norm()),
        *(x.norm(dim=1), x.norm(1, 1), x.var(), x.std(1), x.var(1, unbiased=False), x.logsumexp(1)),
        *((x > 0).any(), (x > 0).all(1), x.cumsum(1), torch.std_mean(x, 1), torch.linalg.norm(x, dim=1)),
        *(torch.linalg.vector_norm(x, 3), (x > 0).sum(1), torch.count_nonzero(x, 1), torch.aminmax(x, dim=1)),
        *(torch.norm(x, float("inf")), torch.nansum(x, 1), torch.nanmean(x, 1), x.sum(dtype=torch.float64)),
    ),
    "order": lambda x: (
        x.topk(3, 1),
        x.sort(1),
        x.argsort(1, descending=True),
        x.topk(2, 1, largest=False)[1],
        x.msort(),
    ),
    "shapes": lambda x: (
        *(x.view(-1), x.reshape(x.size(0), 2, 3), x.flatten(), x.unsqueeze(1).squeeze(1), x.t(), x.T, x.mT),
        *(x.transpose(0, 1), x.permute(1, 0), x.expand(3, -1, -1), x.repeat(2, 1), x.repeat(2, 1, 1), x.tile((2,))),
        *(x.unflatten(1, (2, 3)), x.view_as(x), x.roll(1, 1), x.roll(2, 0), x.flip(1), x.flip(0, 1), x.swapaxes(0, 1)),
        *(torch.tril(x), torch.triu(x, 1), torch.movedim(x.view(-1, 2, 3), 0, 2), x.repeat_interleave(2, 1)),
        *(x.repeat_interleave(2), torch.atleast_3d(x), x.ravel()),
        *(x.view(-1, 2, 3).diagonal(0, 1, 2), x.unfold(1, 2, 2), x.unsqueeze(-1), x.flatten(0, -1), x.fliplr()),
    ),
    "joined": lambda x, y: (
        *(torch.cat([x, y], 1), torch.cat((x, y)), torch.stack([x, y], 1), torch.stack([x, y], -1)),
        *(torch.hstack([x, y]), torch.vstack([x, y]), torch.dstack([x, y]), torch.column_stack([x, y])),
        *(torch.split(x, 2, 1), x.split([1, 5], 1), x.chunk(2, 1), x.unbind(1), list(x.T)),
        *(torch.meshgrid(x[0], y[0], indexing="ij"), torch.meshgrid(x[0], y[0], indexing="xy")),
        torch.broadcast_tensors(x, y[:, :1]),
    ),
    "gathered": lambda x: (
        *(x.gather(1, x.argsort(1)), x.index_select(1, torch.tensor([0, 2])), x.narrow(1, 1, 3), x.select(1, 2)),
        *(torch.zeros_like(x).scatter(1, x.argsort(1), x), torch.zeros_like(x).scatter_add(1, x.argsort(1), x)),
        *(x.scatter(1, x.argsort(1)[:, :2], 1.0), torch.take_along_dim(x, x.argsort(1), 1), x.nonzero()),
        *(x.index_fill(1, torch.tensor([1]), 9.0), F.one_hot(x.argmax(1), 6), x.take(torch.tensor([0, 3]))),
        *(x.index_add(1, torch.tensor([1, 1]), x[:, :2]), x.index_copy(1, torch.tensor([1, 3]), x[:, :2])),
        *(x.select_scatter(x[:, 0], 1, 2), x.slice_scatter(x[:, :2], 1, 3, 5)),
        x.scatter_reduce(1, x.argsort(1) // 2, x, "amax"),
    ),
    "made": lambda x: (
        *(torch.zeros(x.size(0), 3), torch.arange(x.size(1)) + x, torch.arange(x.size(0)), torch.ones_like(x)),
        *(x.new_full((x.shape[0], 2), 7.0), torch.full((2, x.shape[0]), 1), torch.eye(x.size(0)), torch.eye(3)),
        *(x.new_zeros(x.size(0)), torch.linspace(0, 1, 3), torch.arange(0, x.size(0), dtype=torch.float32)),
        *(torch.ones(x.shape), torch.arange(1, 2 * x.size(0), 2), torch.tensor([1.0, 2.0]) * x[:, :2]),
    ),
    "numbers of lengths": lambda x: (
        *(x / x.size(0), x * x.numel(), x / (x.size(0) ** 0.5), x + x.shape[0] * 3 + 1, x.reshape(x.numel())),
        *(x.view(x.size(0) * 2, 3), x.view(x.size(0) * 3, -1), x[: x.size(0) - 1], x.expand(x.size(0), *x.shape)),
    ),
    "products": lambda x, y: (
        *(torch.einsum("bi,bj->ij", x, y), torch.einsum("bi,ci", x, y), torch.mm(x, y.T), x.matmul(y[0])),
        *(torch.bmm(x[:, None], y[:, :, None]), torch.outer(x[0], y[0]), torch.dot(x[0], y[0]), torch.inner(x, y)),
        *(torch.addmm(y[:, :2], x, torch.ones(6, 2), beta=0.5), torch.tensordot(x, y, ([1], [1])), F.normalize(x)),
        *(F.cosine_similarity(x, y), torch.cdist(x, y), torch.cdist(x, y, 1.0), torch.linalg.vecdot(x, y)),
        torch.chain_matmul(x, y.T, x),
    ),
    "casts": lambda x: (
        *(x.double(), x.to(torch.float64), x.half(), x.long(), x.bool(), x.type(torch.int32), x.to(x.dtype)),
        *(x.type_as(x.long()), x.float(), x.int(), x.to(torch.int8), x.cpu()),
    ),
    "attributes": lambda x: (*x.T.data, x.detach() + 1, x.real),
    "heads": heads,
    "padded": lambda x: (
        *(F.pad(x, (1, 2)), F.pad(x, (1, 2, 0, 1), value=3.0), F.pad(x, (-1, 2)), F.pad(x > 0, (1, 1), value=True)),
        F.pad(x[None], (1, 1), mode="reflect"),
    ),
    "grid": grid,
    "attended": attended,
    "activations": lambda x: (
        *(F.relu(x, inplace=False), F.gelu(x), F.softmax(x, 1), F.log_softmax(x, -1), F.hardtanh(x, -0.5, 0.5)),
        *(F.softmax(x, 1, dtype=torch.float64), F.leaky_relu(x, 0.2), F.glu(x), F.dropout(x, 0.5, False)),
        *(F.threshold(x, 0.1, 2.0), F.softplus(x, 2.0, 1.0), F.softmin(x, 1), x.long().relu(), x[0].sum().softmax(0)),
    ),
    "results": lambda x: {"a": x + 1, "b": (x, [x * 2, None])},
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_function(name):
    function = FUNCTIONS[name]
    count = len(inspect.signature(function).parameters)
    args, others = ((torch.randn(n, 6), torch.randn(n, 6).abs() + 0.1)[:count] for n in (2, 5))
    check(function, args, ({0: "batch"},) * count, others)
