"""Variance, standard deviation, norm: how far elements lie apart, or from 0."""

import math

import numpy as np

import cygrad._kernels.reduce as reduce
from cygrad._core import messages
from cygrad._core.dtypes import as_dtype
from cygrad._core.dtypes import promote_types_py as promote_types
from cygrad._core.opdef import IN0, OUT0, PRIVATE, declare, publish
from cygrad._core.record import apply_n
from cygrad._core.sites import warn
from cygrad._core.tensor import Tensor
from cygrad._ops.arguments import integers, require
from cygrad._ops.arithmetic import div, mul, pow, sub
from cygrad._ops.creation import zeros_like
from cygrad._ops.pointwise import abs, sgn
from cygrad._ops.reductions import axes_argument, flag_argument, mean, restored
from cygrad._ops.reductions import sum as total
from cygrad._ops.selection import where


def reduced_count(t, axes):
    """How many elements go into one."""
    return t.numel() if axes is None else math.prod(t.shape[i] for i in axes)


# -- variance -------------------------------------------------------------------------------------


def var_gradient(g, x, axes, correction, keepdim):
    """2 / (count - correction) * g * (x - mean)."""
    freedom = reduced_count(x, axes) - correction
    factor = 2 / freedom if freedom > 0 else math.inf
    return mul(mul(restored(g, x.shape, axes, keepdim), factor), sub(x, mean(x, axes, True)))


def var_rule(n, g):
    return var_gradient(g, n.saved(0), *n.args)


VAR = declare("var", var_rule, saves=IN0, kernel=reduce.var, inputs="self", attributes="dim correction keepdim")

VAR_SIGNATURES = (
    "Tensor input, tuple of ints dim, bool unbiased = True, bool keepdim = False, *, Tensor out = None",
    "Tensor input, tuple of ints dim = None, *, Number correction = None, bool keepdim = False, Tensor out = None",
    "Tensor input, bool unbiased = True",
)


def var(input, dim=None, unbiased=None, keepdim=False, *, correction=None, axis=None, keepdims=None, out=None):
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
    args = var_arguments(VAR, input, dim, unbiased, keepdim, correction, axis, keepdims)
    return apply_n(VAR, (input,), args, out)


def var_arguments(op, t, dim, unbiased, keepdim, correction, axis, keepdims):
    """(axes, correction, keepdim), all checked."""
    if not isinstance(t, Tensor):
        raise messages.no_such_call(op.name, (t,), {}, VAR_SIGNATURES)
    if isinstance(dim, bool) and unbiased is None:
        dim, unbiased = None, dim
    if unbiased is not None and (correction is not None or not isinstance(unbiased, bool)):
        named = {} if correction is None else {"correction": correction}
        raise messages.no_such_call(op.name, (t, dim, unbiased), named, VAR_SIGNATURES)
    if not (t.is_floating_point() or t.is_complex()):
        raise RuntimeError("std and var only support floating point and complex dtypes")
    axes = axes_argument(op, t, dim, axis, VAR_SIGNATURES)
    keep = flag_argument(op, keepdim, keepdims)
    if correction is None:
        correction = 1 if unbiased is None or unbiased else 0
    if reduced_count(t, axes) <= correction:
        warn(
            f"{op.name}(): degrees of freedom is <= 0. Correction should be strictly less than the reduction factor "
            "(input numel divided by output numel)."
        )
    return axes, correction, keep


def std_array(a, axes, correction, keepdim):
    return np.asarray(np.sqrt(reduce.var(a, axes, correction, keepdim)))


def std_rule(n, g):
    std = n.saved_result()
    half = where(std == 0, 0.0, div(g, mul(where(std == 0, 1.0, std), 2)))
    return var_gradient(half, n.saved(0), *n.args)


STD = declare("std", std_rule, saves=IN0 | OUT0, kernel=std_array, inputs="self", attributes="dim correction keepdim")


def std(input, dim=None, unbiased=None, keepdim=False, *, correction=None, axis=None, keepdims=None, out=None):
    """The standard deviation over `dim`: the square root of `var`, with the same arguments.

    Saves `input` and the result r. Gradient: g * (x - mean) / (r * (count - correction)), 0 where r is 0. Warns where
    count <= correction, which gives nan or inf. Raises RuntimeError for integers, IndexError for a dimension that is
    not there.

    >>> import cygrad
    >>> x = cygrad.tensor([1.0, 2.0, 4.0])
    >>> x.std(), x.std(correction=0)
    (tensor(1.5275), tensor(1.2472))
    """
    args = var_arguments(STD, input, dim, unbiased, keepdim, correction, axis, keepdims)
    return apply_n(STD, (input,), args, out)


# -- norm -----------------------------------------------------------------------------------------


def norm_array(a, ord, axes, keepdim):
    return reduce.norm(a, ord, axes, keepdim)


def vector_norm_rule(n, g):
    ord, axes, keepdim = n.args
    x = n.saved(0)
    if ord == 0:
        return zeros_like(x)
    g = restored(g, x.shape, axes, keepdim)
    if ord == 1:
        return mul(g, sgn(x))
    norm = restored(n.saved_result(), x.shape, axes, keepdim)
    # At a norm of 0 the gradient is 0, and so are its derivatives: nothing there is divided by 0.
    at_zero = norm == 0
    g, divisor = where(at_zero, 0.0, g), where(at_zero, 1.0, norm)
    if ord == 2:
        return mul(g, div(x, divisor))
    size = abs(x)
    if math.isinf(ord):
        reached = (size == norm) | ((size != size) & (norm != norm))
        return mul(div(mul(g, reached), total(reached, axes, True)), sgn(x))
    slope = pow(div(where(size == 0, 1.0, size), divisor), ord - 1)
    return mul(g, mul(sgn(x), slope))


VECTOR_NORM = declare(
    "linalg_vector_norm",
    vector_norm_rule,
    saves=IN0 | OUT0,
    flags=PRIVATE,
    kernel=norm_array,
    inputs="self",
    attributes="ord dim keepdim",
)


def linalg_vector_norm(t, ord, axes, keepdim, out):
    """The norm of the elements over `axes` (None: all), whatever the number of dimensions."""
    if not (t.is_floating_point() or t.is_complex()):
        raise RuntimeError(
            f"linalg.vector_norm: Expected a floating point or complex tensor as input. Got {t.dtype.type_name}"
        )
    if (ord < 0 or ord == math.inf) and reduced_count(t, axes) == 0:
        check_identity(t, ord, axes)
    return apply_n(VECTOR_NORM, (t,), (float(ord), axes, keepdim), out)


def check_identity(t, ord, axes):
    """Nothing has no largest or smallest element; but no norms at all may be asked for."""
    text = f"linalg.vector_norm cannot compute the {ord:g} norm on"
    if axes is None:
        raise RuntimeError(f"{text} an empty tensor because the operation does not have an identity")
    for i in axes:
        if t.shape[i] == 0:
            raise RuntimeError(
                f"{text} the dimension {i}because this dimension is empty and the operation does not have an identity"
            )


def norm(input, p="fro", dim=None, keepdim=False, out=None, dtype=None):
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
    t = require(input, "norm")
    if dtype is not None:
        t = converted(t, dtype)
    if isinstance(p, str):
        if p != "fro":
            raise RuntimeError(f"linalg.matrix_norm: Order {p} not supported.")
        p = 2
    elif p is None:
        p = 2
    elif not isinstance(p, (int, float)):
        raise TypeError(f"linalg_vector_norm(): argument 'ord' (position 2) must be Number, not {type(p).__name__}")
    if dim is not None and (isinstance(dim, bool) or not hasattr(dim, "__index__")):
        integers(dim, "linalg_vector_norm", "dim", 3)
    axes = axes_argument(VECTOR_NORM, t, dim, None, ())
    return linalg_vector_norm(t, p, axes, flag_argument(VECTOR_NORM, keepdim, None), out)


def converted(t, wanted):
    wanted = as_dtype(wanted)
    if not (wanted.is_floating_point or wanted.is_complex):
        raise RuntimeError(f"linalg.vector_norm: dtype should be floating point or complex, but got {wanted.type_name}")
    if (t.is_floating_point() or t.is_complex()) and promote_types(t.dtype, wanted) is not wanted:
        raise RuntimeError(
            f"linalg.vector_norm: the dtype of the input ({t.dtype.type_name}) should be convertible without "
            f"narrowing to the specified dtype ({wanted.type_name})"
        )
    return t.to(wanted)


composite = {"norm": 0}
functions = publish(globals())
