"""Variance, standard deviation, norm: how far elements lie apart, or from 0."""

import math
import warnings

import numpy as np

from cygrad._core.dtypes cimport FLOATING, as_dtype, dtype, promote_types
from cygrad._core.opdef cimport IN0, OUT0, PRIVATE, OpDef, OpNode, op
from cygrad._core.opdef import publish
from cygrad._core.tensor cimport Tensor, dtype_of
cimport cygrad._kernels.reduce as reduce
cimport cygrad._ops.arguments as arguments
from cygrad._ops.arithmetic cimport div, mul, pow, sub
from cygrad._ops.pointwise cimport abs, sgn, zeros_like
from cygrad._ops.reductions cimport (
    axes_argument, finish, flag_argument, mean_over, reduced_count, restored, sum_over)
from cygrad._ops.selection cimport where
from cygrad._core import messages


# -- variance ----------------------------------------------------------------------------------------------

cdef Tensor var_gradient(Tensor g, Tensor x, tuple axes, object correction, bint keepdim):
    """2 / (count - correction) * g * (x - mean)."""
    freedom = reduced_count(x.array.shape, axes) - correction
    factor = 2 / freedom if freedom > 0 else math.inf
    return mul(mul(restored(g, x.array.shape, axes, keepdim), factor), sub(x, mean_over(x, axes, True)))


cdef object var_rule(OpNode n, object g):
    axes, correction, keepdim = n.args
    return var_gradient(<Tensor>g, <Tensor>n.saved(0), axes, correction, keepdim)

cdef OpDef VAR = op("var", var_rule).row(saves=IN0, inputs="self", attributes="dim correction keepdim")

cdef tuple VAR_SIGNATURES = (
    "Tensor input, tuple of ints dim, bool unbiased = True, bool keepdim = False, *, Tensor out = None",
    "Tensor input, tuple of ints dim = None, *, Number correction = None, bool keepdim = False, Tensor out = None",
    "Tensor input, bool unbiased = True")

def var(input, dim=None, unbiased=None, keepdim=False, *, correction=None, axis=None, keepdims=None,
        Tensor out=None):
    """The variance of the elements over `dim`: sum(|x - mean|^2) / (count - correction).

    `correction` is 1 unless given (Bessel's); `unbiased=False` is the older word for `correction=0`, and may be given
    in the place of `dim`. Complex input gives a real result. Saves `input`. Gradient:
    2 / (count - correction) * g * (x - mean). Warns where count <= correction, which gives nan or inf. Raises
    RuntimeError for integers, IndexError for a dimension that is not there.

    >>> import cygrad
    >>> x = cygrad.tensor([1.0, 2.0, 4.0])
    >>> x.var(), x.var(correction=0)
    (tensor(2.3333), tensor(1.5556))
    """
    cdef Tensor t
    t, args = var_arguments(VAR, input, dim, unbiased, keepdim, correction, axis, keepdims)
    return finish(VAR, reduce.var(t.array, args[0], args[1], args[2]), t, args, out)


cdef tuple var_arguments(OpDef op, object input, object dim, object unbiased, object keepdim, object correction,
                         object axis, object keepdims):
    """(tensor, (axes, correction, keepdim)), all checked."""
    cdef Tensor t
    if not isinstance(input, Tensor):
        raise messages.no_such_call(op.name, (input,), {}, VAR_SIGNATURES)
    t = <Tensor>input
    if isinstance(dim, bool) and unbiased is None:
        dim, unbiased = None, dim
    if unbiased is not None and (correction is not None or not isinstance(unbiased, bool)):
        named = {} if correction is None else {"correction": correction}
        raise messages.no_such_call(op.name, (t, dim, unbiased), named, VAR_SIGNATURES)
    if dtype_of(t).category < FLOATING:
        raise RuntimeError("std and var only support floating point and complex dtypes")
    axes = axes_argument(op, t, dim, axis, VAR_SIGNATURES)
    keep = flag_argument(op, keepdim, keepdims)
    if correction is None:
        correction = 1 if unbiased is None or unbiased else 0
    if reduced_count(t.array.shape, axes) <= correction:
        warnings.warn(
            f"{op.name}(): degrees of freedom is <= 0. Correction should be strictly less than the reduction factor "
            "(input numel divided by output numel).", UserWarning, stacklevel=3)
    return t, (axes, correction, keep)


cdef object std_rule(OpNode n, object g):
    axes, correction, keepdim = n.args
    std = n.saved_result()
    half = where(std == 0, 0.0, div(g, mul(where(std == 0, 1.0, std), 2)))
    return var_gradient(half, <Tensor>n.saved(0), axes, correction, keepdim)

cdef OpDef STD = op("std", std_rule).row(saves=IN0 | OUT0, inputs="self", attributes="dim correction keepdim")

def std(input, dim=None, unbiased=None, keepdim=False, *, correction=None, axis=None, keepdims=None,
        Tensor out=None):
    """The standard deviation over `dim`: the square root of `var`, with the same arguments.

    Saves `input` and the result r. Gradient: g * (x - mean) / (r * (count - correction)), 0 where r is 0. Warns where
    count <= correction, which gives nan or inf. Raises RuntimeError for integers, IndexError for a dimension that is
    not there.

    >>> import cygrad
    >>> x = cygrad.tensor([1.0, 2.0, 4.0])
    >>> x.std(), x.std(correction=0)
    (tensor(1.5275), tensor(1.2472))
    """
    cdef Tensor t
    t, args = var_arguments(STD, input, dim, unbiased, keepdim, correction, axis, keepdims)
    variance = reduce.var(t.array, args[0], args[1], args[2])
    return finish(STD, np.asarray(np.sqrt(variance)), t, args, out)


# -- norm --------------------------------------------------------------------------------------------------

cdef object vector_norm_rule(OpNode n, object g):
    ord, axes, keepdim = n.args
    x = <Tensor>n.saved(0)
    if ord == 0:
        return zeros_like(x)
    g = restored(<Tensor>g, x.array.shape, axes, keepdim)
    if ord == 1:
        return mul(g, sgn(x))
    norm = restored(n.saved_result(), x.array.shape, axes, keepdim)
    # At a norm of 0 the gradient is 0, and so are its derivatives: nothing there is divided by 0.
    at_zero = norm == 0
    g, divisor = where(at_zero, 0.0, g), where(at_zero, 1.0, norm)
    if ord == 2:
        return mul(g, div(x, divisor))
    size = abs(x)
    if math.isinf(ord):
        reached = (size == norm) | ((size != size) & (norm != norm))
        return mul(div(mul(g, reached), sum_over(reached, axes, True)), sgn(x))
    slope = pow(div(where(size == 0, 1.0, size), divisor), ord - 1)
    return mul(g, mul(sgn(x), slope))

cdef OpDef VECTOR_NORM = op("linalg_vector_norm", vector_norm_rule).row(
    saves=IN0 | OUT0, flags=PRIVATE, inputs="self", attributes="ord dim keepdim")

cpdef Tensor linalg_vector_norm(Tensor t, double ord, tuple axes, bint keepdim, Tensor out):
    """The norm of the elements over `axes` (None: all), whatever the number of dimensions."""
    cdef tuple shape = t.array.shape
    if dtype_of(t).category < FLOATING:
        raise RuntimeError("linalg.vector_norm: Expected a floating point or complex tensor as input. Got "
                           f"{dtype_of(t).type_name}")
    if (ord < 0 or ord == math.inf) and reduced_count(shape, axes) == 0:
        check_identity(t, ord, axes)
    return finish(VECTOR_NORM, reduce.norm(t.array, ord, axes, keepdim), t, (ord, axes, keepdim), out)


cdef int check_identity(Tensor t, double ord, tuple axes) except -1:
    """Nothing has no largest or smallest element; but no norms at all may be asked for."""
    if axes is None:
        raise RuntimeError(f"linalg.vector_norm cannot compute the {ord:g} norm on an empty tensor because the "
                           "operation does not have an identity")
    for i in axes:
        if t.array.shape[i] == 0:
            raise RuntimeError(f"linalg.vector_norm cannot compute the {ord:g} norm on the dimension {i}because this "
                               "dimension is empty and the operation does not have an identity")
    return 0


def norm(input, p="fro", dim=None, keepdim=False, Tensor out=None, dtype=None):
    """The p-norm of the elements over `dim`: sum(|x|^p)^(1/p).

    p=2 (or 'fro') is the Euclidean norm, p=inf and p=-inf the largest and smallest |x|, p=0 the number of elements
    that are not 0. Complex input gives a real result. With `dtype` the input is converted first. Saves `input` and the
    result r. Gradient: g * sgn(x) * (|x| / r)^(p - 1); 0 where r is 0; for p=inf shared between equal elements.
    Raises RuntimeError for integers and for p=inf of no elements.

    >>> import cygrad
    >>> x = cygrad.tensor([[3.0, 4.0], [6.0, 8.0]])
    >>> x.norm(dim=1), x.norm(1), x.norm(float("inf"))
    (tensor([ 5., 10.]), tensor(21.), tensor(8.))
    """
    cdef Tensor t = arguments.require(input, "norm")
    if dtype is not None:
        t = converted(t, as_dtype(dtype))
    if isinstance(p, str):
        if p != "fro":
            raise RuntimeError(f"linalg.matrix_norm: Order {p} not supported.")
        p = 2
    elif p is None:
        p = 2
    elif not isinstance(p, (int, float)):
        raise TypeError(f"linalg_vector_norm(): argument 'ord' (position 2) must be Number, not {type(p).__name__}")
    if dim is not None and (isinstance(dim, bool) or not hasattr(dim, "__index__")):
        arguments.integers(dim, "linalg_vector_norm", "dim", 3)
    axes = axes_argument(VECTOR_NORM, t, dim, None, ())
    return linalg_vector_norm(t, p, axes, flag_argument(VECTOR_NORM, keepdim, None), out)


cdef Tensor converted(Tensor t, dtype wanted):
    if wanted.category < FLOATING:
        raise RuntimeError(f"linalg.vector_norm: dtype should be floating point or complex, but got {wanted.type_name}")
    if dtype_of(t).category >= FLOATING and promote_types(dtype_of(t), wanted) is not wanted:
        raise RuntimeError(
            f"linalg.vector_norm: the dtype of the input ({dtype_of(t).type_name}) should be convertible without "
            f"narrowing to the specified dtype ({wanted.type_name})")
    return (<object>t).to(wanted)


composite = {"norm": 0}
functions = publish(globals())
