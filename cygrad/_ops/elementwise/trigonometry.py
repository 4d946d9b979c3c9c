"""Trigonometric and hyperbolic functions, their inverses and angles, elementwise.

Integers are first converted to the default dtype. Gradients of complex functions follow PyTorch: the conjugate of the
derivative. `sin`, `cos`, `tan` and `tanh` are in pointwise.pyx.
"""

import math

import numpy as np

from cygrad._core.graph.opdef import ELEMENTWISE, FLOAT_RESULT, IN0, IN1, INPLACE, LINEAR, OUT0, declare, publish
from cygrad._core.graph.record import apply1, apply2, tensor_argument
from cygrad._core.runtime.thread_state import NO_GRAD, get_modes
from cygrad._kernels.cpu.base.numpy_fallback import silent
from cygrad._kernels.device.cupy_library import as_array
from cygrad._ops.base.arithmetic import add, div, mul, neg, sub
from cygrad._ops.base.checks.common import require_real, require_tensors
from cygrad._ops.base.pointwise import conjugate, cos, rsqrt, sin
from cygrad._ops.elementwise.selection import where

SMOOTH = ELEMENTWISE | INPLACE | FLOAT_RESULT


# -- inverse trigonometric --


def asin_rule(n, g):
    x = n.saved(0)
    if x.is_complex():  # whose square may leave the range
        return mul(g, conjugate(mul(rsqrt(sub(1, x)), rsqrt(add(x, 1)))))
    return mul(g, rsqrt(sub(1, mul(x, x))))


ASIN = declare(
    "asin",
    asin_rule,
    saves=IN0,
    flags=SMOOTH,
    ufunc="arcsin",
    inputs="self",
    aliases="arcsin",
    autocast_gpu="float32",
    casts_itself=True,
    direct=True,
)


def asin(input, *, out=None):
    """Arc sine in radians: NaN beyond [-1, 1]. Saves `input`. Gradient: g / sqrt(1 - input^2), inf at -1 and 1.

    >>> import cygrad
    >>> cygrad.asin(cygrad.tensor([0.0, 1.0]))
    tensor([0.0000, 1.5708])
    """
    return apply1(ASIN, input, out)


def acos_rule(n, g):
    return neg(asin_rule(n, g))


ACOS = declare(
    "acos",
    acos_rule,
    saves=IN0,
    flags=SMOOTH,
    ufunc="arccos",
    inputs="self",
    aliases="arccos",
    autocast_gpu="float32",
    casts_itself=True,
    direct=True,
)


def acos(input, *, out=None):
    """Arc cosine in radians: NaN beyond [-1, 1]. Saves `input`. Gradient: -g / sqrt(1 - input^2), -inf at -1 and 1.

    >>> import cygrad
    >>> cygrad.acos(cygrad.tensor([0.0, 1.0]))
    tensor([1.5708, 0.0000])
    """
    return apply1(ACOS, input, out)


def atan_rule(n, g):
    x = n.saved(0)
    if x.is_complex():  # whose square may leave the range
        turned = mul(x, 1j)
        return div(div(g, conjugate(sub(1, turned))), conjugate(add(turned, 1)))
    return div(g, add(mul(x, x), 1))


ATAN = declare("atan", atan_rule, saves=IN0, flags=SMOOTH, ufunc="arctan", inputs="self", aliases="arctan", direct=True)


def atan(input, *, out=None):
    """Arc tangent in radians. Saves `input`. Gradient: g / (input^2 + 1).

    >>> import cygrad
    >>> cygrad.atan(cygrad.tensor([0.0, 1.0]))
    tensor([0.0000, 0.7854])
    """
    return apply1(ATAN, input, out)


def atan2_rule(n, g):
    y, x = n.saved(0).to(g.dtype), n.saved(1).to(g.dtype)  # integers may be too large for their own type
    size = hypot(y, x)  # not the sum of squares, which may leave the range
    nowhere = size == 0  # the gradient is 0 there
    if get_modes() & NO_GRAD:
        size = where(nowhere, 1.0, size)
    else:
        size = hypot(where(nowhere, 1.0, y), x)  # the derivatives of hypot(0, 0) would be nan
    share = div(g, size)
    return (
        mul(share, div(x, size)) if n.needs(0) else None,
        neg(mul(share, div(y, size))) if n.needs(1) else None,
    )


ATAN2 = declare(
    "atan2", atan2_rule, saves=IN0 | IN1, flags=SMOOTH, ufunc="arctan2", aliases="arctan2", autocast_gpu="widest"
)


def atan2(input, other, *, out=None):
    """The angle in radians of the point with y = `input` and x = `other`, in [-pi, pi], with broadcasting.

    Saves both. Gradients: g * other / (input^2 + other^2), and -g * input / (input^2 + other^2); 0 at the origin.

    >>> import cygrad
    >>> cygrad.atan2(cygrad.tensor([1.0, -1.0]), cygrad.tensor([1.0, -1.0]))
    tensor([ 0.7854, -2.3562])
    """
    require_tensors(ATAN2, input, other)
    require_real(ATAN2, input, other)
    return apply2(ATAN2, input, other, out)


# -- hyperbolic --


def sinh_rule(n, g):
    return mul(g, conjugate(cosh(n.saved(0))))


SINH = declare(
    "sinh",
    sinh_rule,
    saves=IN0,
    flags=SMOOTH,
    ufunc="sinh",
    inputs="self",
    autocast_gpu="float32",
    casts_itself=True,
    direct=True,
)


def sinh(input, *, out=None):
    """Hyperbolic sine, `(e^input - e^-input) / 2`. Saves `input`. Gradient: g * cosh(input).

    >>> import cygrad
    >>> cygrad.sinh(cygrad.tensor([0.0, 1.0]))
    tensor([0.0000, 1.1752])
    """
    return apply1(SINH, input, out)


def cosh_rule(n, g):
    return mul(g, conjugate(sinh(n.saved(0))))


COSH = declare(
    "cosh",
    cosh_rule,
    saves=IN0,
    flags=SMOOTH,
    ufunc="cosh",
    inputs="self",
    autocast_gpu="float32",
    casts_itself=True,
    direct=True,
)


def cosh(input, *, out=None):
    """Hyperbolic cosine, `(e^input + e^-input) / 2`. Saves `input`. Gradient: g * sinh(input).

    >>> import cygrad
    >>> cygrad.cosh(cygrad.tensor([0.0, 1.0]))
    tensor([1.0000, 1.5431])
    """
    return apply1(COSH, input, out)


def asinh_rule(n, g):
    x = n.saved(0)
    if x.is_complex():
        turned = mul(x, 1j)
        return mul(g, conjugate(mul(rsqrt(sub(1, turned)), rsqrt(add(turned, 1)))))
    return div(g, hypot(x, x.new_ones(())))  # squares may leave the range


ASINH = declare(
    "asinh", asinh_rule, saves=IN0, flags=SMOOTH, ufunc="arcsinh", inputs="self", aliases="arcsinh", direct=True
)


def asinh(input, *, out=None):
    """Inverse hyperbolic sine. Saves `input`. Gradient: g / sqrt(input^2 + 1).

    The result is log(input + sqrt(input^2 + 1)).

    >>> import cygrad
    >>> cygrad.asinh(cygrad.tensor([0.0, 1.0]))
    tensor([0.0000, 0.8814])
    """
    return apply1(ASINH, input, out)


def acosh_rule(n, g):
    x = n.saved(0)
    return mul(g, conjugate(mul(rsqrt(sub(x, 1)), rsqrt(add(x, 1)))))


ACOSH = declare(
    "acosh", acosh_rule, saves=IN0, flags=SMOOTH, ufunc="arccosh", inputs="self", aliases="arccosh", direct=True
)


def acosh(input, *, out=None):
    """Inverse hyperbolic cosine: NaN below 1. Saves `input`. Gradient: g / sqrt(input^2 - 1), inf at 1.

    The result is log(input + sqrt(input^2 - 1)).

    >>> import cygrad
    >>> cygrad.acosh(cygrad.tensor([1.0, 2.0]))
    tensor([0.0000, 1.3170])
    """
    return apply1(ACOSH, input, out)


def atanh_rule(n, g):
    x = n.saved(0)
    if x.is_complex():
        return div(div(g, conjugate(sub(1, x))), conjugate(add(x, 1)))
    return div(g, sub(1, mul(x, x)))


ATANH = declare(
    "atanh", atanh_rule, saves=IN0, flags=SMOOTH, ufunc="arctanh", inputs="self", aliases="arctanh", direct=True
)


def atanh(input, *, out=None):
    """Inverse hyperbolic tangent: inf at 1, NaN beyond [-1, 1]. Saves `input`. Gradient: g / (1 - input^2).

    The result is log((1 + input) / (1 - input)) / 2.

    >>> import cygrad
    >>> cygrad.atanh(cygrad.tensor([0.0, 0.5]))
    tensor([0.0000, 0.5493])
    """
    return apply1(ATANH, input, out)


# -- angles, sinc, hypot --


def refuse_complex(op, input):
    if tensor_argument(op, input, "input", 1).is_complex():
        raise RuntimeError(f"{op.name} is not supported for complex tensors.")


def deg2rad_rule(n, g):
    return mul(g, math.pi / 180)


DEG2RAD = declare(
    "deg2rad",
    deg2rad_rule,
    flags=SMOOTH | LINEAR,
    kernel=lambda x: np.multiply(x, x.dtype.type(math.pi / 180)),
    numpy="deg2rad radians",
    inputs="self",
)


def deg2rad(input, *, out=None):
    """Convert degrees to radians: `input * pi / 180`. Saves nothing. Gradient: g * pi / 180.

    >>> import cygrad
    >>> cygrad.deg2rad(cygrad.tensor([0.0, 180.0]))
    tensor([0.0000, 3.1416])
    """
    refuse_complex(DEG2RAD, input)
    return apply1(DEG2RAD, input, out)


def rad2deg_rule(n, g):
    return mul(g, 180 / math.pi)


RAD2DEG = declare(
    "rad2deg",
    rad2deg_rule,
    flags=SMOOTH | LINEAR,
    kernel=silent(lambda x: np.multiply(x, x.dtype.type(180 / math.pi))),
    numpy="rad2deg degrees",
    inputs="self",
)


def rad2deg(input, *, out=None):
    """Convert radians to degrees: `input * 180 / pi`. Saves nothing. Gradient: g * 180 / pi.

    >>> import cygrad
    >>> cygrad.rad2deg(cygrad.tensor([0.0, 3.14159265]))
    tensor([  0., 180.])
    """
    refuse_complex(RAD2DEG, input)
    return apply1(RAD2DEG, input, out)


NEAR = 0.01  # below this, four terms of the series are exact in double precision


@silent
def sinc_array(x):
    """Compute sin(pi x) / (pi x), and 1 at 0."""
    scaled = x * x.dtype.type(math.pi)
    found = as_array(np.sin(scaled) / scaled)
    np.copyto(found, 1, where=x == 0)
    return found


def sinc_rule(n, g):
    x = n.saved(0)
    near = abs(x) < NEAR
    scaled = mul(where(near, 1.0, x), math.pi)  # avoids 0 / 0 where the series is used: its NaN would propagate
    slope = div(sub(cos(scaled), div(sin(scaled), scaled)), div(scaled, math.pi))
    if not get_modes() & NO_GRAD:
        x = where(near, x, 0.0)  # likewise avoids inf * 0 in higher derivatives, where squares overflow
    series, squared = 0.0, mul(mul(x, x), math.pi**2)
    for k in (4, 3, 2, 1):  # the sum of (-1)^k 2k (pi x)^(2k - 2) / (2k + 1)!
        series = add(mul(squared, series), (-1) ** k * 2 * k / math.factorial(2 * k + 1))
    return mul(g, conjugate(where(near, mul(mul(x, math.pi**2), series), slope)))


SINC = declare("sinc", sinc_rule, saves=IN0, flags=SMOOTH, kernel=sinc_array, inputs="self", direct=True)


def sinc(input, *, out=None):
    """`sin(pi * input) / (pi * input)`, and 1 at 0. Saves `input`.

    Gradient: g * (cos(pi x) - sinc(x)) / x, and 0 at 0.

    >>> import cygrad
    >>> cygrad.sinc(cygrad.tensor([0.0, 0.5, 1.0]))
    tensor([ 1.0000e+00,  6.3662e-01, -2.7828e-08])
    """
    return apply1(SINC, input, out)


def hypot_rule(n, g):
    r = n.saved_result()
    # The quotients are between -1 and 1, whereas g / r may leave the range.
    return tuple([mul(g, div(n.saved(i), r)) if n.needs(i) else None for i in (0, 1)])


HYPOT = declare("hypot", hypot_rule, saves=(IN0 | OUT0, IN1 | OUT0), flags=ELEMENTWISE | INPLACE, ufunc="hypot")


def hypot(input, other, *, out=None):
    """`sqrt(input^2 + other^2)` without overflow, with broadcasting. Saves both and the result r.

    Gradients: g * input / r, and g * other / r; NaN at the origin.

    >>> import cygrad
    >>> cygrad.hypot(cygrad.tensor([3.0]), cygrad.tensor([4.0]))
    tensor([5.])
    """
    require_tensors(HYPOT, input, other)
    require_real(HYPOT, input, other, integers=False)
    return apply2(HYPOT, input, other, out)


functions = publish(globals())
