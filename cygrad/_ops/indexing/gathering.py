"""Indexed reads and additions along one dimension: gather, index_select, index_add, scatter_add."""

import math
from functools import lru_cache

import numpy as np

from cygrad._core.errors import messages
from cygrad._core.graph.dual import keep
from cygrad._core.graph.inplace import check_apart
from cygrad._core.graph.internals import array_of, memory_of, tensor_of
from cygrad._core.graph.opdef import INPLACE, LINEAR, PRIVATE, declare, publish
from cygrad._core.graph.record import record_n, write_into, written_in_place
from cygrad._core.graph.tensor import Tensor
from cygrad._kernels.cpu.base import chunks, copying, loop_table
from cygrad._kernels.cpu.base.copying import contiguous
from cygrad._kernels.cpu.indexing import indexing
from cygrad._kernels.cpu.indexing import scatter as kernels
from cygrad._kernels.device import gpu_forms
from cygrad._kernels.tape.calls import called, noted
from cygrad._kernels.tape.tape import is_open
from cygrad._ops.base.arguments import dim_argument, require, wrap_dim
from cygrad._ops.base.arithmetic import mul
from cygrad._ops.base.batching.rules import rule, vectors
from cygrad._ops.base.reductions import sum as total
from cygrad._ops.base.slicing import slice_backward
from cygrad._ops.base.views import expand, reshape


def check_integral(index, wanted):
    """Raise unless the index is int32 or int64; `wanted` is the error message."""
    if index.dtype.name not in ("int64", "int32"):
        raise RuntimeError(wanted)


def of_any_type(index):
    """Return an index, converted to int64 if it is empty, since then any dtype is valid."""
    return index if index.numel() else index.long()


def index_for_writing(index, t):
    """The same for an index of a write to `t`; if empty, it may also have any shape."""
    return index if array_of(index).size else reshape(index.long(), (0,) * max(t.ndim, 1))


def keeping(result, value):
    """Save `value` as the third saved tensor of the result's node and return the result."""
    keep(result, 2, value)
    return result


def finished(op, array, t, added, index, args, out):
    """Record an op on `t` and `added` (or None) that saves `index`, or write its result into `out`."""
    if out is not None:
        for operand in (index, t if added is None else added) if isinstance(out, Tensor) else ():
            check_apart(out, operand)
    inputs = (t,) if added is None else (t, added)
    if out is None:
        return keeping(record_n(op, array, inputs, args, index), index)
    if out is not t:
        return write_into(op, out, array, inputs, args)
    return written_in_place(op, t, inputs, args, index, lambda: np.copyto(array_of(t), array))


def placed(op, operands, t, added, index, args, out, copy=copying.contiguous):
    """Like `finished`, for a kernel that modifies an array: a copy of that of `t`, or that array itself in place."""
    if out is not t:
        array = copy(array_of(t))
        run_kernel(op, array, operands)
        return finished(op, array, t, added, index, args, out)
    inputs = (t,) if added is None else (t, added)
    for operand in (index, *inputs[1:]):
        check_apart(t, operand)
    return written_in_place(op, t, inputs, args, index, lambda: run_kernel(op, array_of(t), operands))


def is_dense(a):
    """Whether an array is on the CPU, C-contiguous and writable, so that elements can be added in place."""
    return type(a) is np.ndarray and a.ndim > 0 and a.flags.carray


def added_within(op, t, added, index, args, add):
    """Like `finished` in place, for an op that adds directly to the array of `t`."""
    for operand in (index, added):
        check_apart(t, operand)
    return written_in_place(op, t, (t, added), args, index, add)


def run_kernel(op, array, operands):
    kernel = gpu_forms.fitting(op.kernel, array)
    (noted(kernel) if is_open() else kernel)(array, *operands)


@noted
def check_bounds(index, length, names_it=False):
    """Raise unless 0 <= index < length; `names_it` tells which of PyTorch's two errors to raise.

    An index on a GPU is not checked, which would force a synchronization.
    """
    if index.size and length == 0:
        raise RuntimeError("index_select(): self indexing axis dim should be positive")
    if index.size and not gpu_forms.is_array(index) and _is_outside(index, length):
        if names_it:
            wrong = index[(index < 0) | (index >= length)].flat[0]
            raise RuntimeError(f"INDICES element is out of DATA bounds, id={wrong} axis_dim={length}")
        raise IndexError("index out of range in self")


def _is_outside(index, length):
    found = loop_table.outside(index, length)
    if found is not None:
        return found
    if index.dtype != np.int64:
        return index.min() < 0 or index.max() >= length
    return index.view(np.uint64).max() >= length  # as unsigned integers, negative ones are large


# -- index_select, index_add --


def zeros_at(shape, g):
    """Return zeros of g's dtype, to be copied; large ones are a broadcast view of a single element."""
    like = memory_of(g)
    few = math.prod(shape) <= chunks.SIZE
    own = shape if few else ()
    zeros = _zeros(own, like.dtype) if type(like) is np.ndarray else np.zeros(own, like.dtype, like=like)
    return tensor_of(zeros if few else np.broadcast_to(zeros, shape))


_zeros = noted(np.zeros)


def index_select_rule(n, g):
    dim, shape = n.args
    return index_add(zeros_at(shape, g), dim, n.saved(2), g)


INDEX_SELECT = declare(
    "index_select",
    index_select_rule,
    flags=LINEAR,
    kernel=indexing.index_select,
    inputs="self _ index",
    attributes="dim self_sym_sizes",
    devices="together",
)


def index_select(input, dim, index, *, out=None):
    """Return the slices of `input` along `dim` at the integers in the vector `index`.

    Saves `index`. Gradient: the slices of g, added to zeros at those indices. Raises IndexError for an index out of
    range (negative ones are; RuntimeError if `dim` is 1 or `input` is empty) or with more than one dimension.

    >>> import cygrad
    >>> cygrad.index_select(cygrad.tensor([[1, 2], [3, 4]]), 1, cygrad.tensor([1, 1]))
    tensor([[2, 2],
            [4, 4]])
    """
    a, where = array_of(require(input, "index_select")), array_of(require(index, "index_select", "index", 2))
    d = dim_argument(dim, a.ndim, "index_select", "dim", 1)
    if where.ndim > 1:
        raise IndexError("index_select(): Index is supposed to be a vector")
    check_integral(index, "index_select(): Expected dtype int32 or int64 for index")
    if out is not None and not isinstance(out, Tensor):
        raise messages.wrong_keyword("index_select", "out", "Tensor", out)
    if out is not None and out.dtype is not input.dtype:
        raise RuntimeError("index_select(): self and result must have the same scalar type")
    if a.ndim == 0 and where.size != 1:
        raise RuntimeError(f"index_select(): Index to scalar can have only 1 value, got {where.size} value(s)")
    check_bounds(where, a.shape[d] if a.ndim else 1, a.ndim > 1 and (d == 1 or not a.size))
    array = indexing.index_select(a, d, where.reshape(-1))
    return finished(INDEX_SELECT, array, input, None, index, (d, a.shape), out)


@rule("index_select")
def _index_select(call):
    t, index = call.inputs[0], call.kept[2]
    dim, shape = line_of(call)
    if call.has(index):
        places = places_along(call, index, other_length(shape, dim, index.numel()), dim)
        found = vectors(call, t).gather(dim + 1, places)
    else:
        found = vectors(call, t).index_select(dim + 1, index)
    return call.shaped(found, call.out.shape)


def line_of(call):
    """Return (the dimension along which an op on slices ran, the shape of its samples, or (1,) if they are 0-dim)."""
    t = call.inputs[0]
    return call.args[0] % max(t.ndim, 1), t.shape or (1,)


def other_length(shape, dim, length):
    return (*shape[:dim], length, *shape[dim + 1 :])


def places_along(call, index, shape, dim):
    """Return a batch of indices along a dimension, as `gather` and `scatter` need them for samples of `shape`."""
    places = call.full(index).reshape(call.size, *(1,) * dim, index.numel(), *(1,) * (len(shape) - dim - 1))
    return places.expand(call.size, *shape)


def index_add_rule(n, g):
    dim, alpha, shape = n.args
    grad = None
    if n.needs(1):
        grad = index_select(g, dim, n.saved(2))
        if alpha != 1:
            grad = mul(grad, alpha)
        if not shape:  # a 0-dim source counts as a vector of one element
            grad = reshape(grad, shape)
    return g, grad


INDEX_ADD = declare(
    "index_add",
    index_add_rule,
    flags=LINEAR | INPLACE,
    kernel=kernels.index_add,
    inputs="self source index",
    attributes="dim alpha",
    devices="together",
    out_dtype="same",
    vmap_write="index_add_",
    derived={"source_dim": lambda n: len(n.args[2])},
    float8="scatter_gather_tensor_cpu",
)


def index_add(input, dim, index, source, *, alpha=1, out=None):
    """Add `alpha` times each slice of `source` to the slice of `input` along `dim` at the integer in vector `index`.

    Saves `index`. Gradients: g, and alpha times the slices of g at `index`. Raises RuntimeError for incompatible shapes
    or dtypes, IndexError for an index out of range.

    >>> import cygrad
    >>> cygrad.zeros(3).index_add(0, cygrad.tensor([0, 2, 2]), cygrad.tensor([1.0, 2.0, 3.0]))
    tensor([1., 0., 5.])
    """
    t, added = require(input, "index_add"), require(source, "index_add", "source", 3)
    a, where = array_of(t), array_of(require(index, "index_add", "index", 2))
    d = dim_argument(dim, a.ndim, "index_add", "dim", 1)
    check_slices("index_add", t, d, index, added)
    if a.ndim > 1:
        check_each(where, a.shape, d)
    else:
        check_bounds(where, a.shape[0] if a.ndim else 1)
    operands, args = (where.reshape(-1), array_of(added), alpha), (d, alpha, array_of(added).shape)
    if out is t and d == 0 and is_dense(a):
        return added_within(INDEX_ADD, t, added, index, args, lambda: called(kernels.index_add_to, a, *operands))
    return finished(INDEX_ADD, kernels.index_add(a, d, *operands), t, added, index, args, out)


@rule("index_add")
def _index_add(call):
    alpha = call.args[1]
    return slices_written(
        call,
        lambda t, dim, index, source: t.index_add(dim, index, source, alpha=alpha),
        lambda t, dim, index, source: t.scatter_add(dim, index, source if alpha == 1 else source * alpha),
    )


def slices_written(call, write, scatter):
    """Return samples into which slices are written: by `write`, or by `scatter` if each sample has its own index.

    Both take (tensor, dim, index, source), and `scatter` an index for each element.
    """
    (t, source), index = call.inputs, call.kept[2]
    dim, shape = line_of(call)
    shape = other_length(shape, dim, index.numel())
    target, values = vectors(call, t), call.shaped(call.full(source), shape)
    if call.has(index):
        found = scatter(target, dim + 1, places_along(call, index, shape, dim), values)
    else:
        found = write(target, dim + 1, index, values)
    return call.shaped(found, t.shape)


def check_slices(name, t, dim, index, source):
    """Raise unless `index` is a vector with one index into `t` along `dim` for each slice of `source`."""
    shape, other = tuple(t.shape), tuple(source.shape)
    if index.ndim > 1:
        raise IndexError(
            f"{name}_(): Index is supposed to be a vector, but got dim: {index.ndim} with type: "
            f"{index.dtype.type_name} and size: {list(index.shape)}"
        )
    check_integral(index, f"{name}_(): Expected dtype int32/int64 for index but got: " + index.dtype.type_name)
    if t.dtype is not source.dtype:
        raise RuntimeError(
            f"{name}_(): self ({t.dtype.type_name}) and source ({source.dtype.type_name}) must have the same scalar "
            "type"
        )
    if other and len(other) <= dim:
        raise RuntimeError(f"{name}_(): Indexing dim {dim} is out of bounds of the source tensor with dim {len(other)}")
    count = other[dim] if other else 1
    if index.numel() != count:
        raise RuntimeError(
            f"{name}_(): Number of indices ({index.numel()}) should be equal to source.size(dim): ({count}), for dim: "
            f"{dim}"
        )
    if len(shape) != len(other) or shape[:dim] + shape[dim + 1 :] != other[:dim] + other[dim + 1 :]:
        raise RuntimeError(
            "source tensor shape must match self tensor shape, excluding the specified dimension. Got "
            f"self.shape = {list(shape)} source.shape = {list(other)}"
        )


# -- gather, scatter_add --


def gather_rule(n, g):
    dim, shape = n.args
    index = n.saved(2)  # which may have any shape if it is empty
    return put_back(g, dim, index, shape) if index.numel() else expand(total(g), shape)


GATHER = declare(
    "gather",
    gather_rule,
    flags=LINEAR,
    kernel=indexing.gather,
    inputs="self _ index",
    attributes="dim self_sym_sizes",
    devices="together",
    out_dtype="same",
    derived={"sparse_grad": False},
    float8="scatter_gather_tensor_cpu",
)


def gather(input, dim, index, *, sparse_grad=False, out=None):
    """Read elements of `input` at `index` along `dim`: for dim 0, out[i][j] = input[index[i][j]][j].

    `index` has the shape of the result, which must not exceed `input` in any dimension but `dim`. Saves `index`.
    Gradient: the elements of g, added to zeros at those positions. Raises RuntimeError for an index that is out of
    range or of incompatible shape.

    >>> import cygrad
    >>> cygrad.gather(cygrad.tensor([[1, 2], [3, 4]]), 1, cygrad.tensor([[0, 0], [1, 0]]))
    tensor([[1, 1],
            [4, 3]])
    """
    a, index = array_of(require(input, "gather")), require(index, "gather", "index", 2)
    d = dim_argument(dim, a.ndim, "gather", "dim", 1)
    index = of_any_type(index)
    check_integral(index, "gather(): Expected dtype int32/int64 for index")
    where = array_of(index)
    array = indexing.gather_by_loop(a, d, where)
    if array is None:
        check_gather(a.shape, where, d)
        array = indexing.gather(a, d, where)
    return finished(GATHER, array, input, None, index, (d, a.shape), out)


@rule("gather")
def _gather(call):
    t, index = call.inputs[0], call.kept[2]
    if not index.numel():  # whose shape may be any
        zero = call.full(t).flatten(1).sum(1).to(t.dtype) if t.ndim else call.full(t)
        return zero.view(call.size, *(1,) * index.ndim).expand(call.size, *index.shape)
    found = vectors(call, t).gather(line_of(call)[0] + 1, vectors(call, index))
    return call.shaped(found, call.out.shape)


def put_back_rule(n, h):
    return gather(h, n.args[0], n.saved(2))


PUT_BACK = declare("put_back", put_back_rule, flags=LINEAR | PRIVATE, node="ScatterAddBackward0", inputs="grad _ index")


def put_back(g, dim, index, shape, array=None):
    """Add each element of g to zeros, at `index` along `dim`: the transpose of `gather`.

    `array` is the result, if it has been computed already.
    """
    if array is None:
        array = kernels.scattered(shape, dim, array_of(index), array_of(g))
    return finished(PUT_BACK, array, g, None, index, (dim, tuple(shape)), None)


@rule("put_back")
def _put_back(call):
    g, (dim, shape) = call.inputs[0], call.args
    zeros = call.full(g).new_zeros((call.size, *(shape or (1,))))
    if not g.numel():
        return zeros.view(call.size, *shape)
    found = zeros.scatter_add(dim % max(len(shape), 1) + 1, vectors(call, call.kept[2]), vectors(call, g))
    return call.shaped(found, shape)


def check_gather(shape, index, dim):
    if index.size == 0:
        return
    if max(len(shape), 1) != max(index.ndim, 1):
        raise _other_dimensions("input", shape, index.shape)
    for d, (length, wanted) in enumerate(zip(shape, index.shape)):
        if d != dim and wanted > length:
            raise RuntimeError(
                f"Size does not match at dimension {d} expected index {list(index.shape)} to be no larger than "
                f"self {list(shape)} apart from dimension {dim}"
            )
    check_each(index, shape, dim)


@noted
def check_each(index, shape, dim):
    """Raise unless 0 <= index < the length of a dimension; see `check_bounds`."""
    length = shape[dim] if shape else 1
    if gpu_forms.is_array(index):
        return
    is_outside = loop_table.outside(index, length)
    if is_outside is None and index.size:
        if 0 in index.strides:  # check expanded elements only once
            index = index[tuple([slice(None if stride else 1) for stride in index.strides])]
        is_outside = _is_outside(index, length)
    if is_outside:
        wrong = index[(index < 0) | (index >= length)].reshape(-1)[0]
        raise RuntimeError(f"index {wrong} is out of bounds for dimension {dim} with size {length}")


def scatter_add_rule(n, g):
    dim, shape = n.args
    return g, padded(gather(g, dim, n.saved(2)), shape) if n.needs(1) else None


def padded(g, shape):
    """Pad `g` with zeros at the end of each dimension in which `shape` is larger."""
    own = tuple(g.shape)
    if len(own) != len(shape):  # a 0-dim tensor counts as a vector of one element
        return reshape(g, shape)
    for d, length in enumerate(shape):
        if own[d] < length:
            own = own[:d] + (length,) + own[d + 1 :]
            g = slice_backward(g, own, d, 0, 1)
    return g


SCATTER_ADD = declare(
    "scatter_add",
    scatter_add_rule,
    flags=LINEAR | INPLACE,
    kernel=kernels.scatter_add,
    inputs="self src index",
    attributes="dim",
    devices="together",
    autocast_gpu="widest",
    out_dtype="same",
    vmap_write="scatter_add_",
    float8="scatter_gather_tensor_cpu",
)


def scatter_add(input, dim, index, src, *, out=None):
    """Add the elements of `src` to `input` at `index` along `dim`: for dim 0, out[index[i][j]][j] += src[i][j].

    The transpose of `gather`. Saves `index`. Gradients: g, and g gathered at `index`. Raises RuntimeError for an index
    that is out of range or of incompatible shape.

    >>> import cygrad
    >>> cygrad.zeros(3).scatter_add(0, cygrad.tensor([0, 2, 2]), cygrad.tensor([1.0, 2.0, 3.0]))
    tensor([1., 0., 5.])
    """
    t, added = require(input, "scatter_add"), require(src, "scatter_add", "src", 3)
    a, index = array_of(t), require(index, "scatter_add", "index", 2)
    d = dim_argument(dim, a.ndim, "scatter_add", "dim", 1)
    index = index_for_writing(index, t)
    check_integral(index, "scatter(): Expected dtype int32/int64 for index")
    check_same_dtype(t, added)
    where = array_of(index)
    source = array_of(added)
    check_scatter(a.shape, where, source.shape, d)
    if out is t and where.size and is_dense(a):
        args = d, source.shape
        return added_within(SCATTER_ADD, t, added, index, args, lambda: called(kernels.add_at, a, d, where, source))
    array = kernels.scatter_add(a, d, where, source) if where.size else contiguous(a)
    return finished(SCATTER_ADD, array, t, added, index, (d, source.shape), out)


@rule("scatter_add")
def _scatter_add(call):
    return scattered(call, lambda t, dim, index: t.scatter_add(dim, index, vectors(call, call.inputs[1])))


def scattered(call, scatter):
    """Return the samples after `scatter(tensor, dim, index)`."""
    t, index = call.inputs[0], call.kept[2]
    if not index.numel():
        return call.full(t).clone()
    return call.shaped(scatter(vectors(call, t), line_of(call)[0] + 1, vectors(call, index)), t.shape)


def _other_dimensions(name, shape, index):
    return RuntimeError(
        f"Index tensor must have the same number of dimensions as {name} tensor\n"
        f"  the index has shape {tuple(index)}, {name} has shape {tuple(shape)}"
    )


def check_same_dtype(t, source):
    """Raise unless the source has the dtype of the tensor it is scattered into."""
    if t.dtype is not source.dtype:
        raise RuntimeError(
            "scatter(): Expected self.dtype to be equal to src.dtype\n"
            f"  self is {t.dtype}, src is {source.dtype}: convert it, as in src.to(self.dtype)"
        )


def check_scatter(shape, where, source, dim):
    """Raise unless an index array fits the shapes of the target and the source and is within bounds."""
    if where.size:
        _check_sizes(shape, where.shape, source, dim)
        check_each(where, shape, dim)


@lru_cache(256)
def _check_sizes(shape, other, source, dim):
    """Raise unless the index, of shape `other`, is no larger than the source and (except along `dim`) the target."""
    if max(len(shape), 1) != max(len(other), 1):
        raise _other_dimensions("self", shape, other)
    if max(len(source), 1) != max(len(other), 1):
        wrap_dim(len(other) - 1, len(source))
        raise _other_dimensions("src", source, other)
    for d, length in enumerate(other):
        if (d != dim and d < len(shape) and length > shape[d]) or (d < len(source) and length > source[d]):
            raise RuntimeError(
                f"Expected index {list(other)} to be no larger than self {list(shape)} apart from dimension {dim} and "
                f"to be no larger size than src {list(source)}"
            )


functions = publish(globals())
