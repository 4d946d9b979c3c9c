"""Sums and means over dimensions.

`dim` is an int, a tuple of ints, or None for all dimensions; `keepdim=True` keeps the reduced dimensions with size 1.
NumPy's names `axis` and `keepdims` are accepted, too.
"""

import numpy as np

from cygrad._core.types.dtypes cimport FLOATING, as_dtype, dtype
from cygrad._core.graph.opdef cimport LINEAR, METHOD_ONLY, PRIVATE, OpDef, OpNode, op
from cygrad._core.graph.opdef import note_facts, publish
from cygrad._core.graph.record cimport prepared, record1, tensor_argument, write_into
from cygrad._core.graph.tensor cimport Tensor, dtype_of, requires_grad
cimport cygrad._kernels.array_ops as kernels
cimport cygrad._ops.base.arguments as arguments
from cygrad._ops.base.arithmetic cimport div
from cygrad._ops.base.views cimport expanded, viewed
from cygrad._core.errors import messages


# -- arguments and shapes ----------------------------------------------------------------------------------

cdef int INT64 = np.dtype(np.int64).num


cpdef tuple axes_argument(OpDef op, Tensor t, object dim, object axis):
    cdef int ndim = t.array.ndim
    if axis is not None:
        dim = axis
    if dim is None:
        return None
    if isinstance(dim, (tuple, list)):
        axes = arguments.wrap_dims(arguments.integers(dim, op.name, "dim", 2), ndim)
        return axes if axes and ndim else None
    if isinstance(dim, bool) or not hasattr(dim, "__index__"):
        raise messages.fits_none(op.name)
    axes = (arguments.dim_argument(dim, ndim, op.name, "dim", 2),)
    return axes if ndim else None


cpdef bint flag_argument(OpDef op, object keepdim, object keepdims) except -1:
    if keepdims is not None:
        keepdim = keepdims
    if keepdim is not True and keepdim is not False and not isinstance(keepdim, np.bool_):
        raise TypeError(f"{op.name}(): argument 'keepdim' (position 3) must be bool, not {type(keepdim).__name__}")
    return keepdim


cdef Tensor finish(OpDef op, object array, Tensor t, tuple args, Tensor out):
    return record1(op, array, t, args) if out is None else write_into(op, out, array, (t,), args)


cpdef Tensor restored(Tensor t, object shape, tuple axes, bint keepdim):
    """Reinsert the reduced dimensions, of length 1, into a reduction over `axes` of a tensor of that shape."""
    if keepdim or axes is None:
        return t
    return viewed(t, tuple([1 if i in axes else n for i, n in enumerate(shape)]))


cdef Tensor spread(Tensor t, tuple shape, tuple axes, bint keepdim):
    return expanded(restored(t, shape, axes, keepdim), shape)


cdef Py_ssize_t reduced_count(tuple shape, tuple axes) except -1:
    cdef Py_ssize_t count = 1, i
    for i in range(len(shape)) if axes is None else axes:
        count *= shape[i]
    return count


cdef object of_all(OpDef op, object axis, object keepdim):
    """Return None, for all dimensions, if none is given; PyTorch rejects `keepdim` without `dim`."""
    if axis is None and keepdim is not False:
        raise messages.fits_none(op.name)


# -- sum ---------------------------------------------------------------------------------------------------

cdef object sum_rule(OpNode n, object g):
    return expanded(<Tensor>g, n.arguments[0])

cdef OpDef SUM = op("sum", sum_rule).row(flags=LINEAR, inputs="self", attributes="self_sym_sizes",
    autocast_gpu="float32", casts_itself=True, out_dtype="same", overloads="1345")

cdef object sum_dim_rule(OpNode n, object g):
    axes, keepdim, shape = n.arguments
    return spread(<Tensor>g, shape, axes, keepdim)

cdef OpDef SUM_DIM = op("sum.dim", sum_dim_rule).row(
    flags=LINEAR | PRIVATE, inputs="self", attributes="dim keepdim self_sym_sizes", node="SumBackward1",
    out_dtype="same")

def sum(input, dim=..., keepdim=False, *, dtype=None, axis=None, keepdims=None, Tensor out=None):
    """Sum the elements over `dim`.

    Integers and booleans are summed in int64, other dtypes in their own or in `dtype`. Saves nothing. Gradient: g,
    expanded. Raises IndexError for a dimension out of range, RuntimeError for a repeated one.

    >>> import cygrad
    >>> x = cygrad.tensor([[1.0, 2.0], [3.0, 4.0]])
    >>> x.sum(), x.sum(dim=0), x.sum(1, keepdim=True)
    (tensor(10.), tensor([4., 6.]), tensor([[3.],
            [7.]]))
    """
    cdef Tensor t = tensor_argument(SUM, input, "input", 1)
    cdef int typenum = -1
    if dtype is not None:
        typenum = accumulator(t, dtype)
    elif out is None:
        t = prepared("sum", t)
    else:
        typenum = kernels.typenum_of(out.array)
    if dim is ...:
        dim = of_all(SUM, axis, keepdim)
    if dim is None and axis is None and keepdim is False and keepdims is None:
        return finish(SUM, kernels.sum(t.array, None, False, typenum), t, (t.array.shape,), out)
    keep = flag_argument(SUM, keepdim, keepdims)
    axes = axes_argument(SUM, t, dim, axis)
    array = kernels.sum(t.array, axes, keep, typenum)
    return finish(SUM_DIM, array, t, (axes, keep, t.array.shape), out)


cpdef int accumulator(Tensor t, object wanted) except -1:
    """Return the type number of the dtype to sum or multiply in."""
    cdef dtype kind = as_dtype(wanted)
    if requires_grad(t) and kind.category < FLOATING:
        raise RuntimeError(f"Autograd not support dtype: {kind.type_name}")
    return kind.num


cdef Tensor sum_over(Tensor t, tuple axes, bint keepdim):
    return record1(SUM_DIM, kernels.sum(t.array, axes, keepdim, -1), t, (axes, keepdim, t.array.shape))


cdef object sum_to_size_rule(OpNode n, object g):
    return expanded(<Tensor>g, n.arguments[0])

cdef OpDef SUM_TO_SIZE = op("sum_to_size", sum_to_size_rule).row(
    flags=LINEAR | METHOD_ONLY, inputs="self", node="SumBackward1")

def sum_to_size(input, *size, **named):
    """Sum over the dimensions that broadcasting would expand, so that the result has the given size.

    Saves nothing. Gradient: g, expanded. Raises RuntimeError if a tensor of that size does not expand to this one's.

    >>> import cygrad
    >>> cygrad.ones(2, 3).sum_to_size(1, 3)
    tensor([[2., 2., 2.]])
    """
    cdef Tensor t = tensor_argument(SUM_TO_SIZE, input, "input", 1)
    cdef tuple shape = t.array.shape
    cdef tuple wanted = arguments.variadic(size, named, "sum_to_size", "size")
    cdef bint is_whole = t.array.dtype.kind in "biu"
    if wanted == shape and (shape or not is_whole):
        return t
    if len(wanted) > len(shape) or not np.all([
            m == n or m == 1 for m, n in zip(reversed(wanted), reversed(shape))]):
        raise RuntimeError(f"size {{{list(wanted)}}} is not expandable to size {{{list(shape)}}}.")
    cdef object array = t.array
    if is_whole:
        array = kernels.cast(array, INT64)
    return record1(SUM_TO_SIZE, kernels.sum_to(array, wanted), t, (shape,))


# -- mean --------------------------------------------------------------------------------------------------

cdef object mean_rule(OpNode n, object g):
    count, shape = n.arguments
    return expanded(div(g, count), shape)

cdef OpDef MEAN = op("mean", mean_rule).row(
    flags=LINEAR, inputs="self", attributes="self_sym_numel self_sym_sizes",
    out_castable="mean.dtype_out(): input types can't be cast to the desired output type {out}", overloads="145",
    derived="self_sym_sizes self_sym_numel")

note_facts("mean.dtype", {"out_dtype": "same"})

cdef object mean_dim_rule(OpNode n, object g):
    axes, keepdim, count, shape = n.arguments
    return spread(div(g, count), shape, axes, keepdim)

cdef OpDef MEAN_DIM = op("mean.dim", mean_dim_rule).row(
    flags=LINEAR | PRIVATE, inputs="self", attributes="dim keepdim _ self_sym_sizes",
    node="MeanBackward1", derived="self_sym_sizes self_sym_numel")

def mean(input, dim=..., keepdim=False, *, dtype=None, axis=None, keepdims=None, Tensor out=None):
    """Compute the mean of the elements over `dim`, in `dtype` if given; NaN for no elements.

    The result is sum(x) / count.

    Saves nothing. Gradient: g / count, expanded. Raises RuntimeError for integers without a floating-point `dtype`,
    IndexError for a dimension out of range.

    >>> import cygrad
    >>> x = cygrad.tensor([[1.0, 2.0], [3.0, 4.0]])
    >>> x.mean(), x.mean(dim=0)
    (tensor(2.5000), tensor([2., 3.]))
    """
    cdef Tensor t = tensor_argument(MEAN, input, "input", 1)
    cdef tuple shape = t.array.shape, axes
    cdef int typenum = mean_type(t, dtype)
    if dtype is not None and out is not None:
        messages.check_asked_type("mean.dtype", dtype, out)
    if dim is ...:
        dim = of_all(MEAN, axis, keepdim)
    if dim is None and axis is None and keepdim is False and keepdims is None:
        return finish(MEAN, kernels.mean(t.array, None, False, typenum), t, (t.array.size, shape), out)
    keep = flag_argument(MEAN, keepdim, keepdims)
    axes = axes_argument(MEAN, t, dim, axis)
    return finish(MEAN_DIM, kernels.mean(t.array, axes, keep, typenum), t,
                  (axes, keep, reduced_count(shape, axes), shape), out)


cdef int mean_type(Tensor t, object wanted) except -2:
    cdef dtype kind = dtype_of(t) if wanted is None else as_dtype(wanted)
    if kind.category < FLOATING:
        raise RuntimeError(
            f"mean(): could not infer output dtype. {'Input' if wanted is None else 'Optional'} dtype must be either a "
            f"floating point or complex dtype. Got: {kind.type_name}\n"
            "  convert it first, as in x.float().mean(), or give dtype=torch.float32")
    return -1 if wanted is None else kind.num


functions = publish(globals())
