"""Error functions and entropies, elementwise. Most values come from SciPy, which must be installed.

Integers are first converted to the default dtype. Complex tensors raise NotImplementedError. Names that `cygrad` itself
does not have are in `cygrad.special`.
"""

import math
from functools import partial

import numpy as np

from cygrad._core.errors import messages
from cygrad._core.graph.opdef import IN0, IN1, declare, publish
from cygrad._core.graph.record import apply1, apply_n
from cygrad._core.runtime.thread_state import NO_GRAD, get_modes
from cygrad._kernels.cpu.base import elementary
from cygrad._kernels.cpu.base import elementwise as kernels
from cygrad._kernels.cpu.base.numpy_fallback import silent
from cygrad._kernels.cpu.elementwise.fused_loops import by_loop
from cygrad._kernels.cpu.elementwise.polynomial_tables import Tabled
from cygrad._kernels.device.cupy_library import as_array
from cygrad._ops.base.arguments import require
from cygrad._ops.base.arithmetic import add, div, mul, neg, sub
from cygrad._ops.base.checks.common import require_broadcast, require_operands, require_real
from cygrad._ops.base.pointwise import exp, log, log1p, square
from cygrad._ops.common.scipy_kernels import SMOOTH, SPECIAL, by_scipy, require_real_input, unary
from cygrad._ops.elementwise.binary import as_tensors, logarithm_gradients
from cygrad._ops.elementwise.selection import where

# -- error functions --


def erfc_rule(n, g):
    return mul(g, mul(exp(neg(square(n.saved(0)))), -2 / math.sqrt(math.pi)))


ERFC_VALUES = by_loop("erfc")(by_scipy("erfc", "erfc"))
ERFC_TABLE = Tabled(ERFC_VALUES)


def erfc_array(x):
    found = ERFC_TABLE(x)
    return ERFC_VALUES(x) if found is None else found


ERFC = declare("erfc", erfc_rule, saves=IN0, flags=SMOOTH, kernel=partial(erfc_array), inputs="self")


def erfc(input, *, out=None):
    """Compute `1 - erf(input)`, accurate also for small results. Saves `input`.

    Gradient: -g * 2 / sqrt(pi) * exp(-input^2).

    >>> import cygrad
    >>> cygrad.erfc(cygrad.tensor([0.0, 1.0]))
    tensor([1.0000, 0.1573])
    """
    require_real_input(ERFC, input)
    return apply1(ERFC, input, out)


def erfinv_rule(n, g):
    return mul(g, mul(exp(square(erfinv(n.saved(0)))), math.sqrt(math.pi) / 2))


def erfinv_from_1(y):
    """Compute erfinv(1 - y) / (1 - y)."""
    x = 1 - y
    return np.where(x == 0, math.sqrt(math.pi) / 2, ERFCINV(y) / np.where(x == 0, 1, x))


@silent
def erfinv_array(x):
    """SciPy's erfinv; for float32, x * f(1 - |x|), since 1 - |x| is exact where f is steep."""
    found = ERFINV_TABLE(np.asarray(1 - abs(x))) if type(x) is np.ndarray and x.dtype == np.float32 else None
    return ERFINV_VALUES(x) if found is None else np.multiply(found, x, out=found)


ERFINV_VALUES, ERFCINV = by_scipy("erfinv", "erfinv"), by_scipy("erfcinv", "erfinv")
ERFINV_TABLE = Tabled(erfinv_from_1)
ERFINV = declare(
    "erfinv",
    erfinv_rule,
    saves=IN0,
    flags=SMOOTH,
    kernel=erfinv_array,
    inputs="self",
    autocast_gpu="float32",
    casts_itself=True,
)


def erfinv(input, *, out=None):
    """Compute the inverse of `erf`: inf at 1, NaN beyond. Saves `input`.

    Gradient: g * sqrt(pi) / 2 * exp(erfinv(input)^2).

    >>> import cygrad
    >>> cygrad.erfinv(cygrad.tensor([0.0, 0.5]))
    tensor([0.0000, 0.4769])
    """
    require_real_input(ERFINV, input)
    return apply1(ERFINV, input, out)


# Beyond these, cancellation in the derivative of erfcx loses more digits than its asymptotic series
FAR, FAR_FOR_SINGLE = 20, 6


def erfcx_rule(n, g):
    x = n.saved(0)
    far = FAR if x.dtype.name == "float64" else FAR_FOR_SINGLE
    is_far = x > far
    near = sub(mul(mul(x, erfcx(x)), 2), 2 / math.sqrt(math.pi))
    return mul(g, where(is_far, slope_of_erfcx(where(is_far, x, far)), near))


def slope_of_erfcx(x):
    """Compute the derivative for large `x`, by its asymptotic series."""
    y = square(div(1, x))
    total = 1
    for k in range(7, 0, -1):
        total = sub(1, mul(mul(y, k + 0.5), total))
    return mul(mul(y, -1 / math.sqrt(math.pi)), total)


ERFCX = unary("erfcx", erfcx_rule, flags=SPECIAL, node="SpecialErfcxBackward0")


def erfcx(input, *, out=None):
    """Compute `exp(input^2) * erfc(input)` without underflow. Saves `input`.

    Gradient: g * (2 * input * r - 2 / sqrt(pi)), where r is the result.

    >>> import cygrad
    >>> cygrad.special.erfcx(cygrad.tensor([0.0, 10.0]))
    tensor([1.0000, 0.0561])
    """
    require_real_input(ERFCX, input)
    return apply1(ERFCX, input, out)


def ndtri_rule(n, g):
    return mul(g, mul(exp(div(square(ndtri(n.saved(0))), 2)), math.sqrt(2 * math.pi)))


@silent
def ndtri_array(x):
    """SciPy's ndtri; for float32 above 1/2, -ndtri(1 - x), since 1 - x is exact and ndtri is steep there."""
    if type(x) is not np.ndarray or x.dtype != np.float32:
        return NDTRI_VALUES(x)
    values = NDTRI_VALUES(np.asarray(np.minimum(x, 1 - x)))
    return np.copysign(values, x - x.dtype.type(0.5), out=values)


NDTRI_VALUES = by_scipy("ndtri", "special.ndtri")
NDTRI = declare(
    "ndtri", ndtri_rule, saves=IN0, flags=SPECIAL, kernel=ndtri_array, inputs="self", node="SpecialNdtriBackward0"
)


def ndtri(input, *, out=None):
    """Compute the inverse of `ndtr`, quantiles of the standard normal distribution. Saves `input`.

    The result is sqrt(2) * erfinv(2 * input - 1).

    Gradient: g * sqrt(2 pi) * exp(r^2 / 2), where r is the result.

    >>> import cygrad
    >>> cygrad.special.ndtri(cygrad.tensor([0.5, 0.975]))
    tensor([0.0000, 1.9600])
    """
    require_real_input(NDTRI, input)
    return apply1(NDTRI, input, out)


FAR_BELOW = 1e9


def log_ndtr_rule(n, g):
    """g times density / ndtr(x); below 0, where ndtr loses precision, the ratio is computed by erfcx."""
    x = n.saved(0)
    is_below = x < 0
    above, below = where(is_below, 0.0, x), where(is_below, x, 0.0)
    ratio = div(mul(exp(div(square(above), -2)), 1 / math.sqrt(2 * math.pi)), ndtr(above))
    is_far = None
    if not get_modes() & NO_GRAD:
        is_far = x < -FAR_BELOW  # there the ratio is -x, and derivatives of the quotient would leave the range
        below = where(is_far, 0.0, below)
    of_erfcx = div(math.sqrt(2 / math.pi), erfcx(mul(below, -1 / math.sqrt(2))))
    slope = where(is_below, of_erfcx, ratio)
    return mul(g, slope if is_far is None else where(is_far, neg(x), slope))


LOG_NDTR = unary("log_ndtr", log_ndtr_rule, flags=SPECIAL, node="SpecialLogNdtrBackward0")


def log_ndtr(input, *, out=None):
    """Compute `log((1 + erf(input / sqrt(2))) / 2)`, the logarithm of `ndtr`, accurate far below 0. Saves `input`.

    Gradient: g * sqrt(2 / pi) / erfcx(-input / sqrt(2)).

    >>> import cygrad
    >>> cygrad.special.log_ndtr(cygrad.tensor([0.0, -30.0]))
    tensor([  -0.6931, -454.3213])
    """
    require_real_input(LOG_NDTR, input)
    return apply1(LOG_NDTR, input, out)


def ndtr_array(x):
    values = as_array(kernels.erf(as_array(x * x.dtype.type(math.sqrt(0.5)))))
    values += 1
    values *= 0.5
    return values


def ndtr_rule(n, g):
    return mul(g, mul(exp(mul(square(n.saved(0)), -0.5)), 1 / math.sqrt(2 * math.pi)))


NDTR = declare("ndtr", ndtr_rule, saves=IN0, flags=SPECIAL, kernel=ndtr_array, node="MulBackward0", inputs="self")


def ndtr(input, *, out=None):
    """Compute the standard normal distribution function, `(1 + erf(input / sqrt(2))) / 2`. Does not need SciPy.

    Saves `input`. Gradient: g * exp(-input^2 / 2) / sqrt(2 pi).

    >>> import cygrad
    >>> cygrad.special.ndtr(cygrad.tensor([0.0, 1.96]))
    tensor([0.5000, 0.9750])
    """
    if require(input, "special_ndtr").is_complex():
        raise messages.not_implemented_for("erf_vml_cpu", input.dtype)
    return apply1(NDTR, input, out)


# -- entropy --


def entr_rule(n, g):
    return mul(g, sub(-1, log(n.saved(0))))


@silent
def entr_array(x):
    values = as_array(-x * elementary.log(np.maximum(x, 0)))  # log(0) is -inf
    np.copyto(values, 0, where=x == 0)
    return values


ENTR = declare(
    "entr", entr_rule, saves=IN0, flags=SPECIAL, kernel=entr_array, inputs="self", node="SpecialEntrBackward0"
)


def entr(input, *, out=None):
    """Compute `-input * log(input)`, 0 at 0 and -inf below. Does not need SciPy. Saves `input`.

    Gradient: -g * (1 + log(input)).

    >>> import cygrad
    >>> cygrad.special.entr(cygrad.tensor([0.0, 0.5]))
    tensor([0.0000, 0.3466])
    """
    require_real_input(ENTR, input)
    return apply1(ENTR, input, out)


def xlog1py_rule(n, g):
    return logarithm_gradients(n, g, -1, log1p, lambda y: add(y, 1))


def xlog1py_array(x, y):
    with np.errstate(all="ignore"):
        values = as_array(x * elementary.log1p(y))
    np.copyto(values, 0, where=(x == 0) & ~np.isnan(y))
    return values


XLOG1PY = declare(
    "xlog1py",
    xlog1py_rule,
    saves=IN0 | IN1,
    flags=SPECIAL,
    kernel=xlog1py_array,
    inputs="self other",
    node="SpecialXlog1PyBackward0",
    overloads="",
)


def xlog1py(input, other, *, out=None):
    """`input * log1p(other)`, but 0 where `input` is 0 and `other` is not NaN. Does not need SciPy.

    Either may be a number. Saves both. Gradients: g * log1p(other), 0 where `input` is 0 and `other` at most -1; and
    g * input / (1 + other).

    >>> import cygrad
    >>> cygrad.special.xlog1py(cygrad.tensor([0.0, 2.0]), cygrad.tensor([-1.0, 1.0]))
    tensor([0.0000, 1.3863])
    """
    return of_operands(XLOG1PY, input, other, out)


def of_operands(op, input, other, out):
    """Apply an op to two tensors, or a tensor and a number; integers are converted to floating point."""
    require_operands(f"special_{op.name}", input, other)
    require_real(op, input, other)
    input, other = as_tensors(op, input, other)
    require_broadcast(input, other)
    return apply_n(op, (input, other), None, out)


functions = publish(globals())
