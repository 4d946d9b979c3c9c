"""Reads and writes elements by flat index or by mask. All ops save the index or the mask."""

import math

import numpy as np

from cygrad._core.errors import messages
from cygrad._core.graph.dual import is_forward, values_of
from cygrad._core.graph.internals import array_of, memory_of, tensor_of
from cygrad._core.graph.opdef import FUNCTION_ONLY, INPLACE, LINEAR, NONDIFF, PRIVATE, declare, facts, publish, registry
from cygrad._core.graph.record import record_outputs
from cygrad._core.graph.tensor import Tensor
from cygrad._core.tensor.from_python import checked_lengths
from cygrad._core.transforms.forward_mode import refuse_samples
from cygrad._kernels.cpu.indexing import indexing as kernels
from cygrad._kernels.cpu.indexing.axis_ops import first_nonzero, unravelled
from cygrad._kernels.device.cupy_library import is_array, is_meta
from cygrad._kernels.gpu.base.arrays import in_memory
from cygrad._ops.base.arguments import broadcast_shape, dim_argument, integer, integers, is_integer, require
from cygrad._ops.base.batching.rules import of_unknown_shape, rule, vectors
from cygrad._ops.base.checks.common import first_outside
from cygrad._ops.base.indexing import index_put
from cygrad._ops.base.views import expand, reshape
from cygrad._ops.common.out_argument import given
from cygrad._ops.creation.ranges import arange
from cygrad._ops.elementwise.rounding import remainder
from cygrad._ops.elementwise.selection import where
from cygrad._ops.indexing.gathering import finished, gather, zeros_at
from cygrad._ops.indexing.masked_fill import masked_fill

# -- by flat index --


def take_rule(n, g):
    return put(zeros_at(n.args[0], g), n.saved(2), g, True)


TAKE = declare(
    "take",
    take_rule,
    flags=LINEAR,
    kernel=kernels.take,
    inputs="self _ index",
    attributes="self_sym_sizes",
    devices="together",
    float8="take_cpu",
)


def take(input, index, *, out=None):
    """Gather the elements of the flattened `input` at the integers in `index`, in the shape of `index`.

    Negative indices count from the end. Saves `index`. Gradient: the elements of g, scatter-added into zeros.
    Raises IndexError for an index out of bounds, RuntimeError for an index that is not int64.

    >>> import cygrad
    >>> cygrad.take(cygrad.tensor([[1, 2], [3, 4]]), cygrad.tensor([0, -1]))
    tensor([1, 4])
    """
    t, where_from = require(input, "take"), require(index, "take", "index", 1)
    _check_numbers("take", t, where_from)
    if isinstance(out, Tensor) and out.dtype is not t.dtype:
        raise RuntimeError(
            f"take(): self and out expected to have the same dtype, but got self.dtype = {t.dtype.type_name} and "
            f"out.dtype = {out.dtype.type_name}"
        )
    try:
        array = kernels.take(array_of(t), array_of(where_from))
    except IndexError:
        raise out_of_range(t, where_from) from None
    return finished(TAKE, array, t, None, where_from, (array_of(t).shape,), out)


@rule("take")
def _take(call):
    places, x = call.full(call.kept[2]), call.full(call.inputs[0])
    places = places.reshape(call.size, -1) % max(1, call.inputs[0].numel())
    return call.shaped(x.reshape(call.size, -1).gather(1, places), call.out.shape)


def _check_numbers(name, t, index):
    if index.dtype.name != "int64":
        label = name if name == "take" else f"{name}_"
        raise RuntimeError(f"{label}(): Expected a long tensor for index, but got {index.dtype.type_name}")
    if name == "take" and t.numel() == 0 and index.numel():
        raise IndexError("take(): tried to take from an empty tensor")


def out_of_range(t, index):
    wrong = first_outside(array_of(index), -t.numel(), t.numel())
    return IndexError(f"out of range: tried to access index {wrong} on a tensor of {t.numel()} elements.")


def put_rule(n, g):
    accumulate, shape = n.args
    index = n.saved(2)
    kept = g
    if n.needs(0) and not accumulate:
        kept = put(g, index, zeros_at(array_of(index).shape, g))
    return kept, reshape(take(g, index), shape) if n.needs(1) else None


PUT = declare(
    "put",
    put_rule,
    flags=LINEAR | INPLACE,
    kernel=kernels.put,
    inputs="self source index",
    attributes="accumulate",
    devices="together",
    float8="take_put_cpu",
)


def put(input, index, source, accumulate=False, *, out=None):
    """Write the elements of `source` to a copy of `input`, or add them, at the flat positions in `index`.

    Saves `index`. Gradients: g with zeros at these positions (all of g if `accumulate`), and the elements of g there.
    Raises IndexError for indices out of bounds, and if `index` and `source` differ in number of elements.

    >>> import cygrad
    >>> cygrad.zeros(2, 2).put(cygrad.tensor([0, 3]), cygrad.tensor([1.0, 2.0]))
    tensor([[1., 0.],
            [0., 2.]])
    """
    t, where_to = require(input, "put"), require(index, "put", "index", 1)
    given = require(source, "put", "source", 2)
    _check_numbers("put", t, where_to)
    if t.dtype is not given.dtype:
        raise RuntimeError(
            f"put_(): self and source expected to have the same dtype, but got self.dtype = {t.dtype.type_name} and "
            f"source.dtype = {given.dtype.type_name}"
        )
    if given.numel() != where_to.numel():
        raise IndexError(
            "put_(): Expected source and index to have the same number of elements, but got source.numel() = "
            f"{given.numel()}, index.numel() = {where_to.numel()}"
        )
    try:
        array = kernels.put(array_of(t), array_of(where_to), array_of(given), accumulate)
    except IndexError:
        raise out_of_range(t, where_to) from None
    return finished(PUT, array, t, given, where_to, (bool(accumulate), array_of(given).shape), out)


@rule("put")
def _put(call):
    (t, source), (accumulate, _) = call.inputs, call.args
    x, count = call.full(t), t.numel()
    numbers = call.full(call.kept[2]).reshape(call.size, -1) % max(1, count)
    numbers = numbers + arange(call.size, device=x.device).view(-1, 1) * count
    values = call.full(source).reshape(call.size, -1)
    return call.shaped(put(x.reshape(-1), numbers, values, accumulate), call.out.shape)


@facts(devices="together", out_dtype="same")
def take_along_dim(input, indices, dim=None, *, out=None):
    """Like `gather`, but `input` and `indices` broadcast except in `dim`, and indices wrap around its length.

    Without `dim` both are flattened. Raises RuntimeError for indices that are not int64, or out of bounds without
    `dim`.

    >>> import cygrad
    >>> x = cygrad.tensor([[3, 1], [2, 4]])
    >>> cygrad.take_along_dim(x, x.argmin(1, keepdim=True), 1)
    tensor([[1],
            [2]])
    """
    t, where_from = require(input, "take_along_dim"), require(indices, "take_along_dim", "indices", 1)
    if where_from.dtype.name != "int64":
        raise RuntimeError(
            f"torch.take_along_dim(): dtype of indices should be Long but got {where_from.dtype.type_name}"
        )
    if dim is None:
        return gather(reshape(t, (-1,)), 0, reshape(where_from, (-1,)), out=out)
    if t.ndim != where_from.ndim:
        raise RuntimeError(
            "torch.take_along_dim(): input and indices should have the same number of dimensions, but got "
            f"{t.ndim} dimensions for input, and {where_from.ndim} dimensions for indices"
        )
    d = dim_argument(dim, t.ndim, "take_along_dim", "dim", 2)
    if not t.ndim:
        raise messages.no_dimensions(dim)
    own, other = list(array_of(t).shape), list(array_of(where_from).shape)
    are_alike = own[:d] == other[:d] and own[d + 1 :] == other[d + 1 :] and type(array_of(t)) is np.ndarray
    if are_alike and first_outside(values_of(where_from), 0, own[d]) is None:
        return gather(t, d, where_from, out=out)
    length, count = own[d], other[d]
    own[d] = other[d] = 1
    common = list(broadcast_shape(tuple(own), tuple(other)))
    places = expand(where_from, (*common[:d], count, *common[d + 1 :]))
    if length and (is_array(array_of(t)) or first_outside(values_of(where_from), 0, length) is not None):
        places = remainder(places, length)
    return gather(expand(t, (*common[:d], length, *common[d + 1 :])), d, places, out=out)


# -- by mask --


def masked_select_rule(n, g):
    mask = n.saved(2)
    shape = broadcast_shape(n.args[0], array_of(mask).shape)
    return masked_scatter(zeros_at(shape, g), mask, g)


MASKED_SELECT = declare(
    "masked_select",
    masked_select_rule,
    flags=LINEAR,
    kernel=kernels.masked_select,
    inputs="self _ mask",
    devices="together",
)


def masked_select(input, mask, *, out=None):
    """Return the elements of `input` where the boolean `mask` is true, as a vector; both broadcast. Saves `mask`.

    Gradient: g at its positions in zeros. Raises RuntimeError for a mask that is not boolean or does not broadcast.

    >>> import cygrad
    >>> x = cygrad.tensor([1.0, -2.0, 3.0])
    >>> x.masked_select(x > 0)
    tensor([1., 3.])
    """
    t, chosen = require(input, "masked_select"), require(mask, "masked_select", "mask", 1)
    if chosen.dtype.name != "bool":
        raise RuntimeError("masked_select: expected BoolTensor for mask")
    if isinstance(out, Tensor) and out.dtype is not t.dtype:
        raise RuntimeError("masked_select(): self and result must have the same scalar type")
    broadcast_shape(array_of(chosen).shape, array_of(t).shape)
    array = kernels.masked_select(array_of(t), array_of(chosen))
    return finished(MASKED_SELECT, array, t, None, chosen, (array_of(t).shape,), out)


@rule("masked_select")
def _masked_select(call):
    mask = call.kept[2]
    if call.has(mask):
        return of_unknown_shape(call)
    shape = (call.size, *np.broadcast_shapes(call.inputs[0].shape, mask.shape))
    x = call.aligned(call.inputs[0], len(shape) - 1).expand(shape)
    return x.flatten(1)[:, mask.expand(shape[1:]).flatten()] if len(shape) > 1 else x[:, None][:, mask.view(1)]


def masked_scatter_rule(n, g):
    mask = n.saved(2)
    return (
        masked_fill(g, mask, 0) if n.needs(0) else None,
        masked_scatter_backward(g, mask, n.args[0]) if n.needs(1) else None,
    )


MASKED_SCATTER = declare(
    "masked_scatter",
    masked_scatter_rule,
    flags=LINEAR | INPLACE,
    kernel=kernels.masked_scatter,
    inputs="self source mask",
    attributes="source_sym_sizes",
    devices="together",
    float8="masked_scatter",
)


def masked_scatter(input, mask, source, *, out=None):
    """Write consecutive elements of `source` to a copy of `input` where the boolean `mask` is true.

    `input` and `mask` broadcast. Saves `mask`. Gradients: g with zeros there, and the elements of g there. Raises
    RuntimeError for a mask that is not boolean, and for a source of another dtype or with too few elements.

    >>> import cygrad
    >>> cygrad.zeros(3).masked_scatter(cygrad.tensor([True, False, True]), cygrad.tensor([1.0, 2.0]))
    tensor([1., 0., 2.])
    """
    t, chosen = require(input, "masked_scatter"), require(mask, "masked_scatter", "mask", 1)
    given = require(source, "masked_scatter", "source", 2)
    if out is t and chosen.ndim > t.ndim:
        raise RuntimeError(
            f"expand(CPUBoolType{{{list(chosen.shape)}}}, size={list(t.shape)}): the number of sizes provided "
            f"({t.ndim}) must be greater or equal to the number of dimensions in the tensor ({chosen.ndim})"
        )
    if out is t:
        expand(chosen, tuple(t.shape))
    else:
        broadcast_shape(array_of(chosen).shape, array_of(t).shape)
    if chosen.dtype.name != "bool":
        raise RuntimeError(
            f"masked_scatter_ only supports boolean masks, but got mask with dtype {chosen.dtype.type_name}"
        )
    if t.dtype is not given.dtype:
        raise RuntimeError(
            f"masked_scatter: expected self and source to have same dtypes but got{t.dtype.type_name} and "
            f"{given.dtype.type_name}"
        )
    array = kernels.masked_scatter(array_of(t), array_of(chosen), array_of(given))
    if array is None:
        raise RuntimeError("Number of elements of source < number of ones in mask")
    return finished(MASKED_SCATTER, array, t, given, chosen, (array_of(given).shape,), out)


@rule("masked_scatter")
def _masked_scatter(call):
    (t, source), mask = call.inputs, call.kept[2]
    ndim, count = call.out.ndim, source.numel()
    chosen = call.aligned(mask, ndim).expand(call.size, *call.out.shape).flatten(1) if ndim else vectors(call, mask)
    if in_memory(values_of(chosen.sum(1))).max(initial=0) > count:
        raise RuntimeError("Number of elements of source < number of ones in mask")
    x = call.aligned(t, ndim).expand(call.size, *call.out.shape)
    if not count:
        return x.clone()
    values = call.full(source).reshape(call.size, count)
    given = values.gather(1, _number_of_each(chosen).clamp(min=0))
    return call.shaped(where(chosen, given, x.reshape(chosen.shape)), call.out.shape)


def masked_scatter_backward_rule(n, g):
    mask = n.saved(2)
    shape = broadcast_shape(n.args[0], array_of(mask).shape)
    return masked_scatter(zeros_at(shape, g), mask, g)


MASKED_SCATTER_BACKWARD = declare(
    "masked_scatter_backward",
    masked_scatter_backward_rule,
    flags=LINEAR | PRIVATE,
    kernel=kernels.masked_first,
    inputs="grad _ mask",
)


def masked_scatter_backward(input, mask, shape):
    """Return the elements of `input` where the mask is true as the first elements of zeros of that shape."""
    array = kernels.masked_first(array_of(input), array_of(mask), math.prod(shape)).reshape(shape)
    return finished(MASKED_SCATTER_BACKWARD, array, input, None, mask, (array_of(input).shape,), None)


@rule("masked_scatter_backward")
def _masked_scatter_backward(call):
    g, mask, count = call.inputs[0], call.kept[2], call.out.numel()
    shape = np.broadcast_shapes(g.shape, mask.shape)
    chosen = call.aligned(mask, len(shape)).expand(call.size, *shape).reshape(call.size, -1)
    values = call.aligned(g, len(shape)).expand(call.size, *shape).reshape(call.size, -1)
    places = where(chosen, _number_of_each(chosen), count)  # the others write past the end
    zeros = values.new_zeros((call.size, count + 1))
    return call.shaped(zeros.scatter_add(1, places, values)[:, :count], call.out.shape)


def _number_of_each(chosen):
    """Return, for each masked position in a row, the number of masked positions before it."""
    return chosen.cumsum(1) - 1


# -- nonzero and flat indices --


def argwhere(input):
    """Return the indices of the nonzero elements, one row for each, in int64; like `nonzero`.

    >>> import cygrad
    >>> cygrad.argwhere(cygrad.tensor([0, 5, 7]))
    tensor([[1],
            [2]])
    """
    t = require(input, "argwhere")
    if is_forward():
        refuse_samples("argwhere", (t,))
    return registry["nonzero"].entry(t)


@facts(out_dtype="positions")
def nonzero_static(input, *, size, fill_value=-1, out=None):
    """Return the first `size` rows of `nonzero(input)`, padded with rows of `fill_value`.

    >>> import cygrad
    >>> cygrad.nonzero_static(cygrad.tensor([0, 5, 7]), size=3)
    tensor([[ 1],
            [ 2],
            [-1]])
    """
    t = require(input, "nonzero_static")
    if is_forward():
        refuse_samples("nonzero_static", (t,))
    count = integer(size, "nonzero_static", "size", 1)
    if count < 0:
        raise RuntimeError("nonzero_static: 'size' must be an non-negative integer")
    if not isinstance(fill_value, (int, np.integer)):
        raise messages.wrong_keyword("nonzero_static", "fill_value", "int", fill_value)
    a = array_of(t)
    checked_lengths((count, a.ndim))
    if is_meta(a):
        return given("nonzero_static", tensor_of(np.empty((count, a.ndim), np.int64, like=a)), out)
    found = (
        array_of(registry["nonzero"].entry(t)) if is_array(a) or a.ndim == 0 else first_nonzero(a, min(count, a.size))
    )
    rows = np.empty((count, found.shape[1]), np.int64, like=found)
    rows.fill(fill_value)
    rows[: min(count, len(found))] = found[:count]
    return given("nonzero_static", tensor_of(rows), out)


UNRAVEL_INDEX = declare("unravel_index", flags=NONDIFF | FUNCTION_ONLY, in_python=True)


def unravel_index(indices, shape):
    """Convert flat indices into a tensor of `shape` to indices along each dimension, one tensor for each.

    Raises TypeError for indices that are not integers, ValueError for a negative length.

    >>> import cygrad
    >>> cygrad.unravel_index(cygrad.tensor([5, 7]), (3, 4))
    (tensor([1, 1]), tensor([1, 3]))
    """
    numbers = memory_of(require(indices, "unravel_index", "indices"))
    if numbers.dtype.kind not in "iu":
        raise TypeError(f"expected 'indices' to be integer dtype, but got {indices.dtype}")
    if isinstance(shape, int) or is_integer(shape):
        shape = (int(shape),)
    elif not isinstance(shape, (tuple, list)):
        raise TypeError(f"expected 'shape' to be int or sequence of ints, but got {type(shape)}")
    for length in shape:
        if not (isinstance(length, int) or is_integer(length)):
            raise TypeError(f"expected 'shape' sequence to only contain ints, but got {type(length)}")
    lengths = integers(shape, "unravel_index", "shape", 2)
    if any(length < 0 for length in lengths):
        raise ValueError(f"'shape' cannot have negative values, but got {tuple(lengths)}")
    if not lengths:
        return ()
    return record_outputs(UNRAVEL_INDEX, unravelled(numbers, lengths), (indices,), (lengths,), 0)


@rule("unravel_index")
def _unravel_index(call):
    return unravel_index(call.samples(call.inputs[0]), *call.args)


def index_put_(input, indices, values, accumulate=False):
    """In-place form of `index_put`, as a function."""
    return index_put(require(input, "index_put_"), indices, values, accumulate, out=input)


composite = {"take_along_dim": 0, "argwhere": 0, "nonzero_static": 0}
functions = publish(globals())
functions["index_put_"] = index_put_
