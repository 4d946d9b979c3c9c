"""Gamma functions and the zeta function, elementwise. Their values come from SciPy, which must be installed.

Integers are first converted to the default dtype. Complex tensors raise NotImplementedError. Names that `cygrad` itself
does not have are in `cygrad.special`.
"""

import math
from functools import partial

import numpy as np

from cygrad._core.engine.blocked_gradients import reused
from cygrad._core.graph.opdef import ELEMENTWISE, FUNCTION_ONLY, IN0, IN1, INPLACE, declare, publish
from cygrad._core.graph.record import apply1, apply1_args, tensor_argument
from cygrad._kernels.cpu.base import chunks
from cygrad._kernels.cpu.base.half_sums import in_float32, is_half
from cygrad._kernels.cpu.base.numpy_fallback import silent
from cygrad._kernels.cpu.elementwise.fused_loops import fused
from cygrad._kernels.cpu.elementwise.polynomial_tables import Tabled
from cygrad._kernels.device.cupy_library import as_array
from cygrad._ops.base.arguments import integer, require
from cygrad._ops.base.arithmetic import add, mul, neg, sub
from cygrad._ops.base.checks.common import require_broadcast, require_real, require_tensors
from cygrad._ops.base.pointwise import exp, log
from cygrad._ops.common.gradients import sum_type
from cygrad._ops.common.scipy_kernels import SMOOTH, SPECIAL, by_scipy, require_real_input, scipy_for
from cygrad._ops.elementwise.binary import of_one_type
from cygrad._ops.elementwise.special_functions import of_operands

# -- gamma functions --


def lgamma_rule(n, g):
    return mul(g, digamma(n.saved(0)))


def log_gamma(x):
    if type(x) is np.ndarray:
        scipy_for("lgamma")  # raises if SciPy is missing, even if the table has the values
    found = LGAMMA_TABLE(x)
    return log_gamma_values(x) if found is None else found


def log_gamma_values(x):
    """SciPy's gammaln, but inf at -inf as well."""
    values = as_array(by_scipy("gammaln", "lgamma")(x))
    np.copyto(values, np.inf, where=values == -np.inf)  # indexing by a mask would wait for a GPU
    return values


LGAMMA_TABLE = Tabled(log_gamma_values)
LGAMMA = declare(
    "lgamma",
    lgamma_rule,
    saves=IN0,
    flags=SMOOTH,
    kernel=partial(log_gamma),
    inputs="self",
    spellings={"gammaln": "special_gammaln"},
)


def lgamma(input, *, out=None):
    """Compute the logarithm of the magnitude of the gamma function. Saves `input`. Gradient: g * digamma(input).

    gamma(x) is the integral of t^(x - 1) exp(-t) from 0 to infinity for x > 0, and gamma(x + 1) / x below.

    >>> import cygrad
    >>> cygrad.lgamma(cygrad.tensor([1.0, 5.0]))
    tensor([0.0000, 3.1781])
    """
    require_real_input(LGAMMA, input)
    return apply1(LGAMMA, input, out)


def digamma_array(x):
    found = DIGAMMA_TABLE(x)
    return digamma_values(x) if found is None else found


def digamma_values(x):
    """SciPy's digamma, but at the poles -inf at 0, inf at -0 and NaN at negative integers, as in PyTorch."""
    values = by_scipy("digamma", "digamma")(x)
    with np.errstate(all="ignore"):
        values = np.where(x == 0, np.copysign(x.dtype.type(np.inf), -x), values)
        return np.where((x < 0) & (x == np.floor(x)), x.dtype.type(np.nan), values)


DIGAMMA_TABLE = Tabled(digamma_values)


def digamma_rule(n, g):
    slope = polygamma(1, n.saved(0))
    return mul(slope, g, out=reused(slope))


DIGAMMA = declare(
    "digamma",
    digamma_rule,
    saves=IN0,
    flags=SMOOTH,
    kernel=partial(digamma_array),
    inputs="self",
    spellings={"psi": "special_psi"},
)


def digamma(input, *, out=None):
    """Compute the logarithmic derivative of the gamma function. Saves `input`. Gradient: g * polygamma(1, input).

    It is gamma'(x) / gamma(x), or log(x) - 1 / (2 x) - 1 / (12 x^2) + ... for large x.

    >>> import cygrad
    >>> cygrad.digamma(cygrad.tensor([1.0, 0.5]))
    tensor([-0.5772, -1.9635])
    """
    require_real_input(DIGAMMA, input, "digamma")
    return apply1(DIGAMMA, input, out)


def trigamma_values(x):
    """Compute trigamma in float64, accurate to 1e-15: 10 terms of its series, plus the remainder.

    The remainder is, with y = x + 10, the asymptotic series 6.4.12 of Abramowitz and Stegun; x < 1/2 is reflected by
    6.4.7.
    """
    reflected = x < 0.5
    some = reflected.any()
    z = np.where(reflected, 1 - x, x) if some else x
    r = 1 / (z + 10)
    s = r * r
    found = np.full_like(z, -3617 / 510)
    for number in (7 / 6, -691 / 2730, 5 / 66, -1 / 30, 1 / 42, -1 / 30, 1 / 6):  # Bernoulli numbers
        found *= s
        found += number
    found *= s
    found += 1 + 0.5 * r
    found *= r
    for k in range(10):
        np.add(z, k, out=s)
        s *= s
        np.reciprocal(s, out=s)
        found += s
    if some:
        sines = np.sin(np.pi * (x - np.rint(x)))
        found = np.where(reflected, (np.pi / sines) ** 2 - found, found)
    return np.where(x == np.inf, 0.0, found)


def trigamma_in_blocks(x):
    return chunks.in_blocks(trigamma_values, (x,), size=1 << 12) if x.size > 1 << 12 else trigamma_values(x)


TRIGAMMA_TABLE = Tabled(trigamma_in_blocks, negative=False)


@silent
def trigamma_array(x):
    if x.ndim == 0:
        return trigamma_array(x.reshape(1)).reshape(())
    found = TRIGAMMA_TABLE(x if x.dtype == np.float64 else x.astype(np.float32, copy=False))
    return (trigamma_in_blocks(x.astype(np.float64, copy=False)) if found is None else found).astype(
        x.dtype, copy=False
    )


def polygamma_array(x, n):
    if n == 1 and type(x) is np.ndarray:
        return trigamma_array(x)
    return digamma_array(x) if n == 0 else by_scipy("polygamma", "polygamma")(np.int64(n), x)


def polygamma_rule(n, g):
    (order,) = n.args
    return mul(g, polygamma(order + 1, n.saved(0)))


POLYGAMMA = declare(
    "polygamma",
    polygamma_rule,
    saves=IN0,
    flags=ELEMENTWISE | FUNCTION_ONLY,
    kernel=partial(polygamma_array),
    inputs="self",
    attributes="n",
)


def polygamma(n, input, *, out=None):
    """Compute the `n`-th derivative of `digamma`, n >= 0. Saves `input`. Gradient: g * polygamma(n + 1, input).

    For n > 0 it is (-1)^(n + 1) n! times the sum of (input + k)^-(n + 1) over k >= 0.

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
    """Compute the `n`-th derivative of `digamma`; see `cygrad.polygamma`.

    >>> import cygrad
    >>> cygrad.tensor([1.0]).polygamma(1)
    tensor([1.6449])
    """
    return polygamma(n, self)


def polygamma_method_(self, n):
    """In-place form of `polygamma`.

    >>> import cygrad
    >>> cygrad.tensor([1.0]).polygamma_(1)
    tensor([1.6449])
    """
    return polygamma(n, self, out=self)


def mvlgamma_array(x, p):
    if is_half(x):
        return in_float32(mvlgamma_array, x, p)
    total = log_gamma(as_array(x - x.dtype.type((p - 1) / 2)))
    for j in range(p - 1):
        total = as_array(total + log_gamma(as_array(x - x.dtype.type(j / 2))))
    return as_array(total + x.dtype.type(p * (p - 1) / 4 * math.log(math.pi)))


def mvlgamma_rule(n, g):
    x, total = n.saved(0), None
    x = x.to(sum_type(x))  # half precision may round to a pole
    for j in range(n.args[0]):
        slope = digamma(sub(x, j / 2))
        total = slope if total is None else add(total, slope)
    return mul(g, total)


MVLGAMMA = declare(
    "mvlgamma",
    mvlgamma_rule,
    saves=IN0,
    flags=SMOOTH,
    kernel=mvlgamma_array,
    inputs="self",
    attributes="p",
    spellings={"multigammaln": "special_multigammaln"},
)


def mvlgamma(input, p, *, out=None):
    """Compute the logarithm of the multivariate gamma function of dimension `p`, for `input` > (p - 1) / 2.

    The result is p (p - 1) / 4 * log(pi) + the sum of lgamma(input - j / 2) over j < p. Saves `input`. Gradient: g
    times the sum of digamma(input - j / 2).

    >>> import cygrad
    >>> cygrad.mvlgamma(cygrad.tensor([2.0]), 2)
    tensor([0.4516])
    """
    p = integer(p, "mvlgamma", "p", 2)
    t = require(input, "mvlgamma")
    if p < 1:
        raise RuntimeError("p has to be greater than or equal to 1")
    require_real_input(LGAMMA, t)
    return apply1_args(MVLGAMMA, t if t.is_floating_point() else t + 0.0, (p,), out)


# -- incomplete gamma and zeta functions --


def no_gradient_of_first(n, name):
    if n.needs(0):
        raise NotImplementedError(f"the derivative for 'self' is not implemented for '{name}'")


def igamma_rule(n, g):
    no_gradient_of_first(n, "igamma")
    return None, mul(g, gamma_density(n.saved(0), n.saved(1)))


def gamma_density(a, x):
    """Compute x^(a - 1) * exp(-x) / gamma(a)."""
    return exp(sub(sub(mul(sub(a, 1), log(x)), x), lgamma(a)))


def incomplete_gamma(name, function, is_upper):
    """Return a kernel: a float32 loop where it has a result (else it gives NaN), otherwise SciPy's function."""
    by_name = by_scipy(name, function)

    def kernel(a, x):
        is_single = type(a) is type(x) is np.ndarray and a.dtype == x.dtype == np.float32
        found = fused("incomplete_gamma", a, x, numbers=(is_upper,)) if is_single else None
        if found is None:
            return by_name(a, x)
        unknown = np.isnan(found)
        if unknown.any():
            unknown &= (a >= 0) & (x >= 0)  # elsewhere the result is NaN
            found[unknown] = by_name(*(operand[unknown] for operand in np.broadcast_arrays(a, x)))
        return found

    return partial(kernel)


IGAMMA = declare(
    "igamma",
    igamma_rule,
    saves=(0, IN0 | IN1),
    flags=ELEMENTWISE | INPLACE,
    kernel=incomplete_gamma("gammainc", "igamma", False),
    spellings={"gammainc": "special_gammainc"},
)


def igamma(input, other, *, out=None):
    """Compute the regularized lower incomplete gamma function P(input, other). Saves both.

    P(a, x) is the integral of t^(a - 1) exp(-t) from 0 to x, divided by gamma(a).

    Gradient for `other`: g * other^(input - 1) * exp(-other) / gamma(input). Not differentiable in `input`, which
    raises NotImplementedError in backward.

    >>> import cygrad
    >>> cygrad.igamma(cygrad.tensor([1.0]), cygrad.tensor([1.0]))
    tensor([0.6321])
    """
    return of_two(IGAMMA, input, other, out)


def igammac_rule(n, g):
    no_gradient_of_first(n, "igammac")
    return None, neg(mul(g, gamma_density(n.saved(0), n.saved(1))))


IGAMMAC = declare(
    "igammac",
    igammac_rule,
    saves=(0, IN0 | IN1),
    flags=ELEMENTWISE | INPLACE,
    kernel=incomplete_gamma("gammaincc", "igammac", True),
    spellings={"gammaincc": "special_gammaincc"},
)


def igammac(input, other, *, out=None):
    """Compute the regularized upper incomplete gamma function Q = 1 - P. See `igamma`.

    Q(a, x) is the integral of t^(a - 1) exp(-t) from x to infinity, divided by gamma(a).

    Saves `input` and `other`.

    >>> import cygrad
    >>> cygrad.igammac(cygrad.tensor([1.0]), cygrad.tensor([1.0]))
    tensor([0.3679])
    """
    return of_two(IGAMMAC, input, other, out)


def of_two(op, input, other, out):
    require_tensors(op, input, other)
    require_real(op, input, other, integers=False)
    require_broadcast(input, other)
    return of_one_type(op, input, other, out)


def zeta_rule(n, g):
    if n.needs(0):
        raise NotImplementedError("the derivative for 'zeta' is not implemented.")
    x, q = n.saved(0), n.saved(1)
    return None, neg(mul(g, mul(x, zeta(add(x, 1), q))))


ZETA = declare(
    "zeta",
    zeta_rule,
    saves=(0, IN0 | IN1),
    flags=SPECIAL,
    kernel=by_scipy("zeta", "special.zeta"),
    inputs="self other",
    node="SpecialZetaBackward0",
    overloads="",
)


def zeta(input, other, *, out=None):
    """Compute the Hurwitz zeta function, the sum of (k + other) ** -input over k >= 0. Saves both.

    Either may be a number. Gradient for `other`: -g * input * zeta(input + 1, other). Not differentiable in `input`,
    which raises NotImplementedError in backward.

    >>> import cygrad
    >>> cygrad.special.zeta(cygrad.tensor([2.0, 4.0]), 1)
    tensor([1.6449, 1.0823])
    """
    return of_operands(ZETA, input, other, out)


methods = {
    "polygamma": polygamma_method,
    "polygamma_": polygamma_method_,
}
functions = publish(globals())
