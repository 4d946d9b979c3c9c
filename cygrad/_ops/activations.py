"""Nonlinearities of neural networks, elementwise: most are found in nn.functional alone.

They keep the shape and save their input. With `inplace` they overwrite it, and return it.
"""

import math

import numpy as np

from cygrad._core import messages
from cygrad._core.opdef import ELEMENTWISE, ELSEWHERE, IN0, declare, publish, variant
from cygrad._core.record import apply1_args
from cygrad._core.tensor import Tensor
from cygrad._kernels.elementwise import erf as erf_array
from cygrad._kernels.nn import sigmoid as sigmoid_array
from cygrad._ops.arguments import require
from cygrad._ops.arithmetic import add, mul, neg, sub
from cygrad._ops.pointwise import erf, exp, sigmoid, square, tanh
from cygrad._ops.pointwise import relu as relu_into
from cygrad._ops.selection import where

FLAGS = ELEMENTWISE | ELSEWHERE
SQRT_HALF = math.sqrt(0.5)
INV_SQRT_2PI = 1 / math.sqrt(2 * math.pi)
TANH_SCALE = math.sqrt(2 / math.pi)
TANH_CUBIC = 0.044715


def applied(op, inplace_op, input, args, inplace, kernel):
    """The op on a floating-point tensor; in place it is another row, because PyTorch names its node otherwise."""
    if not require(input, op.name).dtype.is_floating_point:
        raise messages.not_implemented_for(kernel, input.dtype)
    return apply1_args(inplace_op, input, args, input) if inplace else apply1_args(op, input, args, None)


def real(value, function, name, position):
    """A number that the user gives, also as a tensor without dimensions."""
    if isinstance(value, (int, float)) or (isinstance(value, Tensor) and not value.ndim):
        return float(value)
    raise messages.wrong_type(function, name, position, "Number", value)


def relu(input, inplace=False):
    """`max(input, 0)`, elementwise; with `inplace` it overwrites `input`. Gradient: g where the result is positive.

    >>> import cygrad
    >>> cygrad.nn.functional.relu(cygrad.tensor([-1.0, 2.0]))
    tensor([0., 2.])
    """
    return relu_into(input, require(input, "relu")) if inplace else relu_into(input)


# -- leaky_relu --------------------------------------------------------------------------------------------


def leaky_relu_array(a, slope):
    """a where positive, else slope * a."""
    with np.errstate(all="ignore"):
        return np.where(a > 0, a, a * a.dtype.type(slope))


def leaky_relu_rule(n, g):
    return where(n.saved(0) > 0, g, mul(g, n.args[0]))


LEAKY_RELU = declare(
    "leaky_relu",
    leaky_relu_rule,
    saves=IN0,
    flags=FLAGS,
    kernel=leaky_relu_array,
    inputs="self",
    attributes="negative_slope",
)
LEAKY_RELU_INPLACE = variant(LEAKY_RELU, "LeakyReluBackward1")


def leaky_relu(input, negative_slope=0.01, inplace=False):
    """`input` where positive, else `negative_slope * input`. Gradient: g, or g * negative_slope.

    >>> import cygrad
    >>> cygrad.nn.functional.leaky_relu(cygrad.tensor([-1.0, 2.0]), 0.1)
    tensor([-0.1000,  2.0000])
    """
    slope = real(negative_slope, "leaky_relu", "negative_slope", 2)
    return applied(LEAKY_RELU, LEAKY_RELU_INPLACE, input, (slope,), inplace, "leaky_relu_cpu")


# -- elu ---------------------------------------------------------------------------------------------------


def elu_array(a, alpha):
    """a where positive, else alpha * (exp(a) - 1)."""
    with np.errstate(all="ignore"):
        return np.where(a <= 0, np.expm1(a) * a.dtype.type(alpha), a)


def elu_rule(n, g):
    x = n.saved(0)
    # no exp of large numbers, whose infinity would turn the zero it is masked by into nan in higher gradients
    below = where(x <= 0, x, 0.0)
    return where(x <= 0, mul(g, mul(exp(below), n.args[0])), g)


ELU = declare("elu", elu_rule, saves=IN0, flags=FLAGS, kernel=elu_array, inputs="self", attributes="alpha")
ELU_INPLACE = variant(ELU, "EluBackward1")


def elu(input, alpha=1.0, inplace=False):
    """`input` where positive, else `alpha * (exp(input) - 1)`. Gradient: g, or g * alpha * exp(input).

    >>> import cygrad
    >>> cygrad.nn.functional.elu(cygrad.tensor([-1.0, 2.0]))
    tensor([-0.6321,  2.0000])
    """
    return applied(ELU, ELU_INPLACE, input, (real(alpha, "elu", "alpha", 2),), inplace, "elu_cpu")


# -- gelu --------------------------------------------------------------------------------------------------


def gelu_array(a, approximate):
    """a times the normal distribution function at a."""
    with np.errstate(all="ignore"):
        if approximate == "tanh":
            inner = a * a.dtype.type(TANH_SCALE) * (1 + a.dtype.type(TANH_CUBIC) * a * a)
            return np.asarray(0.5 * a * (1 + np.tanh(inner)), a.dtype)
        return np.asarray(0.5 * a * (1 + erf_array(np.asarray(a * a.dtype.type(SQRT_HALF)))), a.dtype)


def gelu_rule(n, g):
    x = n.saved(0)
    if n.args[0] == "tanh":
        t = tanh(mul(x, mul(add(mul(square(x), TANH_CUBIC), 1), TANH_SCALE)))
        slope = mul(add(mul(square(x), 3 * TANH_CUBIC), 1), TANH_SCALE)
        return mul(g, mul(add(add(t, 1), mul(mul(x, slope), sub(1, square(t)))), 0.5))
    density = mul(exp(mul(square(x), -0.5)), INV_SQRT_2PI)
    return mul(g, add(mul(add(erf(mul(x, SQRT_HALF)), 1), 0.5), mul(x, density)))


GELU = declare("gelu", gelu_rule, saves=IN0, flags=FLAGS, kernel=gelu_array, inputs="self", attributes="approximate")


def gelu(input, *, approximate="none"):
    """`input` times the probability that a standard normal number is smaller.

    `approximate="tanh"` computes that probability by a formula with tanh. Gradient: g * (P(x) + x * p(x)).
    Raises RuntimeError for another `approximate`.

    >>> import cygrad
    >>> cygrad.nn.functional.gelu(cygrad.tensor([-1.0, 0.0, 1.0]))
    tensor([-0.1587,  0.0000,  0.8413])
    """
    if approximate not in ("none", "tanh"):
        raise RuntimeError("approximate argument must be either none or tanh.")
    return applied(GELU, GELU, input, (approximate,), False, "GeluKernelImpl")


# -- silu --------------------------------------------------------------------------------------------------


def silu_array(a):
    """a times its logistic function."""
    with np.errstate(all="ignore"):
        return np.asarray(a * sigmoid_array(a))


def silu_rule(n, g):
    x = n.saved(0)
    s = sigmoid(x)
    return mul(g, mul(s, add(mul(x, sub(1, s)), 1)))


SILU = declare("silu", silu_rule, saves=IN0, flags=FLAGS, kernel=silu_array, inputs="self")


def silu(input, inplace=False):
    """`input * sigmoid(input)`. With s = sigmoid(input), gradient: g * s * (1 + input * (1 - s)).

    >>> import cygrad
    >>> cygrad.nn.functional.silu(cygrad.tensor([-1.0, 0.0, 1.0]))
    tensor([-0.2689,  0.0000,  0.7311])
    """
    return applied(SILU, SILU, input, (), inplace, "silu_cpu")


# -- softplus, logsigmoid ----------------------------------------------------------------------------------


def softplus_array(a, beta, threshold):
    """log(1 + exp(beta * a)) / beta, where beta * a is not so large that it is a."""
    with np.errstate(all="ignore"):
        scaled = np.asarray(a * a.dtype.type(beta))
        return np.where(scaled > threshold, a, np.log1p(np.exp(scaled)) / a.dtype.type(beta))


def softplus_rule(n, g):
    beta, threshold = n.args
    scaled = mul(n.saved(0), beta)
    return where(scaled > threshold, g, mul(g, sigmoid(scaled)))


SOFTPLUS = declare(
    "softplus",
    softplus_rule,
    saves=IN0,
    flags=FLAGS,
    kernel=softplus_array,
    inputs="self",
    attributes="beta threshold",
)


def softplus(input, beta=1, threshold=20):
    """`log(1 + exp(beta * input)) / beta`, or `input` where beta * input exceeds `threshold`.

    Gradient: g * sigmoid(beta * input), or g.

    >>> import cygrad
    >>> cygrad.nn.functional.softplus(cygrad.tensor([-1.0, 0.0, 100.0]))
    tensor([  0.3133,   0.6931, 100.0000])
    """
    args = real(beta, "softplus", "beta", 2), real(threshold, "softplus", "threshold", 3)
    return applied(SOFTPLUS, SOFTPLUS, input, args, False, "softplus_cpu")


def logsigmoid_array(a):
    """log(1 / (1 + exp(-a))), exact for large negative a as well."""
    with np.errstate(all="ignore"):
        return np.asarray(np.minimum(a, 0) - np.log1p(np.exp(-np.abs(a))))


def logsigmoid_rule(n, g):
    return mul(g, sigmoid(neg(n.saved(0))))


LOGSIGMOID = declare(
    "logsigmoid",
    logsigmoid_rule,
    saves=IN0,
    flags=FLAGS,
    kernel=logsigmoid_array,
    node="LogSigmoidBackward0",
    inputs="self",
)


def logsigmoid(input):
    """The logarithm of `sigmoid(input)`. Gradient: g * sigmoid(-input).

    >>> import cygrad
    >>> cygrad.nn.functional.logsigmoid(cygrad.tensor([-1000.0, 0.0]))
    tensor([-1.0000e+03, -6.9315e-01])
    """
    return applied(LOGSIGMOID, LOGSIGMOID, input, (), False, "log_sigmoid_cpu")


functions = publish(globals())
