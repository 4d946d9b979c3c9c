"""Batching rules of views, and of splitting and joining."""

from cygrad._ops.base.batching.rules import rule
from cygrad._ops.base.slicing import cat, stack

# -- views.pyx --


@rule("view reshape.alias reshape.copy squeeze squeeze.dim squeeze.dims unsqueeze alias")
def _regrouped(call):
    t = call.inputs[0]
    x = call.full(t)
    return call.shaped(x if t.dtype is call.out.dtype else x.view(call.out.dtype), call.out.shape)


@rule("expand")
def _expand(call):
    return call.aligned(call.inputs[0], call.out.ndim).expand(call.size, *call.out.shape)


@rule("permute")
def _permute(call):
    t = call.inputs[0]
    return call.full(t).permute(0, *[d % t.ndim + 1 for d in call.args[0]])


@rule("transpose t")
def _transpose(call):
    t, x = call.inputs[0], call.full(call.inputs[0])
    if t.ndim < 2:
        return call.shaped(x, t.shape)
    a, b = call.args or (0, 1)
    return x.transpose(a % t.ndim + 1, b % t.ndim + 1)


# -- slicing.pyx --


@rule("select")
def _select(call):
    _, dim, index = call.needed_args()
    return call.full(call.inputs[0]).select(dim + 1, index)


@rule("slice")
def _slice(call):
    _, dim, start, end, step = call.needed_args()
    return call.full(call.inputs[0])[(slice(None),) * (dim + 1) + (slice(start, end, step),)]


@rule("select_backward")
def _select_backward(call):
    shape, dim, index = call.args
    zeros = call.full(call.inputs[0]).new_zeros((call.size, *shape))
    return zeros.select_scatter(call.full(call.inputs[0]), dim + 1, index)


@rule("slice_backward")
def _slice_backward(call):
    shape, dim, start, step, count = call.args
    zeros = call.full(call.inputs[0]).new_zeros((call.size, *shape))
    return zeros.slice_scatter(call.full(call.inputs[0]), dim + 1, start, start + (count - 1) * step + 1, step)


@rule("split split_with_sizes")
def split_samples(call):
    sizes, dim = call.needed_args()[1:]
    return call.full(call.inputs[0]).split_with_sizes(list(sizes), dim % call.inputs[0].ndim + 1)


@rule("unbind")
def _unbind(call):
    return call.full(call.inputs[0]).unbind(call.needed_args()[1] % call.inputs[0].ndim + 1)


@rule("cat")
def _cat(call):
    parts = [call.full(x).to(call.out.dtype) for x in call.inputs if x.ndim == call.out.ndim]
    return cat(parts, call.args[0] % call.out.ndim + 1)


@rule("stack")
def _stack(call):
    parts = [call.full(x).to(call.out.dtype) for x in call.inputs]
    return stack(parts, call.args[0] % call.out.ndim + 1)
