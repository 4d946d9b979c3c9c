"""Sums, means and products over dimensions, and truth values of many elements.

Wherever `dim` is an argument it is an int, a tuple of ints, or None for all dimensions; `keepdim=True` leaves the
reduced dimensions in place with size 1. NumPy's names `axis` and `keepdims` are understood too.
"""

import numpy as np

from numpy cimport NPY_INT64, NPY_UINT8

from cygrad._core.dtypes cimport BOOLEAN, FLOATING, INTEGRAL, as_dtype, default_dtype, dtype
from cygrad._core.opdef cimport IN0, INPLACE, LINEAR, METHOD_ONLY, NONDIFF, OUT0, PRIVATE, OpDef, OpNode, op
from cygrad._core.opdef import publish
from cygrad._core.record cimport as_type, record1, tensor_argument, write_into
from cygrad._core.tensor cimport Tensor, dtype_of, requires_grad
cimport cygrad._kernels.reduce as reduce
from cygrad._kernels import along
from cygrad._kernels.arrays cimport cast
cimport cygrad._ops.arguments as arguments
from cygrad._ops.arithmetic cimport div, mul, sub
from cygrad._ops.pointwise cimport conjugate, exp
from cygrad._ops.views cimport expanded, reshaped, viewed
from cygrad._core import messages


# -- arguments and shapes ----------------------------------------------------------------------------------

cpdef tuple axes_argument(OpDef op, Tensor t, object dim, object axis, tuple signatures):
    cdef int ndim = t.array.ndim
    if axis is not None:
        dim = axis
    if dim is None:
        return None
    if isinstance(dim, (tuple, list)):
        axes = arguments.wrap_dims(arguments.integers(dim, op.name, "dim", 2), ndim)
        return axes if axes and ndim else None
    if isinstance(dim, bool) or not hasattr(dim, "__index__"):
        raise messages.no_such_call(op.name, (t, dim), {}, signatures)
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
    """A reduction over `axes` of a tensor of that shape, with the reduced dimensions again, of length 1."""
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


# -- sum ---------------------------------------------------------------------------------------------------

cdef object sum_rule(OpNode n, object g):
    return expanded(<Tensor>g, n.args[0])

cdef OpDef SUM = op("sum", sum_rule).row(flags=LINEAR, inputs="self", attributes="self_sym_sizes")

cdef object sum_dim_rule(OpNode n, object g):
    axes, keepdim, shape = n.args
    return spread(<Tensor>g, shape, axes, keepdim)

cdef OpDef SUM_DIM = op("sum.dim", sum_dim_rule).row(
    flags=LINEAR | PRIVATE, inputs="self", attributes="dim keepdim self_sym_sizes", node="SumBackward1")

cdef tuple SUM_SIGNATURES = (
    "Tensor input, *, torch.dtype dtype = None",
    "Tensor input, tuple of ints dim, bool keepdim = False, *, torch.dtype dtype = None, Tensor out = None")

def sum(input, dim=None, keepdim=False, *, dtype=None, axis=None, keepdims=None, Tensor out=None):
    """The sum of the elements over `dim`.

    Integers and truth values are added in int64, other types in their own or in `dtype`. Saves nothing. Gradient: g,
    repeated. Raises IndexError for a dimension that is not there, RuntimeError for one given twice.

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
    if dim is None and axis is None and keepdim is False and keepdims is None:
        return finish(SUM, reduce.sum(t.array, None, False, typenum), t, (t.array.shape,), out)
    keep = flag_argument(SUM, keepdim, keepdims)
    axes = axes_argument(SUM, t, dim, axis, SUM_SIGNATURES)
    array = reduce.sum(t.array, axes, keep, typenum)
    return finish(SUM_DIM, array, t, (axes, keep, t.array.shape), out)


cdef int accumulator(Tensor t, object wanted) except -1:
    """The type number of the dtype to add or multiply in."""
    cdef dtype kind = as_dtype(wanted)
    if requires_grad(t) and kind.category < FLOATING:
        raise RuntimeError(f"Autograd not support dtype: {kind.type_name}")
    return kind.num


cdef Tensor sum_over(Tensor t, tuple axes, bint keepdim):
    return record1(SUM_DIM, reduce.sum(t.array, axes, keepdim, -1), t, (axes, keepdim, t.array.shape))


cdef object sum_to_size_rule(OpNode n, object g):
    return expanded(<Tensor>g, n.args[0])

cdef OpDef SUM_TO_SIZE = op("sum_to_size", sum_to_size_rule).row(
    flags=LINEAR | METHOD_ONLY, inputs="self", node="SumBackward1")

def sum_to_size(input, *size):
    """The sum over what broadcasting would repeat to make this tensor out of one of the given size.

    Saves nothing. Gradient: g, repeated. Raises RuntimeError if a tensor of that size does not expand to this one's.

    >>> import cygrad
    >>> cygrad.ones(2, 3).sum_to_size(1, 3)
    tensor([[2., 2., 2.]])
    """
    cdef Tensor t = tensor_argument(SUM_TO_SIZE, input, "input", 1)
    cdef tuple shape = t.array.shape
    cdef tuple wanted = arguments.variadic(size, {}, "sum_to_size", "size")
    if wanted == shape:
        return t
    if len(wanted) > len(shape) or not np.all([
            m == n or m == 1 for m, n in zip(reversed(wanted), reversed(shape))]):
        raise RuntimeError(f"size {{{list(wanted)}}} is not expandable to size {{{list(shape)}}}.")
    return record1(SUM_TO_SIZE, reduce.sum_to(t.array, wanted), t, (shape,))


# -- mean --------------------------------------------------------------------------------------------------

cdef object mean_rule(OpNode n, object g):
    count, shape = n.args
    return expanded(div(g, count), shape)

cdef OpDef MEAN = op("mean", mean_rule).row(
    flags=LINEAR, inputs="self", attributes="self_sym_numel self_sym_sizes")

cdef object mean_dim_rule(OpNode n, object g):
    axes, keepdim, count, shape = n.args
    return spread(div(g, count), shape, axes, keepdim)

cdef OpDef MEAN_DIM = op("mean.dim", mean_dim_rule).row(
    flags=LINEAR | PRIVATE, inputs="self", attributes="dim keepdim count self_sym_sizes",
    node="MeanBackward1")

def mean(input, dim=None, keepdim=False, *, dtype=None, axis=None, keepdims=None, Tensor out=None):
    """The mean of the elements over `dim`, taken in `dtype` if that is given; nan of no elements.

    Saves nothing. Gradient: g / count, repeated. Raises RuntimeError for integers without a floating-point `dtype`,
    IndexError for a dimension that is not there.

    >>> import cygrad
    >>> x = cygrad.tensor([[1.0, 2.0], [3.0, 4.0]])
    >>> x.mean(), x.mean(dim=0)
    (tensor(2.5000), tensor([2., 3.]))
    """
    cdef Tensor t = tensor_argument(MEAN, input, "input", 1)
    cdef tuple shape = t.array.shape, axes
    cdef int typenum = mean_type(t, dtype)
    if dim is None and axis is None and keepdim is False and keepdims is None:
        return finish(MEAN, reduce.mean(t.array, None, False, typenum), t, (t.array.size, shape), out)
    keep = flag_argument(MEAN, keepdim, keepdims)
    axes = axes_argument(MEAN, t, dim, axis, SUM_SIGNATURES)
    return finish(MEAN_DIM, reduce.mean(t.array, axes, keep, typenum), t,
                  (axes, keep, reduced_count(shape, axes), shape), out)


cdef int mean_type(Tensor t, object wanted) except -2:
    cdef dtype kind = dtype_of(t) if wanted is None else as_dtype(wanted)
    if kind.category < FLOATING:
        raise RuntimeError(
            f"mean(): could not infer output dtype. {'Input' if wanted is None else 'Optional'} dtype must be either a "
            f"floating point or complex dtype. Got: {kind.type_name}\n"
            "  convert it first, as in x.float().mean(), or give dtype=torch.float32")
    return -1 if wanted is None else kind.num


# -- product -----------------------------------------------------------------------------------------------

cdef object shift_rule(OpNode n, object g):
    dim, steps, _fill = n.args
    return shift(<Tensor>g, dim, -steps, 0)

cdef OpDef SHIFT = op("shift", shift_rule).row(flags=PRIVATE, kernel=along.shift, inputs="self")

cpdef Tensor shift(Tensor t, int dim, Py_ssize_t steps, int fill):
    """The elements moved along `dim`, with `fill` in the places left free."""
    return record1(SHIFT, along.shift(t.array, dim, steps, fill), t, (dim, steps, fill))


cdef Tensor product_of_others(Tensor x, int dim):
    """For each element the product of all others along `dim`, without dividing, for there may be zeros.

    What is before an element and what is behind it, both by doubling: products of 1, 2, 4, ... neighbours. It is made
    of recorded products, so that its own derivatives are right at zeros too.
    """
    cdef Tensor before = shift(x, dim, 1, 1), behind = shift(x, dim, -1, 1)
    cdef Py_ssize_t steps = 1, length = x.array.shape[dim]
    while steps < length:
        before = mul(before, shift(before, dim, steps, 1))
        behind = mul(behind, shift(behind, dim, -steps, 1))
        steps *= 2
    return mul(before, behind)


cdef object prod_rule(OpNode n, object g):
    x = <Tensor>n.saved(0)
    if np.all(x.array):
        return mul(g, conjugate(div(n.saved_result(), x)))
    flat = product_of_others(reshaped(x, (x.array.size,)), 0)
    return mul(g, conjugate(reshaped(flat, x.array.shape)))

cdef OpDef PROD = op("prod", prod_rule).row(saves=IN0 | OUT0, inputs="self")

cdef object prod_dim_rule(OpNode n, object g):
    dim, keepdim = n.args
    x = <Tensor>n.saved(0)
    if x.array.ndim == 0:
        return g
    g = restored(<Tensor>g, x.array.shape, (dim,), keepdim)
    if np.all(x.array):
        return mul(g, conjugate(div(restored(n.saved_result(), x.array.shape, (dim,), keepdim), x)))
    return mul(g, conjugate(product_of_others(x, dim)))

cdef OpDef PROD_DIM = op("prod.dim_int", prod_dim_rule).row(
    saves=IN0 | OUT0, flags=PRIVATE, inputs="self", attributes="dim keepdim", node="ProdBackward1")

cdef tuple PROD_SIGNATURES = (
    "Tensor input, *, torch.dtype dtype = None",
    "Tensor input, int dim, bool keepdim = False, *, torch.dtype dtype = None, Tensor out = None")

def prod(input, dim=None, keepdim=False, *, dtype=None, axis=None, keepdims=None, Tensor out=None):
    """The product of the elements, of all or along one dimension.

    Integers and truth values are multiplied in int64, other types in their own or in `dtype`. Saves `input` and the
    result. Gradient: g times the product of the other elements, also where there are zeros. Raises IndexError for a
    dimension that is not there.

    >>> import cygrad
    >>> x = cygrad.tensor([[1.0, 2.0], [3.0, 4.0]])
    >>> x.prod(), x.prod(dim=0)
    (tensor(24.), tensor([3., 8.]))
    """
    cdef Tensor t = tensor_argument(PROD, input, "input", 1)
    cdef int typenum = -1, position
    if dtype is not None:
        typenum = accumulator(t, dtype)
    if dim is None and axis is None:
        if keepdim is not False or keepdims is not None:
            raise messages.no_such_call("prod", (t,), {"keepdim": keepdim}, PROD_SIGNATURES)
        return finish(PROD, reduce.prod(t.array, None, False, typenum), t, None, out)
    keep = flag_argument(PROD, keepdim, keepdims)
    if isinstance(dim, (tuple, list)) or isinstance(axis, (tuple, list)):
        raise messages.no_such_call("prod", (t, dim if axis is None else axis), {}, PROD_SIGNATURES)
    axes = axes_argument(PROD, t, dim, axis, PROD_SIGNATURES)
    position = axes[0] if axes is not None else 0
    return finish(PROD_DIM, reduce.prod(t.array, axes, keep, typenum), t, (position, keep), out)


# -- running sum -------------------------------------------------------------------------------------------

cdef object cumsum_rule(OpNode n, object g):
    dim, reverse = n.args
    return running_sum(<Tensor>g, dim, not reverse)

cdef OpDef CUMSUM = op("cumsum", cumsum_rule).row(flags=LINEAR | INPLACE, inputs="self", attributes="dim")

cdef Tensor running_sum(Tensor t, int dim, bint reverse):
    return record1(CUMSUM, along.cumsum(t.array, dim, reverse), t, (dim, reverse))


def cumsum(input, dim=None, *, dtype=None, axis=None, Tensor out=None):
    """The running sum along `dim`: y[i] = x[0] + ... + x[i]. Has the shape of `input`.

    Integers and truth values are added in int64, other types in their own or in `dtype`. Saves nothing. Gradient: the
    running sum of g from the end. Raises IndexError for a dimension that is not there.

    >>> import cygrad
    >>> cygrad.cumsum(cygrad.tensor([1.0, 2.0, 3.0]), dim=0)
    tensor([1., 3., 6.])
    """
    cdef Tensor t = tensor_argument(CUMSUM, input, "input", 1)
    cdef int typenum
    if axis is not None:
        dim = axis
    elif dim is None:
        raise TypeError('cumsum() missing 1 required positional arguments: "dim"')
    position = arguments.dim_argument(dim, t.array.ndim, "cumsum", "dim", 2)
    if out is t and dtype_of(t).category == BOOLEAN:
        raise messages.not_implemented_for("cumsum_out_cpu", dtype_of(t))
    if dtype is not None:
        typenum = accumulator(t, dtype)
    else:
        typenum = NPY_INT64 if dtype_of(t).category <= INTEGRAL else dtype_of(t).num
    return finish(CUMSUM, along.cumsum(cast(t.array, typenum), position), t, (position, False), out)


# -- log-sum-exp -------------------------------------------------------------------------------------------

cdef object logsumexp_rule(OpNode n, object g):
    axes, keepdim = n.args
    x = <Tensor>n.saved(0)
    result = restored(n.saved_result(), x.array.shape, axes, keepdim)
    return mul(restored(<Tensor>g, x.array.shape, axes, keepdim), conjugate(exp(sub(x, result))))

cdef OpDef LOGSUMEXP = op("logsumexp", logsumexp_rule).row(
    saves=IN0 | OUT0, inputs="self", attributes="dim keepdim")

cpdef Tensor logsumexp(object input, object dim=None, bint keepdim=False, object axis=None, object keepdims=None,
                       Tensor out=None):
    """`log(sum(exp(input)))` over `dim` (an int or a tuple of ints), without overflow; -inf of no elements.

    Saves `input` and the result r. Gradient: g * exp(input - r), which is the softmax times g. Raises IndexError for a
    dimension that is not there.

    >>> import cygrad
    >>> cygrad.logsumexp(cygrad.tensor([0.0, 0.0]), dim=0)
    tensor(0.6931)
    """
    cdef Tensor t = tensor_argument(LOGSUMEXP, input, "input", 1)
    if axis is not None:
        dim = axis
    elif dim is None:
        raise TypeError('logsumexp() missing 1 required positional arguments: "dim"')
    if isinstance(dim, bool) or not hasattr(dim, "__index__"):
        arguments.integers(dim, "logsumexp", "dim", 2)
    keep = flag_argument(LOGSUMEXP, keepdim, keepdims)
    axes = axes_argument(LOGSUMEXP, t, dim, None, ())
    array = t.array if dtype_of(t).category >= FLOATING else as_type(t, default_dtype())
    return finish(LOGSUMEXP, reduce.logsumexp(array, axes, keep), t, (axes, keep), out)


# -- truth values of many ----------------------------------------------------------------------------------

cdef tuple ALL_SIGNATURES = (
    "Tensor input, *, Tensor out = None",
    "Tensor input, tuple of ints dim = None, bool keepdim = False, *, Tensor out = None",
    "Tensor input, int dim, bool keepdim = False, *, Tensor out = None")

cdef tuple truth_arguments(OpDef op, object input, object dim, object axis):
    """(tensor, axes): no dimension at all, `dim=()`, leaves each element for itself."""
    cdef Tensor t
    if not isinstance(input, Tensor):
        raise messages.no_such_call(op.name, (input,), {}, ALL_SIGNATURES)
    t = <Tensor>input
    given = dim if axis is None else axis
    if isinstance(given, (tuple, list)) and not given:
        return t, ()
    return t, axes_argument(op, t, dim, axis, ALL_SIGNATURES)


cdef object as_truth(object array, Tensor t):
    """Boolean, but uint8 stays uint8: that was PyTorch's boolean once."""
    return cast(array, NPY_UINT8) if t.array.dtype.num == NPY_UINT8 else array


cdef OpDef ALL = op("all").row(flags=NONDIFF)

def all(input, dim=None, keepdim=False, *, axis=None, keepdims=None, Tensor out=None):
    """Whether all elements over `dim` are true (not 0). Boolean; uint8 for uint8.

    >>> import cygrad
    >>> x = cygrad.tensor([[1, 0], [1, 1]])
    >>> x.all(), x.all(dim=1)
    (tensor(False), tensor([False,  True]))
    """
    t, axes = truth_arguments(ALL, input, dim, axis)
    array = reduce.all_((<Tensor>t).array, axes, flag_argument(ALL, keepdim, keepdims))
    return finish(ALL, as_truth(array, t), t, None, out)


cdef OpDef ANY = op("any").row(flags=NONDIFF)

def any(input, dim=None, keepdim=False, *, axis=None, keepdims=None, Tensor out=None):
    """Whether any element over `dim` is true (not 0). Boolean; uint8 for uint8.

    >>> import cygrad
    >>> x = cygrad.tensor([[1, 0], [0, 0]])
    >>> x.any(), x.any(dim=1)
    (tensor(True), tensor([ True, False]))
    """
    t, axes = truth_arguments(ANY, input, dim, axis)
    array = reduce.any_((<Tensor>t).array, axes, flag_argument(ANY, keepdim, keepdims))
    return finish(ANY, as_truth(array, t), t, None, out)


cdef OpDef COUNT_NONZERO = op("count_nonzero").row(flags=NONDIFF)

def count_nonzero(input, dim=None, *, axis=None):
    """How many elements over `dim` are not 0, in int64.

    >>> import cygrad
    >>> cygrad.count_nonzero(cygrad.tensor([[1, 0], [1, 1]]), dim=0)
    tensor([2, 1])
    """
    cdef Tensor t = tensor_argument(COUNT_NONZERO, input, "input", 1)
    axes = axes_argument(COUNT_NONZERO, t, dim, axis, (
        "Tensor input, int dim = None", "Tensor input, tuple of ints dim"))
    return finish(COUNT_NONZERO, reduce.count_nonzero(t.array, axes, False), t, None, None)


cdef OpDef NONZERO = op("nonzero").row(flags=NONDIFF)

def nonzero(input, *, bint as_tuple=False, Tensor out=None):
    """Where the elements are not 0: one row of indices for each, in int64.

    With `as_tuple` a tuple of index tensors, one for each dimension, which indexes `input`.

    >>> import cygrad
    >>> x = cygrad.tensor([[1, 0], [0, 5]])
    >>> cygrad.nonzero(x)
    tensor([[0, 0],
            [1, 1]])
    >>> x[cygrad.nonzero(x, as_tuple=True)]
    tensor([1, 5])
    """
    cdef Tensor t = tensor_argument(NONZERO, input, "input", 1)
    if as_tuple:
        indices = np.nonzero(np.atleast_1d(t.array))
        return tuple([record1(NONZERO, np.ascontiguousarray(index), t, None) for index in indices])
    return finish(NONZERO, along.nonzero(t.array), t, None, out)


functions = publish(globals())
