"""Reductions shared by all losses: "mean", "sum" or "none" of the losses of all elements.

The deprecated predecessors of `reduction` are `size_average` and `reduce`.
"""

from functools import partial
from types import FunctionType

import numpy as np

from cygrad._core.errors.sites import warn
from cygrad._core.graph.dual import keep
from cygrad._core.graph.internals import array_of
from cygrad._core.graph.opdef import registry, variant
from cygrad._core.graph.record import record_n, result_type
from cygrad._core.types.dtypes import get_default_dtype
from cygrad._kernels.cpu.base import chunks
from cygrad._kernels.cpu.base.copying import in_dtype
from cygrad._kernels.cpu.base.reduce import mean as mean_of_array
from cygrad._kernels.cpu.base.reduce import sum as sum_of_array
from cygrad._kernels.device.cupy_library import as_array
from cygrad._kernels.tape.calls import called
from cygrad._ops.base.arguments import require
from cygrad._ops.base.arithmetic import div, mul
from cygrad._ops.base.batching.rules import operands
from cygrad._ops.base.reductions import mean
from cygrad._ops.base.reductions import sum as total
from cygrad._ops.common.gradients import sum_type
from cygrad._ops.elementwise.selection import where

NONE, MEAN, SUM = range(3)


CODES = {"none": NONE, "mean": MEAN, "sum": SUM}


def reduction_of(reduction, size_average, reduce):
    """Return the code of a reduction; the two deprecated arguments take precedence."""
    if size_average is not None or reduce is not None:
        reduction = meant_by(size_average, reduce)
        warn(f"size_average and reduce args will be deprecated, please use reduction='{reduction}' instead.")
    if not isinstance(reduction, str) or reduction not in CODES:
        raise ValueError(f'{reduction} is not a valid value for reduction\n  choose "mean", "sum" or "none"')
    return CODES[reduction]


def meant_by(size_average, reduce):
    """Translate the two deprecated arguments to a reduction; None counts as True."""
    if reduce is not None and not reduce:
        return "none"
    return "mean" if size_average is None or size_average else "sum"


def known(code):
    """Return a valid reduction code: any code other than MEAN and SUM counts as NONE."""
    return code if code in (MEAN, SUM) else NONE


# -- as part of the loss's own node --


def computed(op, kernel, arrays, args, inputs, reduction, more=(), kept=None, hint=None):
    """Like `finished`, but compute the elementwise losses by a kernel, in chunks if they are large."""
    reduction = known(reduction)
    function = partial(_with_args, kernel, args)
    is_large = max(a.size for a in arrays if a is not None) > chunks.SIZE
    if reduction == NONE or not is_large or arrays[0].dtype.char not in "fd":
        if is_large and type(kernel) is FunctionType:
            losses = called(_by_blocks, function, *arrays)
        else:
            losses = called(kernel, *arrays, *args)
        return finished(op, losses, inputs, reduction, more, kept, hint)
    array, count = called(_sums, function, reduction, *arrays)
    return _recorded(op, array, count, inputs, reduction, more, kept, hint)


def _by_blocks(function, *arrays):
    return chunks.in_blocks(function, arrays)


def _sums(function, reduction, *arrays):
    array, count = chunks.sum_in_blocks(function, arrays)
    return as_array(array / array.dtype.type(count) if reduction == MEAN else array), count


def _with_args(kernel, args, *arrays):
    return kernel(*arrays, *args)


def finished(op, losses, inputs, reduction, more=(), kept=None, hint=None):
    """Reduce the losses of all elements and record the loss's node; its args begin with (reduction, element count).

    `kept` is saved in the slot of a third input, but has no edge. `hint`: further arguments, for `__torch_dispatch__`.
    """
    array = losses
    if reduction == MEAN:
        array = mean_of_array(losses)
    elif reduction == SUM:
        array = sum_of_array(losses)
    kinds = {array_of(input).dtype for input in inputs}
    if len(kinds) == 1:  # losses of half precision may be float32, and so may be the product of a bfloat16 and a number
        array = in_dtype(array, kinds.pop())
    return _recorded(op, array, losses.size, inputs, reduction, more, kept, hint)


def _recorded(op, array, count, inputs, reduction, more, kept, hint):
    result = record_n(op, array, inputs, (reduction, count, *more), kept if hint is None else hint)
    if kept is not None:
        keep(result, 2, kept)
    return result


def by_reduction(row, none):
    """Return one row per reduction for a loss that PyTorch composes of several ops: the last op names the node."""
    return tuple(variant(row, name) for name in (none, "MeanBackward0", "SumBackward0"))


def of_one_type(*tensors):
    """Convert the tensors to the dtype of their losses; None if that is complex."""
    kind = result_type(tensors)
    if kind.is_complex:
        return None
    kind = kind if kind.is_floating_point else get_default_dtype()
    return tuple([t if t.dtype is kind else t.to(kind) for t in tensors])


def spread(n, g):
    """Return the gradient of the elementwise losses, given that of the reduced loss."""
    return mul(g, 1 / n.args[1]) if n.args[0] == MEAN and n.args[1] else g


# -- composed of further ops --


def reduced(losses, reduction):
    """Return the losses, their mean or their sum."""
    if reduction == MEAN:
        return mean(losses)
    return total(losses) if reduction == SUM else losses


def weighted(losses, weight, input, reduction, function):
    """Weight the losses elementwise and reduce; the mean is weighted. Raises ValueError for mismatched weights."""
    require(weight, function, "weight", 6)
    if weight.shape != input.shape:
        raise ValueError("Weights and input must have the same size.")
    losses = mul(losses, weight)
    if reduction == MEAN:
        kind = sum_type(losses)  # in float16 the sums may be infinite where the mean is not
        return div(total(losses, dtype=kind), total(weight, dtype=sum_type(weight))).to(losses.dtype)
    return reduced(losses, reduction)


# -- batching rules of several losses --


def reduced_samples(losses, reduction):
    """Return the losses of all elements, or their mean or sum in each sample."""
    if reduction == NONE:
        return losses
    flat = losses.flatten(1) if losses.ndim > 1 else losses.unsqueeze(1)
    return flat.mean(1) if reduction == MEAN else flat.sum(1)


def pointwise_loss(call):
    """Batching rule of losses whose weight, if any, is not an input."""
    reduction, _, *more = call.args
    shape = np.broadcast_shapes(*[x.shape for x in call.inputs])
    inputs = [x.expand(call.size, *shape) for x in operands(call, call.inputs)]
    named = {name: call.aligned(a, len(shape)) for name, a in zip(_NAMES.get(call.key, ()), more) if a is not None}
    losses = registry[call.key].entry(*inputs, reduction="none", **named)
    weight = call.kept.get(2)
    return reduced_samples(losses if weight is None else losses * call.aligned(weight, len(shape)), reduction)


_NAMES = {
    "smooth_l1_loss": ("beta",),
    "huber_loss": ("delta",),
    "binary_cross_entropy_with_logits": ("pos_weight",),
}


def loss_of_elements(call):
    """Batching rule of losses whose other arguments have the names that the row gives them."""
    reduction, _, *more = call.args
    given = [*call.inputs, *call.kept.values()]  # targets without gradients are in `kept`
    shape = (call.size, *np.broadcast_shapes(*[x.shape for x in given]))
    inputs = [x.expand(shape) for x in operands(call, given)]
    named = dict(zip(call.op.attributes[2:], more, strict=True))
    return reduced_samples(registry[call.op.name].entry(*inputs, reduction="none", **named), reduction)


def weights_of_classes(call, classes, weight, ignored):
    """Return the weight of each class index."""
    counts = classes != ignored
    if weight is None:
        return counts
    places = where(counts, classes, 0).long()
    return call.full(weight).gather(1, places.view(call.size, -1)).view(classes.shape) * counts
