"""Bessel and Airy functions, elementwise. Values come from SciPy, which must be installed.

Integers are first converted to the default float dtype. Complex tensors raise NotImplementedError. All but `i0` are in
`cygrad.special`. PyTorch differentiates only `i0`, `i0e`, `i1`, and `i1e`; here all of them have gradients. In the
gradient formulas, r is the result.
"""

import numpy as np

from cygrad._core.graph.opdef import ELEMENTWISE, FLOAT_RESULT, IN0, PRIVATE, declare, publish
from cygrad._core.graph.record import apply1, apply1_args
from cygrad._kernels.cpu.elementwise import bessel as kernels
from cygrad._kernels.device.cupy_library import as_array, is_array
from cygrad._ops.base.arithmetic import add, div, mul, neg, sub
from cygrad._ops.base.pointwise import abs, exp, sgn, square
from cygrad._ops.common.scipy_kernels import SPECIAL, by_scipy, require_real_input, unary
from cygrad._ops.elementwise.selection import where

# -- modified Bessel functions of the first kind --


def i0_rule(n, g):
    return mul(g, i1(n.saved(0)))


I0 = unary("i0", i0_rule)


def i0(input, *, out=None):
    """Modified Bessel function of the first kind of order 0. Saves `input`. Gradient: g * i1(input).

    It is the mean of exp(x cos t) over t from 0 to pi.

    >>> import cygrad
    >>> cygrad.i0(cygrad.tensor([0.0, 1.0]))
    tensor([1.0000, 1.2661])
    """
    require_real_input(I0, input)
    return apply1(I0, input, out)


def i0e_rule(n, g):
    x = n.saved(0)
    return mul(g, sub(i1e(x), mul(sgn(x), i0e(x))))


I0E = unary("i0e", i0e_rule, flags=SPECIAL, node="SpecialI0EBackward0")


def i0e(input, *, out=None):
    """`exp(-|input|) * i0(input)`. Saves `input`. Gradient: g * (i1e(input) - sgn(input) * r), where r is the result.

    >>> import cygrad
    >>> cygrad.special.i0e(cygrad.tensor([0.0, 1.0]))
    tensor([1.0000, 0.4658])
    """
    require_real_input(I0E, input)
    return apply1(I0E, input, out)


def over(x, values, sign=1, scale=0.5):
    """Return values / x, where `values` are i1(x) (`sign` 1) or bessel_j1(x) (`sign` -1), times 2 * `scale`.

    For small x, uses the power series, because the derivatives of the quotient would lose all digits.
    """
    is_small = abs(x) < 1
    y = mul(square(where(is_small, x, 0.0)), sign / 4)
    series = 1
    for k in range(9, 0, -1):
        series = add(mul(mul(y, 1 / (k * (k + 1))), series), 1)
    return where(is_small, mul(series, scale), div(values, where(is_small, 1.0, x)))


def i1_rule(n, g):
    x = n.saved(0)
    return mul(g, sub(i0(x), over(x, i1(x))))


I1 = unary("i1", i1_rule, flags=SPECIAL, node="SpecialI1Backward0")


def i1(input, *, out=None):
    """Modified Bessel function of the first kind of order 1.

    It is the mean of exp(x cos t) cos t over t from 0 to pi.

    Saves `input`. Gradient: g * (i0(input) - r / input), where r is the result; g / 2 at 0.

    >>> import cygrad
    >>> cygrad.special.i1(cygrad.tensor([0.0, 1.0]))
    tensor([0.0000, 0.5652])
    """
    require_real_input(I1, input)
    return apply1(I1, input, out)


def i1e_rule(n, g):
    x = n.saved(0)
    quotient = over(x, i1e(x), scale=mul(exp(neg(abs(x))), 0.5))
    return mul(g, sub(sub(i0e(x), quotient), mul(sgn(x), i1e(x))))


I1E = unary("i1e", i1e_rule, flags=SPECIAL, node="SpecialI1EBackward0")


def i1e(input, *, out=None):
    """`exp(-|input|) * i1(input)`.

    Saves `input`. Gradient: g * (i0e(input) - r * (sgn(input) + 1 / input)), where r is the result; g / 2 at 0.

    >>> import cygrad
    >>> cygrad.special.i1e(cygrad.tensor([0.0, 1.0]))
    tensor([0.0000, 0.2079])
    """
    require_real_input(I1E, input)
    return apply1(I1E, input, out)


MODIFIED_BESSEL_I0 = unary("modified_bessel_i0", i0_rule, flags=SPECIAL, scipy="i0")


def modified_bessel_i0(input, *, out=None):
    """Modified Bessel function of the first kind of order 0; same as `i0`.

    It is the mean of exp(x cos t) over t from 0 to pi.

    Saves `input`. Gradient: g * i1(input).

    >>> import cygrad
    >>> cygrad.special.modified_bessel_i0(cygrad.tensor([0.5, 1.0]))
    tensor([1.0635, 1.2661])
    """
    require_real_input(MODIFIED_BESSEL_I0, input)
    return apply1(MODIFIED_BESSEL_I0, input, out)


MODIFIED_BESSEL_I1 = unary("modified_bessel_i1", i1_rule, flags=SPECIAL, scipy="i1")


def modified_bessel_i1(input, *, out=None):
    """Modified Bessel function of the first kind of order 1; same as `i1`.

    It is the mean of exp(x cos t) cos t over t from 0 to pi.

    Saves `input`. Gradient: g * (i0(input) - r / input), where r is the result; g / 2 at 0.

    >>> import cygrad
    >>> cygrad.special.modified_bessel_i1(cygrad.tensor([0.5, 1.0]))
    tensor([0.2579, 0.5652])
    """
    require_real_input(MODIFIED_BESSEL_I1, input)
    return apply1(MODIFIED_BESSEL_I1, input, out)


# -- modified Bessel functions of the second kind --


def modified_bessel_k0_rule(n, g):
    return neg(mul(g, modified_bessel_k1(n.saved(0))))


MODIFIED_BESSEL_K0 = unary("modified_bessel_k0", modified_bessel_k0_rule, flags=SPECIAL, scipy="k0")


def modified_bessel_k0(input, *, out=None):
    """Modified Bessel function of the second kind of order 0; inf at 0, nan for negative input.

    It is the integral of exp(-x cosh t) over t from 0 to infinity.

    Saves `input`. Gradient: -g * modified_bessel_k1(input).

    >>> import cygrad
    >>> cygrad.special.modified_bessel_k0(cygrad.tensor([0.5, 1.0]))
    tensor([0.9244, 0.4210])
    """
    require_real_input(MODIFIED_BESSEL_K0, input)
    return apply1(MODIFIED_BESSEL_K0, input, out)


def modified_bessel_k1_rule(n, g):
    x = n.saved(0)
    return neg(mul(g, add(modified_bessel_k0(x), div(modified_bessel_k1(x), x))))


MODIFIED_BESSEL_K1 = unary("modified_bessel_k1", modified_bessel_k1_rule, flags=SPECIAL, scipy="k1")


def modified_bessel_k1(input, *, out=None):
    """Modified Bessel function of the second kind of order 1; inf at 0, nan for negative input.

    It is the integral of exp(-x cosh t) cosh t over t from 0 to infinity.

    Saves `input`. Gradient: -g * (modified_bessel_k0(input) + r / input), where r is the result.

    >>> import cygrad
    >>> cygrad.special.modified_bessel_k1(cygrad.tensor([0.5, 1.0]))
    tensor([1.6564, 0.6019])
    """
    require_real_input(MODIFIED_BESSEL_K1, input)
    return apply1(MODIFIED_BESSEL_K1, input, out)


def scaled_k_derivative_rule(n, g):
    nu, order = n.args
    return mul(g, scaled_k_derivative(n.saved(0), nu, order + 1))


_SCALED_K = [by_scipy(f"k{nu}e", f"special.scaled_modified_bessel_k{nu}") for nu in (0, 1)]


def scaled_k_derivative_array(x, nu, order):
    return as_array(kernels.scaled_k_derivative(x, nu, order, *_SCALED_K))


SCALED_K_DERIVATIVE = declare(
    "scaled_k_derivative",
    scaled_k_derivative_rule,
    saves=IN0,
    flags=ELEMENTWISE | PRIVATE,
    kernel=scaled_k_derivative_array,
    inputs="self",
)


def scaled_k_derivative(x, nu, order):
    """Return the derivative of `exp(x) * K_nu(x)`. For large x it is not the difference of nearly equal functions."""
    return apply1_args(SCALED_K_DERIVATIVE, x, (nu, order), None)


def scaled_modified_bessel_k0_rule(n, g):
    return mul(g, scaled_k_derivative(n.saved(0), 0, 1))


SCALED_MODIFIED_BESSEL_K0 = unary(
    "scaled_modified_bessel_k0", scaled_modified_bessel_k0_rule, flags=SPECIAL, scipy="k0e"
)


def scaled_modified_bessel_k0(x, *, out=None):
    """`exp(x) * modified_bessel_k0(x)`, without underflow.

    It is the integral of exp(x - x cosh t) over t from 0 to infinity.

    Saves `x`. Gradient: g * (r - scaled_modified_bessel_k1(x)), where r is the result.

    >>> import cygrad
    >>> cygrad.special.scaled_modified_bessel_k0(cygrad.tensor([0.5, 1.0]))
    tensor([1.5241, 1.1445])
    """
    require_real_input(SCALED_MODIFIED_BESSEL_K0, x, name="x")
    return apply1(SCALED_MODIFIED_BESSEL_K0, x, out)


def scaled_modified_bessel_k1_rule(n, g):
    return mul(g, scaled_k_derivative(n.saved(0), 1, 1))


SCALED_MODIFIED_BESSEL_K1 = unary(
    "scaled_modified_bessel_k1", scaled_modified_bessel_k1_rule, flags=SPECIAL, scipy="k1e"
)


def scaled_modified_bessel_k1(x, *, out=None):
    """`exp(x) * modified_bessel_k1(x)`, without underflow.

    It is the integral of exp(x - x cosh t) cosh t over t from 0 to infinity.

    Saves `x`. Gradient: g * (r - scaled_modified_bessel_k0(x) - r / x), where r is the result.

    >>> import cygrad
    >>> cygrad.special.scaled_modified_bessel_k1(cygrad.tensor([0.5, 1.0]))
    tensor([2.7310, 1.6362])
    """
    require_real_input(SCALED_MODIFIED_BESSEL_K1, x, name="x")
    return apply1(SCALED_MODIFIED_BESSEL_K1, x, out)


# -- Bessel functions of the first and second kind --


def bessel_j0_rule(n, g):
    return neg(mul(g, bessel_j1(n.saved(0))))


BESSEL_J0 = unary("bessel_j0", bessel_j0_rule, flags=SPECIAL, scipy="j0")


def bessel_j0(input, *, out=None):
    """Bessel function of the first kind of order 0.

    It is the mean of cos(x sin t) over t from 0 to pi.

    Saves `input`. Gradient: -g * bessel_j1(input).

    >>> import cygrad
    >>> cygrad.special.bessel_j0(cygrad.tensor([0.5, 1.0]))
    tensor([0.9385, 0.7652])
    """
    require_real_input(BESSEL_J0, input)
    return apply1(BESSEL_J0, input, out)


def bessel_j1_rule(n, g):
    x = n.saved(0)
    return mul(g, sub(bessel_j0(x), over(x, bessel_j1(x), -1)))


BESSEL_J1 = unary("bessel_j1", bessel_j1_rule, flags=SPECIAL, scipy="j1")


def bessel_j1(input, *, out=None):
    """Bessel function of the first kind of order 1.

    It is the mean of cos(t - x sin t) over t from 0 to pi.

    Saves `input`. Gradient: g * (bessel_j0(input) - r / input), where r is the result; g / 2 at 0.

    >>> import cygrad
    >>> cygrad.special.bessel_j1(cygrad.tensor([0.5, 1.0]))
    tensor([0.2423, 0.4401])
    """
    require_real_input(BESSEL_J1, input)
    return apply1(BESSEL_J1, input, out)


def bessel_y0_rule(n, g):
    return neg(mul(g, bessel_y1(n.saved(0))))


BESSEL_Y0 = unary("bessel_y0", bessel_y0_rule, flags=SPECIAL, scipy="y0")


def bessel_y0(input, *, out=None):
    """Bessel function of the second kind of order 0; -inf at 0, nan for negative input.

    It is the mean of sin(x sin t) over t from 0 to pi, minus 2 / pi times the integral of exp(-x sinh t) over t from 0
    to infinity.

    Saves `input`. Gradient: -g * bessel_y1(input).

    >>> import cygrad
    >>> cygrad.special.bessel_y0(cygrad.tensor([0.5, 1.0]))
    tensor([-0.4445,  0.0883])
    """
    require_real_input(BESSEL_Y0, input)
    return apply1(BESSEL_Y0, input, out)


def bessel_y1_rule(n, g):
    x = n.saved(0)
    return mul(g, sub(bessel_y0(x), div(bessel_y1(x), x)))


BESSEL_Y1 = unary("bessel_y1", bessel_y1_rule, flags=SPECIAL, scipy="y1")


def bessel_y1(input, *, out=None):
    """Bessel function of the second kind of order 1; -inf at 0, nan for negative input.

    It is the mean of sin(x sin t - t) over t from 0 to pi, minus 2 / pi times the integral of exp(-x sinh t) sinh t
    over t from 0 to infinity.

    Saves `input`. Gradient: g * (bessel_y0(input) - r / input), where r is the result.

    >>> import cygrad
    >>> cygrad.special.bessel_y1(cygrad.tensor([0.5, 1.0]))
    tensor([-1.4715, -0.7812])
    """
    require_real_input(BESSEL_Y1, input)
    return apply1(BESSEL_Y1, input, out)


# -- spherical Bessel and Airy functions --


def spherical_bessel_rule(n, g):
    (order,) = n.args
    x = n.saved(0)
    if order == 0:
        return neg(mul(g, spherical_bessel(x, 1)))
    lower, higher = mul(spherical_bessel(x, order - 1), order), mul(spherical_bessel(x, order + 1), order + 1)
    return mul(g, div(sub(lower, higher), 2 * order + 1))


def spherical_bessel_array(x, order):
    """Spherical Bessel function of the first kind; order 0 does not need SciPy."""
    if order:
        return by_scipy("spherical_jn", "special.spherical_bessel_j0")(np.int64(order), x)
    with np.errstate(all="ignore"):
        result = as_array(np.sin(x) / x)
    unknown = np.isnan(result)
    if is_array(x):
        return np.where(unknown, np.where(x == 0, x.dtype.type(1), np.where(np.isinf(x), x.dtype.type(0), x)), result)
    if unknown.any():
        result[unknown & (x == 0)] = 1
        result[unknown & np.isinf(x)] = 0
    return result


SPHERICAL_BESSEL = declare(
    "spherical_bessel",
    spherical_bessel_rule,
    saves=IN0,
    flags=ELEMENTWISE | PRIVATE,
    kernel=spherical_bessel_array,
    inputs="self",
    attributes="order",
)


def spherical_bessel(x, order):
    """Spherical Bessel function of the first kind of any order."""
    return apply1_args(SPHERICAL_BESSEL, x, (order,), None)


SPHERICAL_BESSEL_J0 = declare(
    "spherical_bessel_j0",
    lambda n, g: neg(mul(g, spherical_bessel(n.saved(0), 1))),
    saves=IN0,
    flags=SPECIAL,
    kernel=lambda x: spherical_bessel_array(x, 0),
    inputs="self",
)


def spherical_bessel_j0(x, *, out=None):
    """Spherical Bessel function of the first kind of order 0: `sin(x) / x`, and 1 at 0.

    Saves `x`. Gradient: -g times the function of order 1, which needs SciPy.

    >>> import cygrad
    >>> cygrad.special.spherical_bessel_j0(cygrad.tensor([0.0, 1.0]))
    tensor([1.0000, 0.8415])
    """
    require_real_input(SPHERICAL_BESSEL_J0, x, name="x")
    return apply1(SPHERICAL_BESSEL_J0, x, out)


def airy_ai_rule(n, g):
    return mul(g, airy_ai_slope(n.saved(0)))


AIRY_AI = declare(
    "airy_ai", airy_ai_rule, saves=IN0, flags=SPECIAL, kernel=by_scipy("airy", "special.airy_ai", 0), inputs="self"
)


def airy_ai(x, *, out=None):
    """Airy function Ai, a solution of y'' = x * y. Saves `x`. Gradient: g * Ai'(x).

    It is the integral of cos(t^3 / 3 + x t) over t from 0 to infinity, divided by pi.

    >>> import cygrad
    >>> cygrad.special.airy_ai(cygrad.tensor([0.0, 1.0]))
    tensor([0.3550, 0.1353])
    """
    require_real_input(AIRY_AI, x, name="x")
    return apply1(AIRY_AI, x, out)


def airy_ai_slope_rule(n, g):
    x = n.saved(0)
    return mul(g, mul(x, airy_ai(x)))


AIRY_AI_SLOPE = declare(
    "airy_ai_slope",
    airy_ai_slope_rule,
    saves=IN0,
    flags=ELEMENTWISE | FLOAT_RESULT | PRIVATE,
    kernel=by_scipy("airy", "special.airy_ai", 1),
    inputs="self",
)


def airy_ai_slope(x):
    """Derivative of the Airy function Ai. Gradient: g * x * Ai(x)."""
    return apply1(AIRY_AI_SLOPE, x, None)


functions = publish(globals())
