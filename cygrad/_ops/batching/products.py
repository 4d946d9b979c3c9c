"""Batching rules of products, convolutions, and normalization (see rules.py)."""

from cygrad._core.graph.opdef import registry
from cygrad._core.graph.record import apply_n
from cygrad._core.graph.tensor import Tensor
from cygrad._core.transforms.vmap_levels import NoBatchingRule
from cygrad._ops.batching.layers import of_given_statistics
from cygrad._ops.batching.rules import regroup, rule
from cygrad._ops.nn.scaled_dot_product import attended

# -- matrix products --


def product(call, a, b):
    """`matmul` of two operands."""
    if call.has(a) and not call.has(b) and b.ndim <= 2:
        return call.samples(a) @ b
    if call.has(b) and not call.has(a) and a.ndim == 2 and b.ndim in (1, 2) and b.shape[1:].numel() == 1:
        return (call.samples(b).flatten(1) @ a.transpose(0, 1)).unsqueeze(2)  # combine all vectors into one matrix
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
    return (call.aligned(t, call.out.ndim) * beta + found).to(call.out.dtype)


@rule("attention_by_blocks")
def _attention(call):
    mask, _, scale, is_causal, _ = call.args  # the mask has no samples: the op rejects recorded masks
    query, key, value = map(call.full, call.inputs)
    return attended(query, key, value, mask, scale, is_causal)


# -- convolutions --


@rule("convolution")
def _convolution(call):
    x, weight, bias = call.inputs
    if x.ndim != call.out.ndim or x.ndim != weight.ndim:
        raise NoBatchingRule("convolution")
    if not any(call.has(t) for t in (weight, bias)):
        found = apply_n(call.op, (call.samples(x).flatten(0, 1), weight, bias), call.args)
        return call.shaped(found, call.out.shape)
    # place samples side by side, as groups of channels
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


# -- normalization --


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
        raise NoBatchingRule("batch_norm")  # it would update statistics of each sample
    side_by_side = call.full(x).transpose(0, 1).flatten(1, 2)
    found = registry["batch_norm"].entry(side_by_side, None, None, None, None, True, 0.1, eps)
    found = regroup(found, (x.shape[0], call.size, *x.shape[1:])).transpose(0, 1)
    return _scaled(call, found, parameters)
