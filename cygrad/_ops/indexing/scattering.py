"""Scatter ops: write elements at the positions that an index gives along one dimension.

All save the index. Writes are unordered: if an index occurs twice, it is unspecified which value is kept, except where
elements are reduced.
"""

import numpy as np

from cygrad._core.engine.blocked_gradients import reused
from cygrad._core.errors import messages
from cygrad._core.errors.sites import warn
from cygrad._core.graph.dual import is_forward, values_of
from cygrad._core.graph.internals import array_of, memory_of, tensor_of
from cygrad._core.graph.opdef import IN0, IN1, INPLACE, LINEAR, MAY_OVERLAP, OUT0, PRIVATE, declare, publish, variant
from cygrad._core.graph.tensor import Tensor
from cygrad._core.runtime.thread_state import get_modes
from cygrad._kernels.cpu.base import copying
from cygrad._kernels.cpu.indexing import scatter as kernels
from cygrad._kernels.device.cupy_library import filled_like, is_array, is_meta
from cygrad._kernels.tape.calls import called
from cygrad._ops.base.arguments import dim_argument, require
from cygrad._ops.base.arithmetic import div, mul
from cygrad._ops.base.batching.rules import rule, vectors
from cygrad._ops.base.checks.common import check_gradient_of_part, first_outside
from cygrad._ops.base.indexing import writes_expanded
from cygrad._ops.base.pointwise import conjugate
from cygrad._ops.base.slicing import cat
from cygrad._ops.base.slicing import slice as slice_of
from cygrad._ops.base.views import expand, reshape
from cygrad._ops.common.gradients import sum_type
from cygrad._ops.elementwise.selection import where
from cygrad._ops.indexing.gathering import (
    check_bounds,
    check_integral,
    check_same_dtype,
    check_scatter,
    check_slices,
    finished,
    gather,
    index_for_writing,
    index_select,
    line_of,
    other_length,
    padded,
    placed,
    places_along,
    scatter_add,
    scattered,
    slices_written,
    zeros_at,
)
from cygrad._ops.indexing.masked_fill import masked_fill

# -- scatter --


def scatter_rule(n, g):
    dim, shape = n.args
    index = n.saved(2)
    return (
        scatter(g, dim, index, value=0) if n.needs(0) else None,
        padded(gather(g, dim, index), shape) if n.needs(1) else None,
    )


SCATTER = declare(
    "scatter",
    scatter_rule,
    flags=LINEAR | INPLACE,
    kernel=kernels.scatter,
    inputs="self src index",
    attributes="dim",
    devices="together",
    out_dtype="same",
    overloads="",
    float8="scatter_gather_tensor_cpu",
)


def scatter_value_rule(n, g):
    return scatter(g, n.args[0], n.saved(2), value=0)


SCATTER_VALUE = declare(
    "scatter.value",
    scatter_value_rule,
    flags=LINEAR | PRIVATE,
    kernel=kernels.scatter,
    node="ScatterBackward1",
    inputs="self _ index",
    attributes="dim",
    out_dtype="same",
    float8="scatter_gather_scalar_cpu",
)

_SCATTER_SIGNATURES = tuple(
    f"int dim, Tensor index, {source}"
    for source in ("Tensor src", "Tensor src, *, str reduce", "Number value", "Number value, *, str reduce")
)
_OLD_REDUCTIONS = {"add": "sum", "multiply": "prod"}


def scatter(input, dim, index, src=None, *, value=None, reduce=None, out=None):
    """Write each element of `src`, or the number `value`, into a copy of `input`, at position `index` along `dim`.

    For dim 0: out[index[i][j]][j] = src[i][j]. `index` must not exceed the shape of `src`, nor that of `input` except
    along `dim`. With `reduce`, 'add' or 'multiply', the value is combined with the existing one (prefer
    `scatter_reduce`). Saves `index`. Gradients: of `input`, g with zeros at the written positions; of `src`, what
    `gather` reads from g. Raises RuntimeError for an index of the wrong shape or out of bounds, and for another dtype
    of `src`.

    >>> import cygrad
    >>> cygrad.zeros(2, 3).scatter(1, cygrad.tensor([[0], [2]]), 1.0)
    tensor([[1., 0., 0.],
            [0., 0., 1.]])
    """
    t = require(input, "scatter")
    if isinstance(value, Tensor) and not value.ndim and not value.requires_grad:
        value = value.item()
    source = value if src is None else src
    if not isinstance(index, Tensor) or not isinstance(source, (Tensor, int, float, complex)):
        given = [argument for argument in (dim, index, source) if argument is not None]
        raise messages.no_such_call("scatter", given, {}, _SCATTER_SIGNATURES)
    index = index_for_writing(index, t)
    if reduce is not None:
        return _scatter_reduced(t, dim, index, source, reduce, out)
    if not isinstance(source, Tensor):
        d = _checked(t, dim, index, None, "scatter")
        operands = d, array_of(index), copying.element(source, array_of(t).dtype)
        return placed(SCATTER_VALUE, operands, t, None, index, (d, source), out)
    d = _checked(t, dim, index, source, "scatter")
    operands = d, array_of(index), array_of(source)
    return placed(SCATTER, operands, t, source, index, (d, array_of(source).shape), out)


@rule("scatter")
def _scatter(call):
    return scattered(call, lambda t, dim, index: t.scatter(dim, index, vectors(call, call.inputs[1])))


@rule("scatter.value")
def _scatter_value(call):
    return scattered(call, lambda t, dim, index: t.scatter(dim, index, value=call.args[1]))


def _checked(t, dim, index, source, name):
    """Check the index and the source, which is None for a number, and return the dimension."""
    array = array_of(index)
    d = dim_argument(dim, t.ndim, name, "dim", 1)
    check_integral(index, "scatter(): Expected dtype int32/int64 for index")
    if source is not None:
        check_same_dtype(t, source)
    check_scatter(array_of(t).shape, array, array.shape if source is None else array_of(source).shape, d)
    return d


def _filled(t, value, dtype):
    """Return an array filled with one value, of the shape and on the device of a tensor."""
    return called(filled_like, memory_of(t), tuple(t.shape), value, dtype)


def _scatter_reduced(t, dim, index, source, reduce, out):
    if reduce not in _OLD_REDUCTIONS:
        raise RuntimeError("reduce argument must be either add or multiply.")
    if isinstance(source, Tensor):
        warn(
            "The reduce argument of torch.scatter with Tensor src is deprecated and will be removed in a future "
            "PyTorch release. Use torch.scatter_reduce instead for more reduction options."
        )
    else:
        source = tensor_of(_filled(index, copying.element(source, array_of(t).dtype), array_of(t).dtype))
    return scatter_reduce(t, dim, index, source, _OLD_REDUCTIONS[reduce], out=out)


# -- scatter_reduce --


def scatter_reduce_rule(n, g):
    dim, reduce, include_self, shape = n.args
    index = n.saved(2)
    own, sent = _reduced_gradients(n, g, dim, index, reduce, include_self)
    if own is not None and not include_self:
        own = scatter(own, dim, index, value=0)  # the input is discarded wherever something was written
    return own, sent if sent is None else padded(sent, shape)


def _reduced_gradients(n, g, dim, index, reduce, include_self):
    """Gradients of the input, valid where it was included or nothing was written, and of the source."""
    if reduce == "sum":
        return g, gather(g, dim, index) if n.needs(1) else None
    if reduce == "mean":
        ones = tensor_of(_filled(index, 1, sum_type(g).numpy))
        counts = tensor_of(_filled(g, int(include_self), sum_type(g).numpy))
        share = div(g, scatter_add(counts, dim, index, ones).clamp(min=1))
        return share, gather(share, dim, index) if n.needs(1) else None
    t, source = n.saved(0), _first(n.saved(1), tuple(index.shape))
    if reduce == "prod":
        return _product_gradients(n, g, t, source, dim, index, include_self)
    result = n.saved_result()
    hit, sent = t == result, source == gather(result, dim, index)
    counts = hit if include_self else tensor_of(_filled(t, 0, bool))
    kind = sum_type(g)
    share = div(g, scatter_add(counts.to(kind), dim, index, sent.to(kind)).clamp(min=1))
    return where(hit, share, 0.0), where(sent, gather(share, dim, index), 0.0) if n.needs(1) else None


def _product_gradients(n, g, t, source, dim, index, include_self):
    """Each factor gets g times the product of the others, which is the result divided by the factor unless it is 0."""
    if not get_modes() or is_forward():  # the gradient will be differentiated
        return _products_of_others(n, g, t, source, dim, index, include_self)
    result = n.saved_result()
    zero, sent_zero = t == 0, source == 0
    whole = mul(g, conjugate(result))
    if is_meta(memory_of(zero)) or not (values_of(zero).any() or values_of(sent_zero).any()):
        sent = div(gather(whole, dim, index), conjugate(source)) if n.needs(1) else None
        return div(whole, conjugate(t), out=reused(whole)), sent
    own = div(whole, conjugate(masked_fill(t, zero, 1)))
    sent = None
    if n.needs(1):
        sent = div(gather(whole, dim, index), conjugate(masked_fill(source, sent_zero, 1)))
    others = scatter_reduce(
        masked_fill(t, zero, 1), dim, index, masked_fill(source, sent_zero, 1), "prod", include_self=include_self
    )
    counts = zero if include_self else tensor_of(_filled(t, 0, bool))
    single = scatter_add(counts.long(), dim, index, sent_zero.long()) <= 1
    others = where(single, mul(g, conjugate(others)), 0.0)
    return where(zero, others, own), where(sent_zero, gather(others, dim, index), sent) if n.needs(1) else None


def _products_of_others(n, g, t, source, dim, index, include_self):
    """Compute the gradients by multiplications alone, so that their own gradients are right for every factor, 0 too."""
    own = sent = None
    if n.needs(0):
        ones = tensor_of(_filled(t, 1, t.dtype.numpy))
        own = mul(g, conjugate(scatter_reduce(ones, dim, index, source, "prod")))
    if n.needs(1):
        factors = mul(g, conjugate(t)) if include_self else g
        sent = mul(gather(factors, dim, index), conjugate(_products_within(source, dim, index)))
    return own, sent


def _products_within(source, dim, index):
    """Return, for each element of `source`, the product of the others that are sent to the same position.

    Lines along `dim` are sorted by position. The products of those before and behind each element are joined by
    doubling.
    """
    if not source.ndim:
        return reshape(_products_within(reshape(source, 1), 0, reshape(index, 1)), source.shape)
    order = index.argsort(dim, stable=True)
    places, elements = gather(index, dim, order), gather(source, dim, order)
    before, behind = (_shifted(elements, places, dim, steps) for steps in (1, -1))
    steps, count = 1, source.shape[dim]
    while steps < count and not is_meta(memory_of(places)) and values_of(_are_same(places, dim, steps)).any():
        before = mul(before, _shifted(before, places, dim, steps))
        behind = mul(behind, _shifted(behind, places, dim, -steps))
        steps *= 2
    return gather(mul(before, behind), dim, order.argsort(dim))


def _are_same(places, dim, steps):
    """Whether elements that are `steps` apart are of one place."""
    count = places.shape[dim] - steps
    return slice_of(places, dim, steps, count) == slice_of(places, dim, 0, count)


def _shifted(t, places, dim, steps):
    """Move the elements by `steps`. Where the element that would arrive is of another place or missing, there is 1."""
    count, far = t.shape[dim], min(abs(steps), t.shape[dim])
    ones = tensor_of(_filled(slice_of(t, dim, 0, far), 1, t.dtype.numpy))
    if far == count:
        return ones
    kept = slice_of(t, dim, 0 if steps > 0 else far, count - far)
    moved = where(_are_same(places, dim, far), kept, 1.0)
    return cat((ones, moved) if steps > 0 else (moved, ones), dim)


def _first(t, shape):
    """Return the leading part of `t` that an index of that shape covers."""
    for d, length in enumerate(shape[: t.ndim]):
        if t.shape[d] > length:
            t = slice_of(t, d, 0, length)
    return t


SCATTER_REDUCE = declare(
    "scatter_reduce",
    scatter_reduce_rule,
    saves=IN0 | IN1 | OUT0,
    flags=INPLACE,
    kernel=kernels.scatter_reduce,
    inputs="self src index",
    attributes="dim reduce include_self",
    devices="together",
    out_dtype="same",
    vmap_write="scatter_reduce_",
    float8="scatter_gather_tensor_cpu",
)
# the gradients of sums and means only need the index
SCATTER_SUM = declare(
    "scatter_reduce.sum",
    scatter_reduce_rule,
    flags=LINEAR | PRIVATE,
    kernel=kernels.scatter_reduce,
    node="ScatterReduceBackward0",
    inputs="self src index",
    attributes="dim reduce include_self",
    out_dtype="same",
    float8="scatter_gather_tensor_cpu",
)

_NOT_OF_COMPLEX = ("amax", "amin")


def scatter_reduce(input, dim, index, src, reduce, *, include_self=True, out=None):
    """Reduce the elements of `src` into a copy of `input` at positions `index` along `dim`, as in `scatter`.

    `reduce` is 'sum', 'prod', 'mean', 'amax' or 'amin'; without `include_self` the elements of `input` at these
    positions are ignored. Saves `index`, and `input`, `src` and the result if the gradient needs them. Gradients: those
    of the reduction; equal extrema share the gradient. Raises RuntimeError for an index of the wrong shape or out of
    bounds.

    >>> import cygrad
    >>> x, index = cygrad.tensor([1.0, 2.0, 3.0, 4.0]), cygrad.tensor([0, 1, 0, 1])
    >>> cygrad.zeros(3).scatter_reduce(0, index, x, "amax")
    tensor([3., 4., 0.])
    """
    t, where_to = require(input, "scatter_reduce"), require(index, "scatter_reduce", "index", 2)
    source = require(src, "scatter_reduce", "src", 3)
    if not isinstance(reduce, str):
        raise messages.wrong_type("scatter_reduce", "reduce", 5, "str", reduce)
    reduce = {"max": "amax", "min": "amin"}.get(reduce, reduce)
    if reduce not in kernels.REDUCTIONS:
        raise RuntimeError(f"reduce argument must be either sum, prod, mean, amax or amin, got {reduce}")
    where_to = index_for_writing(where_to, t)
    d = _checked(t, dim, where_to, source, "scatter_reduce")
    if reduce in _NOT_OF_COMPLEX and t.is_complex():
        raise messages.not_implemented_for(f"scatter_gather_tensor_cpu_reduce_{reduce}", t.dtype)
    array = kernels.scatter_reduce(array_of(t), d, array_of(where_to), array_of(source), reduce, include_self)
    row = SCATTER_SUM if reduce in ("sum", "mean") else SCATTER_REDUCE
    return finished(row, array, t, source, where_to, (d, reduce, bool(include_self), array_of(source).shape), out)


@rule("scatter_reduce scatter_reduce.sum")
def _scatter_reduce(call):
    _, reduce, include_self, _ = call.args
    source = vectors(call, call.inputs[1])
    return scattered(
        call, lambda t, dim, index: t.scatter_reduce(dim, index, source, reduce, include_self=include_self)
    )


def index_reduce_rule(n, g):
    dim, reduce, include_self, shape = n.args
    index = n.saved(2)
    along = expand(reshape(index, (-1,) + (1,) * (len(shape) - 1 - dim)) if shape else reshape(index, ()), shape)
    own, sent = _reduced_gradients(n, g, dim, along, reduce, include_self)
    if own is not None and not include_self:
        own = index_fill(own, dim, index, 0)
    return own, sent


INDEX_REDUCE = declare(
    "index_reduce",
    index_reduce_rule,
    saves=IN0 | IN1 | OUT0,
    flags=INPLACE,
    inputs="self source index",
    attributes="dim reduce include_self",
    devices="together",
    out_dtype="same",
)


def index_reduce(input, dim, index, source, reduce, *, include_self=True, out=None):
    """Reduce the slices of `source` into a copy of `input`, at the slices that `index`, a vector, selects along `dim`.

    `reduce` is 'prod', 'mean', 'amax' or 'amin'; for sums use `index_add`. Saves the same tensors as `scatter_reduce`.
    Raises RuntimeError for mismatched shapes or dtypes, IndexError for an index out of bounds.

    >>> import cygrad
    >>> cygrad.ones(2).index_reduce(0, cygrad.tensor([1, 1]), cygrad.tensor([2.0, 3.0]), "prod")
    tensor([1., 6.])
    """
    t, where_to = require(input, "index_reduce"), require(index, "index_reduce", "index", 2)
    added = require(source, "index_reduce", "source", 3)
    if not isinstance(reduce, str):
        raise messages.wrong_type("index_reduce", "reduce", 5, "str", reduce)
    if reduce not in kernels.REDUCTIONS or reduce == "sum":
        raise RuntimeError(f"index_reduce(): Expected reduce to be one of prod, mean, amax or amin but got {reduce}.")
    d = dim_argument(dim, t.ndim, "index_reduce", "dim", 1)
    check_slices("index_reduce", t, d, where_to, added)
    check_bounds(array_of(where_to), array_of(t).shape[d] if t.ndim else 1)
    operands = array_of(t), d, array_of(where_to).reshape(-1), array_of(added)
    array = kernels.index_reduce(*operands, reduce, include_self)
    args = (d, reduce, bool(include_self), array_of(added).shape)
    return finished(INDEX_REDUCE, array, t, added, where_to, args, out)


# -- index_copy, index_fill --


@rule("index_reduce")
def _index_reduce(call):
    _, reduce, include_self, _ = call.args
    return slices_written(
        call,
        lambda t, dim, index, source: t.index_reduce(dim, index, source, reduce, include_self=include_self),
        lambda t, dim, index, source: t.scatter_reduce(dim, index, source, reduce, include_self=include_self),
    )


def index_copy_rule(n, g):
    dim, shape = n.args
    index = n.saved(2)
    return (
        index_fill(g, dim, index, 0) if n.needs(0) else None,
        index_select(g, dim, index).reshape(shape) if n.needs(1) else None,
    )


INDEX_COPY = declare(
    "index_copy",
    index_copy_rule,
    flags=LINEAR | INPLACE,
    kernel=kernels.index_copy,
    inputs="self source index",
    attributes="dim",
    out_dtype="same",
    devices="together",
    autocast="widest",
    derived={"source_dim": lambda n: len(n.args[1])},
    float8="index_copy_cpu",
)


def index_copy(input, dim, index, source, *, out=None):
    """Write the slices of `source` into a copy of `input`, at the slices that `index`, a vector, selects along `dim`.

    Saves `index`. Gradients: g with zeros there, and the selected slices of g. Raises IndexError or RuntimeError for an
    invalid index and for a mismatched shape or dtype.

    >>> import cygrad
    >>> cygrad.zeros(3).index_copy(0, cygrad.tensor([2, 0]), cygrad.tensor([1.0, 2.0]))
    tensor([2., 0., 1.])
    """
    t, where_to = require(input, "index_copy"), require(index, "index_copy", "index", 2)
    copied = require(source, "index_copy", "source", 3)
    d = dim_argument(dim, t.ndim, "index_copy", "dim", 1)
    _check_index_copy(t, d, where_to, copied)
    operands = d, array_of(where_to).reshape(-1), array_of(copied)
    return placed(INDEX_COPY, operands, t, copied, where_to, (d, array_of(copied).shape), out)


@rule("index_copy")
def _index_copy(call):
    return slices_written(call, Tensor.index_copy, Tensor.scatter)


def _check_index_copy(t, dim, index, source):
    own, other, count = array_of(t).shape, array_of(source).shape, array_of(index).size
    if index.ndim >= 2:
        raise IndexError(f"index_copy_(): Index should have dimension 1 or 0 (got {index.ndim})")
    if source.ndim == 0 and count != 1:
        raise IndexError(f"index_copy_(): When source is scalar, index should have one element (got {count})")
    if source.ndim != t.ndim and source.ndim and t.ndim:
        raise IndexError(
            "index_copy_(): When source and destination are not scalars, their dimensionality must match. Source "
            f"dimensionality ({source.ndim}), destination dimensionality ({t.ndim})"
        )
    if index.dtype.name != "int64":
        raise RuntimeError(f"index_copy_(): Expected a long tensor for index, but got {index.dtype.type_name}")
    if t.dtype is not source.dtype:
        raise RuntimeError(
            "index_copy_(): self and source expected to have the same dtype, but got (self) "
            f"{t.dtype.type_name} and (source) {source.dtype.type_name}"
        )
    slices = [shape[:dim] + shape[dim + 1 :] for shape in (own, other)]
    if slices[0] != slices[1]:
        shown = [" ".join(map(str, shape)) for shape in slices]
        raise RuntimeError(
            "index_copy_(): Source/destination tensor must have same slice shapes. Destination slice shape: "
            f"{shown[0]} at dimension {dim} and source slice shape: {shown[1]} at dimension {dim if other else 0}."
        )
    if source.ndim and count != other[dim]:
        raise IndexError(
            f"index_copy_(): Number of indices ({count}) should be equal to source.size(dim) ({other[dim]})"
        )
    length = own[dim] if own else 1
    wrong = first_outside(array_of(index), 0, length)
    if wrong is not None:
        raise IndexError(f"index_copy_(): index {wrong} is out of bounds for dimension {dim} with size {length}")


def index_fill_rule(n, g):
    return index_fill(g, n.args[0], n.saved(2), 0)


INDEX_FILL = declare(
    "index_fill",
    index_fill_rule,
    flags=LINEAR | INPLACE,
    kernel=kernels.index_copy,
    inputs="self _ index",
    attributes="dim",
    devices=(3, "value"),
    vmap_write="index_fill_",
    overloads="",
    float8="index_fill_cpu",
)


INDEX_FILL_UNRECORDED = variant(INDEX_FILL, flags=MAY_OVERLAP)  # for writes into expanded memory


def index_fill_tensor_rule(n, g):
    dim, index = n.args[0], n.saved(2)
    named = None
    if n.needs(1):
        if is_array(array_of(g)):
            named = mul(g, index_fill(zeros_at(array_of(g).shape, g), dim, index, 1)).sum()
            return index_fill(g, dim, index, 0) if n.needs(0) else None, named
        length = array_of(g).shape[dim] if g.ndim else 1
        places = tensor_of(np.unique(array_of(index) % max(length, 1)))
        named = index_select(g, dim, places).sum()
    return index_fill(g, dim, index, 0) if n.needs(0) else None, named


INDEX_FILL_TENSOR = declare(
    "index_fill.Tensor",
    index_fill_tensor_rule,
    flags=LINEAR | PRIVATE,
    kernel=kernels.index_copy,
    node="IndexFillBackward1",
    inputs="self value index",
    attributes="dim",
    float8="index_fill_cpu",
)

_FILL_SIGNATURES = ("int dim, Tensor index, Tensor value", "int dim, Tensor index, Number value")


def index_fill(input, dim, index, value, *, out=None):
    """Write `value`, a number or a 0-dim tensor, into the slices of a copy of `input` that `index` selects along `dim`.

    Negative indices count from the end. Saves `index`. Gradients: g with zeros there, and the sum of g there. Raises
    IndexError for an index out of bounds, RuntimeError for a value that has dimensions.

    >>> import cygrad
    >>> cygrad.zeros(3).index_fill(0, cygrad.tensor([0, -1]), 7)
    tensor([7., 0., 7.])
    """
    t = require(input, "index_fill")
    if not isinstance(index, Tensor) or not isinstance(value, (Tensor, int, float, complex)):
        raise messages.no_such_call("index_fill", (dim, index, value), {}, _FILL_SIGNATURES)
    d = dim_argument(dim, t.ndim, "index_fill", "dim", 1)
    filling = _filling(t, value)
    if index.dtype.name != "int64":
        raise IndexError("index_fill_(): Expected dtype int64 for index.")
    if index.ndim > 1:
        raise RuntimeError("Index has to be a vector/scalar")
    length = array_of(t).shape[d] if t.ndim else 1
    wrong = first_outside(array_of(index), -length, length)
    if wrong is not None:
        raise IndexError(f"index {wrong} is out of bounds for dimension {d} with size {length}")
    operands = d, array_of(index).reshape(-1), filling
    if out is t and writes_expanded(t, value, "index_fill_"):
        return placed(INDEX_FILL_UNRECORDED, operands, t, None, index, (d, filling), out)
    if isinstance(value, Tensor):
        if out is not t:
            check_gradient_of_part(t, value)
        return placed(INDEX_FILL_TENSOR, operands, t, value, index, (d,), out, copying.copy)
    return placed(INDEX_FILL, operands, t, None, index, (d, filling), out, copying.copy)


@rule("index_fill index_fill.Tensor")
def _index_fill(call):
    t, index = call.inputs[0], call.kept[2]
    dim, shape = line_of(call)
    value = call.inputs[1] if len(call.inputs) > 1 else tensor_of(call.args[1]).to(t.device)
    target = vectors(call, t)
    places = places_along(call, index, other_length(shape, dim, index.numel()), dim) % max(shape[dim], 1)
    named = target.new_zeros(target.shape).bool().scatter(dim + 1, places, value=True)
    values = call.near(value).to(t.dtype)
    found = where(named, values.view(len(values), *(1,) * len(shape)), target)
    return call.shaped(found, t.shape)


def _filling(t, value):
    """Return the fill value as a 0-dim array."""
    is_complex = value.is_complex() if isinstance(value, Tensor) else isinstance(value, complex)
    if is_complex and not t.is_complex():
        raise RuntimeError("index_fill_(): Converting complex Scalar to non-complex type is not supported")
    if not isinstance(value, Tensor):
        return copying.element(value, array_of(t).dtype)
    if value.ndim:
        raise RuntimeError(
            f"index_fill_ only supports a 0-dimensional value tensor, but got tensor with {value.ndim} dimension(s)."
        )
    return array_of(value).astype(array_of(t).dtype)


functions = publish(globals())
