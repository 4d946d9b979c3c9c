"""Gamma, error and Bessel functions, elementwise. Their values come from SciPy, which must be installed.

Integers are first converted to the default float type. Complex tensors raise NotImplementedError. Names without a
function of the package are in `cygrad.special`.
"""

import math

import numpy as np

from cygrad._core import messages
from cygrad._core.opdef import (
    ELEMENTWISE,
    FLOAT_RESULT,
    FUNCTION_ONLY,
    IN0,
    IN1,
    INPLACE,
    METHOD_ONLY,
    declare,
    publish,
)
from cygrad._core.record import apply1, apply1_args, apply_n, tensor_argument
from cygrad._ops.arguments import integer, require
from cygrad._ops.arithmetic import add, div, mul, neg, sub
from cygrad._ops.checks import require_broadcast, require_real, require_tensors
from cygrad._ops.pointwise import exp, log, sgn, square
from cygrad._ops.selection import where

SMOOTH = ELEMENTWISE | INPLACE | FLOAT_RESULT
SPECIAL = ELEMENTWISE | FLOAT_RESULT | FUNCTION_ONLY | METHOD_ONLY  # neither: found in cygrad.special


def by_scipy(name, function):
    """A kernel that calls `scipy.special.<name>` in float64, or float32 for float32; for the op `function`."""

    def kernel(*arrays):
        try:
            from scipy import special
        except ImportError:
            text = f"cygrad.{function} takes its values from SciPy, which is not installed\n  pip install scipy"
            raise ImportError(text) from None
        dtype = np.result_type(*(a for a in arrays if isinstance(a, np.ndarray)))
        with np.errstate(all="ignore"):
            if dtype == np.float16:
                arrays = tuple(a.astype(np.float32) if isinstance(a, np.ndarray) else a for a in arrays)
            return np.asarray(getattr(special, name)(*arrays)).astype(dtype, copy=False)

    return kernel


def require_real_input(op, input, kernel=None):
    is_special = op.flags & METHOD_ONLY
    if require(input, f"special_{op.name}" if is_special else op.name).is_complex():
        raise messages.not_implemented_for(kernel or op.name + ("_cpu" if is_special else "_vml_cpu"), input.dtype)


def unary(name, rule, *, saves=IN0, flags=SMOOTH, scipy=None, **row):
    return declare(name, rule, saves=saves, flags=flags, kernel=by_scipy(scipy or name, name), inputs="self", **row)


# -- error functions ------------------------------------------------------------------------------


def erfc_rule(n, g):
    return mul(g, mul(exp(neg(square(n.saved(0)))), -2 / math.sqrt(math.pi)))


ERFC = unary("erfc", erfc_rule)


def erfc(input, *, out=None):
    """`1 - erf(input)`, precise where that is near 0. Saves `input`. Gradient: -g * 2 / sqrt(pi) * exp(-input^2).

    >>> import cygrad
    >>> cygrad.erfc(cygrad.tensor([0.0, 1.0]))
    tensor([1.0000, 0.1573])
    """
    require_real_input(ERFC, input)
    return apply1(ERFC, input, out)


def erfinv_rule(n, g):
    return mul(g, mul(exp(square(erfinv(n.saved(0)))), math.sqrt(math.pi) / 2))


ERFINV = unary("erfinv", erfinv_rule)


def erfinv(input, *, out=None):
    """The inverse of `erf`: inf at 1, nan beyond. Saves `input`. Gradient: g * sqrt(pi) / 2 * exp(erfinv(input)^2).

    >>> import cygrad
    >>> cygrad.erfinv(cygrad.tensor([0.0, 0.5]))
    tensor([0.0000, 0.4769])
    """
    require_real_input(ERFINV, input)
    return apply1(ERFINV, input, out)


def erfcx_rule(n, g):
    x = n.saved(0)
    return mul(g, sub(mul(mul(x, erfcx(x)), 2), 2 / math.sqrt(math.pi)))


ERFCX = unary("erfcx", erfcx_rule, flags=SPECIAL, node="SpecialErfcxBackward0")


def erfcx(input, *, out=None):
    """`exp(input^2) * erfc(input)`, without underflow. Saves `input`. Gradient: g * (2 * input * r - 2 / sqrt(pi)).

    >>> import cygrad
    >>> cygrad.special.erfcx(cygrad.tensor([0.0, 10.0]))
    tensor([1.0000, 0.0561])
    """
    require_real_input(ERFCX, input)
    return apply1(ERFCX, input, out)


def ndtri_rule(n, g):
    return mul(g, mul(exp(div(square(ndtri(n.saved(0))), 2)), math.sqrt(2 * math.pi)))


NDTRI = unary("ndtri", ndtri_rule, flags=SPECIAL, node="SpecialNdtriBackward0")


def ndtri(input, *, out=None):
    """The inverse of `ndtr`: quantiles of the standard normal distribution. Saves `input`.

    Gradient: g * sqrt(2 pi) * exp(r^2 / 2), where r is the result.

    >>> import cygrad
    >>> cygrad.special.ndtri(cygrad.tensor([0.5, 0.975]))
    tensor([0.0000, 1.9600])
    """
    require_real_input(NDTRI, input)
    return apply1(NDTRI, input, out)


def log_ndtr_rule(n, g):
    x = n.saved(0)
    return mul(g, div(math.sqrt(2 / math.pi), erfcx(mul(x, -1 / math.sqrt(2)))))


LOG_NDTR = unary("log_ndtr", log_ndtr_rule, flags=SPECIAL, node="SpecialLogNdtrBackward0")


def log_ndtr(input, *, out=None):
    """The logarithm of `ndtr(input)`, precise far below 0. Saves `input`.

    Gradient: g * sqrt(2 / pi) / erfcx(-input / sqrt(2)).

    >>> import cygrad
    >>> cygrad.special.log_ndtr(cygrad.tensor([0.0, -30.0]))
    tensor([  -0.6931, -454.3213])
    """
    require_real_input(LOG_NDTR, input)
    return apply1(LOG_NDTR, input, out)


# -- gamma functions ------------------------------------------------------------------------------


def lgamma_rule(n, g):
    return mul(g, digamma(n.saved(0)))


LGAMMA = unary("lgamma", lgamma_rule, scipy="gammaln")


def lgamma(input, *, out=None):
    """The logarithm of the magnitude of the gamma function. Saves `input`. Gradient: g * digamma(input).

    >>> import cygrad
    >>> cygrad.lgamma(cygrad.tensor([1.0, 5.0]))
    tensor([0.0000, 3.1781])
    """
    require_real_input(LGAMMA, input)
    return apply1(LGAMMA, input, out)


def digamma_array(x):
    """SciPy's, but at the poles -inf at 0, inf at -0 and nan at negative integers, as in PyTorch."""
    values = by_scipy("digamma", "digamma")(x)
    with np.errstate(all="ignore"):
        values = np.where(x == 0, np.copysign(x.dtype.type(np.inf), -x), values)
        return np.where((x < 0) & (x == np.floor(x)), x.dtype.type(np.nan), values)


def digamma_rule(n, g):
    return mul(g, polygamma(1, n.saved(0)))


DIGAMMA = declare("digamma", digamma_rule, saves=IN0, flags=SMOOTH, kernel=digamma_array, inputs="self")


def digamma(input, *, out=None):
    """The logarithmic derivative of the gamma function. Saves `input`. Gradient: g * polygamma(1, input).

    >>> import cygrad
    >>> cygrad.digamma(cygrad.tensor([1.0, 0.5]))
    tensor([-0.5772, -1.9635])
    """
    require_real_input(DIGAMMA, input, "digamma")
    return apply1(DIGAMMA, input, out)


def polygamma_array(x, n):
    return digamma_array(x) if n == 0 else by_scipy("polygamma", "polygamma")(np.int64(n), x)


def polygamma_rule(n, g):
    (order,) = n.args
    return mul(g, polygamma(order + 1, n.saved(0)))


POLYGAMMA = declare(
    "polygamma",
    polygamma_rule,
    saves=IN0,
    flags=ELEMENTWISE | FUNCTION_ONLY,
    kernel=polygamma_array,
    inputs="self",
    attributes="n",
)


def polygamma(n, input, *, out=None):
    """The `n`-th derivative of `digamma`, n >= 0. Saves `input`. Gradient: g * polygamma(n + 1, input).

    >>> import cygrad
    >>> cygrad.polygamma(1, cygrad.tensor([1.0]))
    tensor([1.6449])
    """
    n = integer(n, "polygamma", "n", 1)
    t = tensor_argument(POLYGAMMA, input, "input", 2)
    if n < 0:
        raise RuntimeError("polygamma(n, x) does not support negative n.")
    require_real_input(POLYGAMMA, t, "trigamma" if n == 1 else "polygamma")
    return apply1_args(POLYGAMMA, t if t.is_floating_point() else add(t, 0.0), (n,), out)


def polygamma_method(self, n):
    """The `n`-th derivative of `digamma`; see `cygrad.polygamma`."""
    return polygamma(n, self)


def polygamma_method_(self, n):
    """In-place form of `polygamma`."""
    return polygamma(n, self, out=self)


def mvlgamma(input, p, *, out=None):
    """The logarithm of the multivariate gamma function of dimension `p`, for `input` > (p - 1) / 2.

    It is p (p - 1) / 4 * log(pi) + the sum of lgamma(input - j / 2) over j < p, and its gradient follows from that.

    >>> import cygrad
    >>> cygrad.mvlgamma(cygrad.tensor([2.0]), 2)
    tensor([0.4516])
    """
    p = integer(p, "mvlgamma", "p", 2)
    t = require(input, "mvlgamma")
    if p < 1:
        raise RuntimeError("p has to be greater than or equal to 1")
    result = p * (p - 1) / 4 * math.log(math.pi)
    for j in range(p):
        result = add(lgamma(sub(t, j / 2)), result)
    return result if out is None else out.copy_(result)


def mvlgamma_(self, p):
    """In-place form of `mvlgamma`."""
    return self.copy_(mvlgamma(self, p))


# -- incomplete gamma, zeta -----------------------------------------------------------------------


def no_gradient_of_first(n, name):
    if n.needs(0):
        raise NotImplementedError(f"the derivative for 'self' is not implemented for '{name}'")


def igamma_rule(n, g):
    no_gradient_of_first(n, "igamma")
    return None, mul(g, gamma_density(n.saved(0), n.saved(1)))


def gamma_density(a, x):
    """x^(a - 1) * exp(-x) / gamma(a)."""
    return exp(sub(sub(mul(sub(a, 1), log(x)), x), lgamma(a)))


IGAMMA = declare(
    "igamma", igamma_rule, saves=(0, IN0 | IN1), flags=ELEMENTWISE | INPLACE, kernel=by_scipy("gammainc", "igamma")
)


def igamma(input, other, *, out=None):
    """The regularised lower incomplete gamma function P(input, other). Saves both.

    Gradient for `other`: g * other^(input - 1) * exp(-other) / gamma(input). There is none for `input`, which raises
    NotImplementedError in backward.

    >>> import cygrad
    >>> cygrad.igamma(cygrad.tensor([1.0]), cygrad.tensor([1.0]))
    tensor([0.6321])
    """
    return of_two(IGAMMA, input, other, out)


def igammac_rule(n, g):
    no_gradient_of_first(n, "igammac")
    return None, neg(mul(g, gamma_density(n.saved(0), n.saved(1))))


IGAMMAC = declare(
    "igammac", igammac_rule, saves=(0, IN0 | IN1), flags=ELEMENTWISE | INPLACE, kernel=by_scipy("gammaincc", "igammac")
)


def igammac(input, other, *, out=None):
    """The regularised upper incomplete gamma function Q = 1 - P. See `igamma`.

    >>> import cygrad
    >>> cygrad.igammac(cygrad.tensor([1.0]), cygrad.tensor([1.0]))
    tensor([0.3679])
    """
    return of_two(IGAMMAC, input, other, out)


def of_two(op, input, other, out):
    require_tensors(op, input, other)
    require_real(op, input, other, integers=False)
    require_broadcast(input, other)
    return apply_n(op, (input, other), None, out)


# -- Bessel functions -----------------------------------------------------------------------------


def i0_rule(n, g):
    return mul(g, i1(n.saved(0)))


I0 = unary("i0", i0_rule)


def i0(input, *, out=None):
    """The modified Bessel function of the first kind of order 0. Saves `input`. Gradient: g * i1(input).

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
    """`exp(-|input|) * i0(input)`. Saves `input`. Gradient: g * (i1e(input) - sgn(input) * r).

    >>> import cygrad
    >>> cygrad.special.i0e(cygrad.tensor([0.0, 1.0]))
    tensor([1.0000, 0.4658])
    """
    require_real_input(I0E, input)
    return apply1(I0E, input, out)


def over(x, values):
    """values / x, where values / x tends to 1/2 at 0."""
    at_0 = x == 0
    return where(at_0, 0.5, div(values, where(at_0, 1.0, x)))


def i1_rule(n, g):
    x = n.saved(0)
    return mul(g, sub(i0(x), over(x, i1(x))))


I1 = unary("i1", i1_rule, flags=SPECIAL, node="SpecialI1Backward0")


def i1(input, *, out=None):
    """The modified Bessel function of the first kind of order 1. Saves `input`.

    Gradient: g * (i0(input) - r / input), 1/2 at 0.

    >>> import cygrad
    >>> cygrad.special.i1(cygrad.tensor([0.0, 1.0]))
    tensor([0.0000, 0.5652])
    """
    require_real_input(I1, input)
    return apply1(I1, input, out)


def i1e_rule(n, g):
    x = n.saved(0)
    return mul(g, sub(sub(i0e(x), over(x, i1e(x))), mul(sgn(x), i1e(x))))


I1E = unary("i1e", i1e_rule, flags=SPECIAL, node="SpecialI1EBackward0")


def i1e(input, *, out=None):
    """`exp(-|input|) * i1(input)`. Saves `input`. Gradient: g * (i0e(input) - r * (sgn(input) + 1 / input)), 1/2 at 0.

    >>> import cygrad
    >>> cygrad.special.i1e(cygrad.tensor([0.0, 1.0]))
    tensor([0.0000, 0.2079])
    """
    require_real_input(I1E, input)
    return apply1(I1E, input, out)


composite = {"mvlgamma": 0}
methods = {
    "mvlgamma_": mvlgamma_,
    "polygamma": polygamma_method,
    "polygamma_": polygamma_method_,
}
functions = publish(globals())
