"""The largest and smallest elements, and where they are.

nan counts as larger than all numbers for the largest, as smaller for the smallest. For `dim`, `keepdim`, `axis`,
`keepdims` see reductions.pyx.
"""

import numpy as np

from cygrad._core.dtypes cimport BOOLEAN, COMPLEX
from cygrad._core.opdef cimport IN0, IN1, LINEAR, NONDIFF, OUT0, PRIVATE, OpDef, OpNode, op
from cygrad._core.opdef import publish
from cygrad._core.record cimport record2, record_outputs, tensor_argument, write_into
from cygrad._core.tensor cimport Tensor, dtype_of
cimport cygrad._kernels.reduce as reduce
from cygrad._kernels import along
cimport cygrad._ops.arguments as arguments
from cygrad._ops.arithmetic cimport div, mul
from cygrad._ops.reductions cimport axes_argument, finish, flag_argument, restored, sum_over
from cygrad._ops.selection cimport maximum, minimum, where
from cygrad._core import messages, return_types


# -- of all elements: the gradient is shared between equal ones ----------------------------------------------

cdef object share_between_equals(OpNode n, object g):
    """For `max` and `min` of all elements."""
    x, extreme = <Tensor>n.saved(0), <Tensor>n.saved_result()
    reached = (x != x) if np.isnan(extreme.array) else (x == extreme)
    return where(reached, div(g, int(np.count_nonzero((<Tensor>reached).array))), 0.0)

cdef OpDef MAX = op("max", share_between_equals).row(saves=IN0 | OUT0, inputs="self", node="MaxBackward1")
cdef OpDef MIN = op("min", share_between_equals).row(saves=IN0 | OUT0, inputs="self", node="MinBackward1")


# -- along a dimension: the gradient goes to the element whose index is returned ------------------------------

cdef object value_selecting_reduction_rule(OpNode n, object g):
    dim, keepdim, shape = n.args
    return value_selecting_reduction_backward(<Tensor>g, <Tensor>n.saved(1), shape, dim, keepdim), None

cdef OpDef VALUE_SELECTING_REDUCTION = op("value_selecting_reduction", value_selecting_reduction_rule).row(
    saves=(IN1,), flags=LINEAR | PRIVATE, kernel=along.select_along, inputs="self indices")

cpdef Tensor value_selecting_reduction(Tensor t, Tensor indices, int dim, bint keepdim):
    """The elements of `t` at `indices` along `dim`."""
    array = along.select_along(t.array, indices.array, dim, keepdim)
    return record2(VALUE_SELECTING_REDUCTION, array, t, indices, (dim, keepdim, t.array.shape))


cdef object value_selecting_reduction_backward_rule(OpNode n, object g):
    dim, keepdim = n.args
    return value_selecting_reduction(<Tensor>g, <Tensor>n.saved(1), dim, keepdim), None

cdef OpDef VALUE_SELECTING_REDUCTION_BACKWARD = op(
    "value_selecting_reduction_backward", value_selecting_reduction_backward_rule).row(
    saves=(IN1,), flags=LINEAR | PRIVATE, kernel=along.place_along, inputs="grad indices")

cpdef Tensor value_selecting_reduction_backward(Tensor g, Tensor indices, tuple shape, int dim, bint keepdim):
    """Zeros with g at `indices` along `dim`."""
    array = along.place_along(g.array, indices.array, shape, dim, keepdim)
    return record2(VALUE_SELECTING_REDUCTION_BACKWARD, array, g, indices, (dim, keepdim))


cdef object along_dim_rule(OpNode n, object g):
    dim, keepdim, shape = n.args
    return value_selecting_reduction_backward(<Tensor>g, <Tensor>n.saved(1), shape, dim, keepdim)

cdef OpDef MAX_DIM = op("max.dim", along_dim_rule).row(
    saves=(0, IN1), flags=PRIVATE, inputs="self indices", attributes="dim keepdim self_sym_sizes", node="MaxBackward0")
cdef OpDef MIN_DIM = op("min.dim", along_dim_rule).row(
    saves=(0, IN1), flags=PRIVATE, inputs="self indices", attributes="dim keepdim self_sym_sizes", node="MinBackward0")

cdef tuple MAX_SIGNATURES = (
    "Tensor input, *, Tensor out = None", "Tensor input, Tensor other, *, Tensor out = None",
    "Tensor input, int dim, bool keepdim = False, *, tuple of Tensors out = None")


def max(input, dim=None, keepdim=False, *, other=None, axis=None, keepdims=None, out=None):
    """The largest element; with `dim` (an int) the largest ones along it and where they are; or of two tensors.

    - `max(input)`: the largest of all elements. Gradient: g, shared by all that are equal to it.
    - `max(input, dim)`: a tuple (values, indices) with these names. Gradient: g to the element at the index; of equal
      ones the first is taken.
    - `max(input, other)`: `maximum(input, other)`.

    Raises RuntimeError for no elements, IndexError for a dimension that is not there or is empty,
    NotImplementedError for complex tensors.

    >>> import cygrad
    >>> x = cygrad.tensor([[1.0, 5.0], [3.0, 2.0]])
    >>> x.max()
    tensor(5.)
    >>> x.max(dim=1).values, x.max(dim=1).indices
    (tensor([5., 3.]), tensor([1, 0]))
    """
    if isinstance(dim, Tensor):
        dim, other = None, dim
    if other is not None:
        return maximum(input, other, out)
    return extreme(MAX, MAX_DIM, input, dim, keepdim, axis, keepdims, out)


def min(input, dim=None, keepdim=False, *, other=None, axis=None, keepdims=None, out=None):
    """The smallest element; with `dim` (an int) the smallest ones along it and where they are; or of two tensors.

    - `min(input)`: the smallest of all elements. Gradient: g, shared by all that are equal to it.
    - `min(input, dim)`: a tuple (values, indices) with these names. Gradient: g to the element at the index; of equal
      ones the first is taken.
    - `min(input, other)`: `minimum(input, other)`.

    Raises RuntimeError for no elements, IndexError for a dimension that is not there or is empty,
    NotImplementedError for complex tensors.

    >>> import cygrad
    >>> x = cygrad.tensor([[1.0, 5.0], [3.0, 2.0]])
    >>> x.min()
    tensor(1.)
    >>> x.min(dim=1).values, x.min(dim=1).indices
    (tensor([1., 2.]), tensor([0, 1]))
    """
    if isinstance(dim, Tensor):
        dim, other = None, dim
    if other is not None:
        return minimum(input, other, out)
    return extreme(MIN, MIN_DIM, input, dim, keepdim, axis, keepdims, out)


cdef object extreme(OpDef op, OpDef op_dim, object input, object dim, object keepdim, object axis, object keepdims,
                    object out):
    cdef Tensor t = tensor_argument(op, input, "input", 1)
    if axis is not None:
        dim = axis
    if dim is None:
        if keepdim is not False or keepdims is not None:
            raise messages.no_such_call(op.name, (t,), {"keepdim": keepdim}, MAX_SIGNATURES)
        check_not_empty(op, t)
        if dtype_of(t).category == COMPLEX:
            raise messages.not_implemented_for(op.name + "_all", dtype_of(t))
        array = reduce.amax(t.array) if op is MAX else reduce.amin(t.array)
        return finish(op, array, t, None, out)
    if isinstance(dim, (tuple, list)):
        raise messages.no_such_call(op.name, (t, dim), {}, MAX_SIGNATURES)
    axes = axes_argument(op, t, dim, None, MAX_SIGNATURES)
    return extreme_along(op_dim, t, 0 if axes is None else axes[0], flag_argument(op, keepdim, keepdims), out)


cdef object extreme_along(OpDef op, Tensor t, int dim, bint keepdim, object out):
    cdef Tensor value, index
    if dtype_of(t).category == COMPLEX:
        raise RuntimeError(f"{op.name}(): does not support complex input")
    check_dim_not_empty(op, t, dim)
    if t.array.ndim == 0:
        result = return_types.max if op is MAX_DIM else return_types.min
        arrays = t.array.copy(), np.zeros((), np.int64)
    elif op is MAX_DIM:
        result, arrays = return_types.max, reduce.max_with_indices(t.array, dim, keepdim)
    else:
        result, arrays = return_types.min, reduce.min_with_indices(t.array, dim, keepdim)
    args = (dim, keepdim, t.array.shape)
    if out is not None:
        value, index = out
        return result((write_into(op, value, arrays[0], (t,), args), write_into(op, index, arrays[1], (t,), args)))
    value, index = record_outputs(op, arrays, (t,), args, 1)
    if value.grad_fn_ is not None:
        (<OpNode>value.grad_fn_).save_input(1, index)       # saved, but no input of the node
    return result((value, index))


cdef int check_not_empty(OpDef op, Tensor t) except -1:
    if t.array.size == 0:
        raise RuntimeError(f"{op.name}(): Expected reduction dim to be specified for input.numel() == 0. Specify the "
                           "reduction dim with the 'dim' argument.")
    return 0


cdef int check_dim_not_empty(OpDef op, Tensor t, int dim) except -1:
    if t.array.ndim and t.array.shape[dim] == 0:
        raise IndexError(f"{op.name}(): Expected reduction dim {dim} to have non-zero size.")
    return 0


# -- over several dimensions: the gradient is shared between equal ones ---------------------------------------

cdef object share_over_axes(OpNode n, object g):
    """For `amax` and `amin`."""
    axes, keepdim = n.args
    x = <Tensor>n.saved(0)
    reached = x == restored(n.saved_result(), x.array.shape, axes, keepdim)
    g = restored(<Tensor>g, x.array.shape, axes, keepdim)
    return div(mul(g, reached), sum_over(reached, axes, True))

cdef OpDef AMAX = op("amax", share_over_axes).row(saves=IN0 | OUT0, inputs="self", attributes="dim keepdim")
cdef OpDef AMIN = op("amin", share_over_axes).row(saves=IN0 | OUT0, inputs="self", attributes="dim keepdim")


def amax(input, dim=None, keepdim=False, *, axis=None, keepdims=None, Tensor out=None):
    """The largest elements over `dim` (an int, a tuple of ints, or all).

    Saves `input` and the result. Gradient: g, shared by all elements that are equal to the result. Raises
    RuntimeError for no elements, IndexError for a dimension that is not there or is empty, NotImplementedError for
    complex tensors.

    >>> import cygrad
    >>> cygrad.amax(cygrad.tensor([[1.0, 5.0], [3.0, 2.0]]), dim=(0, 1))
    tensor(5.)
    """
    return extreme_over(AMAX, input, dim, keepdim, axis, keepdims, out)


def amin(input, dim=None, keepdim=False, *, axis=None, keepdims=None, Tensor out=None):
    """The smallest elements over `dim` (an int, a tuple of ints, or all).

    Saves `input` and the result. Gradient: g, shared by all elements that are equal to the result. Raises
    RuntimeError for no elements, IndexError for a dimension that is not there or is empty, NotImplementedError for
    complex tensors.

    >>> import cygrad
    >>> cygrad.amin(cygrad.tensor([[1.0, 5.0], [3.0, 2.0]]), dim=(0, 1))
    tensor(1.)
    """
    return extreme_over(AMIN, input, dim, keepdim, axis, keepdims, out)


cdef Tensor extreme_over(OpDef op, object input, object dim, object keepdim, object axis, object keepdims,
                         Tensor out):
    cdef Tensor t = tensor_argument(op, input, "input", 1)
    if axis is not None:
        dim = axis
    if dim is not None and (isinstance(dim, bool) or not hasattr(dim, "__index__")):
        arguments.integers(dim, op.name, "dim", 2)
    axes = axes_argument(op, t, dim, None, ())
    if axes is None:
        check_not_empty(op, t)
    else:
        for i in axes:
            check_dim_not_empty(op, t, i)
    if dtype_of(t).category == COMPLEX:
        raise messages.not_implemented_for("max_values_cpu" if op is AMAX else "min_values_cpu", dtype_of(t))
    keep = flag_argument(op, keepdim, keepdims)
    array = reduce.amax(t.array, axes, keep) if op is AMAX else reduce.amin(t.array, axes, keep)
    return finish(op, array, t, (axes, keep), out)


# -- where they are ----------------------------------------------------------------------------------------

cdef OpDef ARGMAX = op("argmax").row(flags=NONDIFF)

def argmax(input, dim=None, keepdim=False, *, axis=None, keepdims=None, Tensor out=None):
    """The index of the largest element along `dim`, or in the flattened tensor; of equal ones the first. int64.

    Raises IndexError for no elements or a dimension that is not there, RuntimeError for boolean and complex tensors.

    >>> import cygrad
    >>> x = cygrad.tensor([[1.0, 5.0], [3.0, 2.0]])
    >>> x.argmax(), x.argmax(dim=0)
    (tensor(1), tensor([1, 0]))
    """
    return position(ARGMAX, input, dim, keepdim, axis, keepdims, out)


cdef OpDef ARGMIN = op("argmin").row(flags=NONDIFF)

def argmin(input, dim=None, keepdim=False, *, axis=None, keepdims=None, Tensor out=None):
    """The index of the smallest element along `dim`, or in the flattened tensor; of equal ones the first. int64.

    Raises IndexError for no elements or a dimension that is not there, RuntimeError for boolean and complex tensors.

    >>> import cygrad
    >>> x = cygrad.tensor([[1.0, 5.0], [3.0, 2.0]])
    >>> x.argmin(), x.argmin(dim=0)
    (tensor(0), tensor([0, 1]))
    """
    return position(ARGMIN, input, dim, keepdim, axis, keepdims, out)


cdef Tensor position(OpDef op, object input, object dim, object keepdim, object axis, object keepdims, Tensor out):
    cdef Tensor t = tensor_argument(op, input, "input", 1)
    if axis is not None:
        dim = axis
    if dtype_of(t).category == BOOLEAN:
        raise RuntimeError(f"{op.name}(): does not support bool input")
    if dtype_of(t).category == COMPLEX:
        raise RuntimeError(f"{op.name}(): does not support complex input")
    if dim is not None:
        dim = arguments.dim_argument(dim, t.array.ndim, op.name, "dim", 2)
        check_dim_not_empty(op, t, dim)
    elif t.array.size == 0:
        raise IndexError(f"{op.name}(): Expected reduction dim to be specified for input.numel() == 0.")
    keep = flag_argument(op, keepdim, keepdims)
    if not t.array.ndim:
        dim = None
    array = reduce.argmax(t.array, dim, keep) if op is ARGMAX else reduce.argmin(t.array, dim, keep)
    return finish(op, array, t, None, out)


functions = publish(globals())
