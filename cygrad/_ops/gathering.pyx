"""Reading and adding along one dimension by index, and filling by mask."""

import warnings

import numpy as np

from cygrad._core.dtypes cimport BOOLEAN, COMPLEX, FLOATING
from cygrad._core.opdef cimport INPLACE, LINEAR, MAY_OVERLAP, PRIVATE, OpDef, OpNode, op, variant
from cygrad._core.inplace cimport check_apart
from cygrad._core.opdef import publish
from cygrad._core.record cimport begin_write, end_write, record_n, write_into
from cygrad._core.state cimport thread_state
from cygrad._core.tensor cimport Tensor, dtype_of, requires_grad, wrap
from cygrad._core import messages
from cygrad._kernels import copying, picking, scatter
from cygrad._kernels.strided cimport overlaps_itself
from cygrad._ops.arguments cimport broadcast_shape, dim_argument, require, wrap_dim
from cygrad._ops.arithmetic cimport mul
from cygrad._ops.copying cimport apart
from cygrad._ops.parts cimport slice_backward
from cygrad._ops.views cimport reshaped


cpdef int check_integral(Tensor index, str wanted) except -1:
    """`wanted` is what the error says: op, and how it names the types."""
    if dtype_of(index).name not in ("int64", "int32"):
        raise RuntimeError(wanted)
    return 0


cdef int keep(Tensor result, int slot, object value) except -1:
    if result.grad_fn_ is not None:
        (<OpNode>result.grad_fn_).save_input(slot, value)
    return 0


cpdef Tensor finished(OpDef op, object array, Tensor t, Tensor added, Tensor index, tuple args, Tensor out):
    """Record an op on `t` and `added` (or None) that saves `index`, or write its result into `out`."""
    if out is not None:
        check_apart(out, index)
        if added is not None or out is not t or not op.flags & (INPLACE | PRIVATE):
            check_apart(out, t if added is None else added)
        if out is not t:
            messages.check_out_type(array, out)
    cdef tuple inputs = (t,) if added is None else (t, added)
    cdef unsigned int mask = 0
    cdef Tensor result
    cdef OpNode node
    if out is None:
        result = record_n(op, array, inputs, args)
        keep(result, 2, index)
        return result
    if out is not t:
        return write_into(op, out, array, inputs, args)
    node = begin_write(op, t, inputs, args, &mask)
    if node is not None:
        node.save_input(2, index)
    np.copyto(t.array, array)
    return end_write(op, t, inputs, node, mask)


cdef bint writes_expanded(Tensor t, object value, str name) except -1:
    if not overlaps_itself(t.array):
        return False
    if not thread_state().modes and (requires_grad(t) or isinstance(value, Tensor) and requires_grad(<Tensor>value)):
        return False            # the gradient could not tell elements apart that are the same memory
    warnings.warn(f"Use of {name} on expanded tensors is deprecated. Please clone() the tensor before performing this "
                  "operation. This also applies to advanced indexing, as in `tensor[mask] = value`", UserWarning,
                  stacklevel=1)
    return True


cpdef int check_bounds(object index, Py_ssize_t length) except -1:
    """Raise unless 0 <= index < length."""
    if index.size and length == 0:
        raise RuntimeError("index_select(): self indexing axis dim should be positive")
    if index.size and (index.min() < 0 or index.max() >= length):
        raise IndexError("index out of range in self")
    return 0


# -- index_select, index_add -------------------------------------------------------------------------------

cdef object index_select_rule(OpNode n, object g):
    dim, shape = n.args
    zeros = wrap(np.zeros(shape, (<Tensor>g).array.dtype))
    return index_add(zeros, dim, n.saved(2), g)

cdef OpDef INDEX_SELECT = op("index_select", index_select_rule).row(
    flags=LINEAR, kernel=picking.index_select, inputs="self _ index", attributes="dim self_sym_sizes")

cpdef Tensor index_select(object input, object dim, object index, Tensor out=None):
    """The slices of `input` that the integers in `index`, a vector, name along `dim`.

    Saves `index`. Gradient: each slice of g, added at its place in zeros. Raises IndexError for an index that is not
    there (negative ones are not) or is no vector.

    >>> import cygrad
    >>> cygrad.index_select(cygrad.tensor([[1, 2], [3, 4]]), 1, cygrad.tensor([1, 1]))
    tensor([[2, 2],
            [4, 4]])
    """
    cdef Tensor t = require(input, "index_select")
    cdef Tensor where = require(index, "index_select", "index", 2)
    cdef int d = dim_argument(dim, t.array.ndim, "index_select", "dim", 1)
    if where.array.ndim > 1:
        raise IndexError("index_select(): Index is supposed to be a vector")
    check_integral(where, "index_select(): Expected dtype int32 or int64 for index")
    if out is not None and dtype_of(out) is not dtype_of(t):
        raise RuntimeError("index_select(): self and result must have the same scalar type")
    if t.array.ndim == 0 and where.array.size != 1:
        raise RuntimeError("index_select(): Index to scalar can have only 1 value, got "
                           f"{where.array.size} value(s)")
    check_bounds(where.array, t.array.shape[d] if t.array.ndim else 1)
    array = INDEX_SELECT.kernel(t.array, d, where.array.reshape(-1))
    return finished(INDEX_SELECT, array, t, None, where, (d, t.array.shape), out)


cdef object index_add_rule(OpNode n, object g):
    dim, alpha, shape = n.args
    grad = None
    if n.needs(1):
        grad = index_select(g, dim, n.saved(2))
        if alpha != 1:
            grad = mul(grad, alpha)
        if not shape:                   # a 0-dim source counts as a vector of one element
            grad = reshaped(grad, shape)
    return g, grad

cdef OpDef INDEX_ADD = op("index_add", index_add_rule).row(
    flags=LINEAR | INPLACE, kernel=scatter.index_add, inputs="self source index",
    attributes="dim alpha")

cpdef Tensor index_add(object input, object dim, object index, object source, object alpha=1, Tensor out=None):
    """`input` with `alpha` times each slice of `source` added to the slice that `index`, a vector, names along `dim`.

    Saves `index`. Gradients: g, and alpha times the named slices of g. Raises RuntimeError for shapes or types that do
    not fit, IndexError for an index that is not there.

    >>> import cygrad
    >>> cygrad.zeros(3).index_add(0, cygrad.tensor([0, 2, 2]), cygrad.tensor([1.0, 2.0, 3.0]))
    tensor([1., 0., 5.])
    """
    cdef Tensor t = require(input, "index_add")
    cdef Tensor where = require(index, "index_add", "index", 2)
    cdef Tensor added = require(source, "index_add", "source", 3)
    cdef int d = dim_argument(dim, t.array.ndim, "index_add", "dim", 1)
    check_slices("index_add", t, d, where, added)
    check_places(where.array, t.array.shape, d)
    array = INDEX_ADD.kernel(t.array, d, where.array.reshape(-1), added.array, alpha)
    return finished(INDEX_ADD, array, t, added, where, (d, alpha, added.array.shape), out)


cpdef int check_slices(str name, Tensor t, int dim, Tensor index, Tensor source) except -1:
    """Raise unless `index` is a vector that names a slice of `t` along `dim` for each slice of `source`."""
    cdef Py_ssize_t count
    shape, other = t.array.shape, source.array.shape
    if index.array.ndim > 1:
        raise IndexError(f"{name}_(): Index is supposed to be a vector, but got dim: "
                         f"{index.array.ndim} with type: {dtype_of(index).type_name} and size: {list(index.shape)}")
    check_integral(index, f"{name}_(): Expected dtype int32/int64 for index but got: " + dtype_of(index).type_name)
    if dtype_of(t) is not dtype_of(source):
        raise RuntimeError(f"{name}_(): self (" + dtype_of(t).type_name + ") and source (" +
                           dtype_of(source).type_name + ") must have the same scalar type")
    if other and len(other) <= dim:
        raise RuntimeError(
            f"{name}_(): Indexing dim {dim} is out of bounds of the source tensor with dim {len(other)}")
    count = other[dim] if other else 1
    if index.array.size != count:
        raise RuntimeError(f"{name}_(): Number of indices ({index.array.size}) should be equal to source.size(dim):"
                           f" ({count}), for dim: {dim}")
    if len(shape) != len(other) or shape[:dim] + shape[dim + 1:] != other[:dim] + other[dim + 1:]:
        raise RuntimeError(f"source tensor shape must match self tensor shape, excluding the specified dimension. Got "
                           f"self.shape = {list(shape)} source.shape = {list(other)}")
    return 0


cdef int check_places(object index, tuple shape, int dim) except -1:
    return check_each(index, shape, dim) if len(shape) > 1 else check_bounds(index, shape[0] if shape else 1)


# -- gather, scatter_add -----------------------------------------------------------------------------------

cdef object gather_rule(OpNode n, object g):
    dim, shape = n.args
    zeros = wrap(np.zeros(shape, (<Tensor>g).array.dtype))
    return scatter_add(zeros, dim, n.saved(2), g)

cdef OpDef GATHER = op("gather", gather_rule).row(
    flags=LINEAR, kernel=picking.gather, inputs="self _ index", attributes="dim self_sym_sizes")

cpdef Tensor gather(object input, object dim, object index, bint sparse_grad=False, Tensor out=None):
    """Elements of `input` at their own place, but at `index` along `dim`: out[i][j] = input[index[i][j]][j] for dim 0.

    `index` has the shape of the result, nowhere larger than `input` but along `dim`. Saves `index`. Gradient: each
    element of g, added at its place in zeros. Raises RuntimeError for an index that does not fit or is not there.

    >>> import cygrad
    >>> cygrad.gather(cygrad.tensor([[1, 2], [3, 4]]), 1, cygrad.tensor([[0, 0], [1, 0]]))
    tensor([[1, 1],
            [4, 3]])
    """
    cdef Tensor t = require(input, "gather")
    cdef Tensor where = require(index, "gather", "index", 2)
    cdef int d = dim_argument(dim, t.array.ndim, "gather", "dim", 1)
    check_integral(where, "gather(): Expected dtype int32/int64 for index")
    check_gather(t.array.shape, where, d)
    array = GATHER.kernel(t.array, d, where.array)
    return finished(GATHER, array, t, None, where, (d, t.array.shape), out)


cdef int check_gather(tuple shape, Tensor index, int dim) except -1:
    other = index.array.shape
    if index.array.size == 0:
        return 0
    if max(len(shape), 1) != max(len(other), 1):
        raise RuntimeError("Index tensor must have the same number of dimensions as input tensor")
    for d in range(min(len(shape), len(other))):
        if d != dim and other[d] > shape[d]:
            raise RuntimeError(f"Size does not match at dimension {d} expected index {list(other)} to be no larger than "
                               f"self {list(shape)} apart from dimension {dim}")
    return check_each(index.array, shape, dim)


cpdef int check_each(object index, tuple shape, int dim) except -1:
    cdef Py_ssize_t length = shape[dim] if shape else 1
    if index.size and (index.min() < 0 or index.max() >= length):
        wrong = index[(index < 0) | (index >= length)].reshape(-1)[0]
        raise RuntimeError(f"index {wrong} is out of bounds for dimension {dim} with size {length}")
    return 0


cdef object scatter_add_rule(OpNode n, object g):
    dim, shape = n.args
    return g, padded(gather(g, dim, n.saved(2)), shape) if n.needs(1) else None


cpdef Tensor padded(Tensor g, tuple shape):
    """`g` with zeros behind its end wherever `shape` is larger."""
    cdef tuple own = g.array.shape
    cdef int d
    if len(own) != len(shape):      # a 0-dim tensor counts as a vector of one element
        return reshaped(g, shape)
    for d in range(len(shape)):
        if own[d] < shape[d]:
            own = own[:d] + shape[d:d + 1] + own[d + 1:]
            g = slice_backward(g, own, d, 0, 1)
    return g

cdef OpDef SCATTER_ADD = op("scatter_add", scatter_add_rule).row(
    flags=LINEAR | INPLACE, kernel=scatter.scatter_add, inputs="self src index", attributes="dim")

cpdef Tensor scatter_add(object input, object dim, object index, object src, Tensor out=None):
    """`input` with each element of `src` added at its own place, but at `index` along `dim`; undoes `gather`.

    Saves `index`. Gradients: g, and what `gather` reads from g. Raises RuntimeError for an index that does not fit or
    is not there.

    >>> import cygrad
    >>> cygrad.zeros(3).scatter_add(0, cygrad.tensor([0, 2, 2]), cygrad.tensor([1.0, 2.0, 3.0]))
    tensor([1., 0., 5.])
    """
    cdef Tensor t = require(input, "scatter_add")
    cdef Tensor where = require(index, "scatter_add", "index", 2)
    cdef Tensor added = require(src, "scatter_add", "src", 3)
    cdef int d = dim_argument(dim, t.array.ndim, "scatter_add", "dim", 1)
    check_integral(where, "scatter(): Expected dtype int32/int64 for index")
    if dtype_of(t) is not dtype_of(added):
        raise RuntimeError("scatter(): Expected self.dtype to be equal to src.dtype")
    check_scatter(t.array.shape, where, added.array.shape, d)
    array = SCATTER_ADD.kernel(t.array, d, where.array, added.array) if where.array.size else t.array.copy()
    return finished(SCATTER_ADD, array, t, added, where, (d, added.array.shape), out)


cpdef int check_scatter(tuple shape, Tensor index, tuple source, int dim) except -1:
    other = index.array.shape
    if index.array.size == 0:
        return 0
    if max(len(shape), 1) != max(len(other), 1):
        raise RuntimeError("Index tensor must have the same number of dimensions as self tensor")
    if max(len(source), 1) != max(len(other), 1):
        wrap_dim(len(other) - 1, len(source))
        raise RuntimeError("Index tensor must have the same number of dimensions as src tensor")
    for d in range(len(other)):
        if (d != dim and d < len(shape) and other[d] > shape[d]) or (d < len(source) and other[d] > source[d]):
            raise RuntimeError(f"Expected index {list(other)} to be no larger than self {list(shape)} apart from "
                               f"dimension {dim} and to be no larger size than src {list(source)}")
    return check_each(index.array, shape, dim)


# -- masked_fill -------------------------------------------------------------------------------------------

cdef object masked_fill_rule(OpNode n, object g):
    return masked_fill(g, n.saved(2), 0)

cdef OpDef MASKED_FILL = op("masked_fill", masked_fill_rule).row(
    flags=LINEAR | INPLACE, kernel=picking.masked_fill, inputs="self _ mask", attributes="value")

cdef object masked_fill_tensor_rule(OpNode n, object g):
    mask = n.saved(2)
    return (masked_fill(g, mask, 0) if n.needs(0) else None,
            masked_fill(g, wrap(~(<Tensor>mask).array), 0) if n.needs(1) else None)

cdef OpDef MASKED_FILL_TENSOR = op("masked_fill.Tensor", masked_fill_tensor_rule).row(
    flags=LINEAR | PRIVATE, node="MaskedFillBackward1", inputs="self value mask")
cdef OpDef MASKED_FILL_UNRECORDED = variant(MASKED_FILL)      # of integers, and into expanded memory
MASKED_FILL_UNRECORDED.flags |= MAY_OVERLAP

cpdef Tensor masked_fill(object input, object mask, object value, Tensor out=None):
    """`input` with `value`, a number or a 0-dim tensor, where the boolean `mask` holds; both broadcast.

    Saves `mask`. Gradient: g with zeros where the mask holds; the sum of g there for `value`. Raises RuntimeError for
    a mask that is not boolean, shapes that do not broadcast, and a value that the dtype can not hold.

    >>> import cygrad
    >>> cygrad.tensor([1.0, 2.0]).masked_fill(cygrad.tensor([True, False]), 0)
    tensor([0., 2.])
    """
    cdef Tensor t = require(input, "masked_fill")
    cdef unsigned int written = 0
    cdef OpNode node
    cdef Tensor result
    if not isinstance(mask, Tensor) or not isinstance(value, (Tensor, int, float, complex)):
        raise messages.no_such_call("masked_fill", (mask, value), {}, (
            "Tensor mask, Tensor value", "Tensor mask, Number value"))
    if out is t:
        value = apart(value, t)
    element = mask_value(t, <Tensor>mask, value)
    shape = broadcast_shape((<Tensor>mask).array.shape, t.array.shape)
    inputs = (t, value) if isinstance(value, Tensor) else (t,)
    row = MASKED_FILL_UNRECORDED if dtype_of(t).category < FLOATING else (
        MASKED_FILL_TENSOR if isinstance(value, Tensor) else MASKED_FILL)
    if out is None:
        result = record_n(row, MASKED_FILL.kernel(t.array, element, (<Tensor>mask).array), inputs, (value,))
        keep(result, 2, mask)
        return result
    if out is not t:
        return write_into(row, out, MASKED_FILL.kernel(t.array, element, (<Tensor>mask).array), inputs, (value,))
    if shape != t.array.shape:
        raise RuntimeError(f"output with shape {list(t.array.shape)} doesn't match the broadcast shape {list(shape)}")
    if writes_expanded(t, value, "masked_fill_"):
        row = MASKED_FILL_UNRECORDED
    node = begin_write(row, t, inputs, (value,), &written)
    if node is not None:
        node.save_input(2, mask)
    picking.fill_where(t.array, element, (<Tensor>mask).array)
    return end_write(row, t, inputs, node, written)


cdef object mask_value(Tensor t, Tensor mask, object value):
    """The value to fill with as a 0-dim array, after all checks."""
    cdef Tensor filling
    if dtype_of(mask).category != BOOLEAN:
        raise RuntimeError("masked_fill_ only supports boolean masks, but got mask with dtype "
                           f"{messages.c_word(mask)}")
    if not isinstance(value, Tensor):
        return copying.element(value, t.array.dtype)
    filling = value
    if filling.array.ndim:
        raise RuntimeError("masked_fill_ only supports a 0-dimensional value tensor, but got tensor with "
                           f"{filling.array.ndim} dimension(s).")
    if dtype_of(filling).category == COMPLEX:
        return copying.element(filling.array.item(), t.array.dtype)
    return filling.array


functions = publish(globals())
