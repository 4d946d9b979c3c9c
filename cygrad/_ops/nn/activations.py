"""Smooth activation functions, available only in nn.functional.

They save their input, and all but `glu` preserve its shape. With `inplace`, they overwrite the input and return it.
Backward passes that are not recorded run fused kernels. Piecewise-linear activations are in rectifiers.py, `elu` and
its relatives in exponential_units.py.
"""

import math
from functools import partial

import numpy as np

import cygrad._kernels.cpu.nn.activations as kernels
from cygrad._core.engine.blocked_gradients import in_parts, over
from cygrad._core.errors import messages
from cygrad._core.errors.sites import warn
from cygrad._core.graph.internals import array_of, operand_of, tensor_of
from cygrad._core.graph.opdef import (
    ELEMENTWISE,
    ELSEWHERE,
    IMAGE,
    IMAGE_GRADIENT,
    IN0,
    ONE_PASS,
    PRIVATE,
    declare,
    facts,
    publish,
    shown,
)
from cygrad._core.graph.record import apply1_args, record_n
from cygrad._core.runtime.thread_state import NO_GRAD, get_modes
from cygrad._kernels.cpu.base.copying import contiguous
from cygrad._kernels.cpu.base.stack_chunks import along
from cygrad._kernels.cpu.elementwise.fused_loops import by_loop, gated, gated_gradient
from cygrad._kernels.cpu.nn.softmax import softmax as softmax_array
from cygrad._kernels.device.cupy_library import as_array
from cygrad._kernels.device.gpu_forms import passed_on
from cygrad._kernels.tape.calls import noted
from cygrad._ops.base.arguments import dim_argument, require
from cygrad._ops.base.arithmetic import add, div, mul, neg, sub
from cygrad._ops.base.batching.rules import rule, shifting
from cygrad._ops.base.checks.common import number_argument
from cygrad._ops.base.creation import empty
from cygrad._ops.base.pointwise import abs as magnitude
from cygrad._ops.base.pointwise import (
    conjugate,
    erf,
    exp,
    log,
    sigmoid_of_saved,
    square,
    tanh,
    tanh_of_saved,
)
from cygrad._ops.base.slicing import cat, chunk
from cygrad._ops.common.gradients import fused_gradient, measured
from cygrad._ops.elementwise.selection import clamp, where
from cygrad._ops.nn.softmax import SOFTMAX, implicit_dim, softmax
from cygrad._ops.random.inplace_sampling import exponential_

FLAGS = ELEMENTWISE | ELSEWHERE
SQRT_HALF = math.sqrt(0.5)
INV_SQRT_2PI = 1 / math.sqrt(2 * math.pi)
TANH_SCALE = math.sqrt(2 / math.pi)
TANH_CUBIC = 0.044715


def applied(op, inplace_op, input, args, inplace, kernel, out=None):
    """Apply the op to a floating-point tensor. In place it is another row, as PyTorch gives its node another name."""
    if not require(input, op.name).dtype.is_floating_point:
        raise messages.not_implemented_for(kernel, input.dtype)
    return apply1_args(inplace_op, input, args, input) if inplace else apply1_args(op, input, args, out)


def tied_rule(n, g):
    return g if n.needs(0) else None, g.new_zeros(g.shape) if n.needs(1) else None


TIED = declare("tied", tied_rule, flags=ELEMENTWISE | PRIVATE, inputs="grad_output self")


def tied(g, x):
    """Return `g`, computed from `x` with slope 0. In a recorded pass it requires grad if `x` does, as in PyTorch."""
    if get_modes() & NO_GRAD:
        return g
    return record_n(TIED, contiguous(array_of(g)), (g, x))


@rule("tied")
def _tied(call):
    return tied(*map(call.full, call.inputs))


# -- gelu --


def gelu_rule(n, g):
    x = n.saved(0)
    if get_modes() & NO_GRAD:
        backward = kernels.gelu_tanh_backward if n.args[0] == "tanh" else kernels.gelu_backward
        return tensor_of(passed_on(backward, operand_of(g), operand_of(x)))
    if n.args[0] == "tanh":
        x = clamp(x, -30, 30)  # beyond that the slope is 0 or 1, and powers of x could overflow
        twice = mul(mul(x, add(mul(square(x), TANH_CUBIC), 1)), 2 * TANH_SCALE)
        slope = mul(add(mul(square(x), 3 * TANH_CUBIC), 1), 2 * TANH_SCALE)
        s = sigmoid_of_saved(twice)  # is (1 + tanh(u)) / 2, where u is half of `twice`
        return mul(g, mul(s, add(mul(mul(x, slope), sigmoid_of_saved(neg(twice))), 1)))
    density = mul(exp(mul(square(x), -0.5)), INV_SQRT_2PI)
    return mul(g, add(mul(add(erf(mul(x, SQRT_HALF)), 1), 0.5), mul(x, density)))


GELU = declare(
    "gelu",
    gelu_rule,
    saves=IN0,
    flags=FLAGS | ONE_PASS | IMAGE_GRADIENT,
    kernel=kernels.gelu,
    inputs="self",
    attributes="approximate",
    out_dtype="found",
)


def gelu(input, *, approximate="none", out=None):
    """`input * P(input)`, where P is the cumulative distribution function of the standard normal distribution.

    `approximate="tanh"` computes P(x) as (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x^3))) / 2. Saves `input`. Gradient:
    g * (P(x) + x * p(x)), where x is `input` and p the normal density. Raises RuntimeError for any other `approximate`.

    >>> import cygrad
    >>> cygrad.nn.functional.gelu(cygrad.tensor([-1.0, 0.0, 1.0]))
    tensor([-0.1587,  0.0000,  0.8413])
    """
    if approximate not in ("none", "tanh"):
        raise RuntimeError("approximate argument must be either none or tanh.")
    return applied(GELU, GELU, input, (approximate,), False, "GeluKernelImpl", out)


# -- silu, mish --


def silu_rule(n, g):
    x = n.saved(0)
    if get_modes() & NO_GRAD:
        return tensor_of(passed_on(kernels.silu_backward, operand_of(g), operand_of(x)))
    return mul(g, conjugate(mul(sigmoid_of_saved(x), add(mul(x, sigmoid_of_saved(neg(x))), 1))))


SILU = declare(
    "silu",
    silu_rule,
    saves=IN0,
    flags=FLAGS | ONE_PASS | IMAGE_GRADIENT,
    kernel=kernels.silu,
    inputs="self",
    in_python=True,
    inplace_argument=True,
)


def silu(input, inplace=False):
    """`input * sigmoid(input)`.

    Saves `input`. Gradient: g * s * (1 + input * (1 - s)), where s = sigmoid(input).

    >>> import cygrad
    >>> cygrad.nn.functional.silu(cygrad.tensor([-1.0, 0.0, 1.0]))
    tensor([-0.2689,  0.0000,  0.7311])
    """
    if require(input, "silu").dtype.is_complex:
        return apply1_args(SILU, input, (), input if inplace else None)
    return applied(SILU, SILU, input, (), inplace, "silu_cpu")


def mish_rule(n, g):
    x = n.saved(0)
    if get_modes() & NO_GRAD:
        return tensor_of(passed_on(kernels.mish_backward, operand_of(g), operand_of(x)))
    smooth = softplus(x, threshold=40)
    twice = mul(smooth, 2)
    steepness = mul(mul(sigmoid_of_saved(twice), sigmoid_of_saved(neg(twice))), 4)  # 1 - tanh(smooth)^2
    return mul(g, add(tanh_of_saved(smooth), mul(mul(x, sigmoid_of_saved(x)), steepness)))


MISH = declare(
    "mish",
    mish_rule,
    saves=IN0,
    flags=FLAGS | ONE_PASS | IMAGE_GRADIENT,
    kernel=kernels.mish,
    inputs="self",
    in_python=True,
    inplace_argument=True,
)


def mish(input, inplace=False):
    """`input * tanh(softplus(input))`.

    Saves `input`. Gradient: g * (t + input * sigmoid(input) * (1 - t^2)), where t = tanh(softplus(input)).

    >>> import cygrad
    >>> cygrad.nn.functional.mish(cygrad.tensor([-1.0, 0.0, 1.0]))
    tensor([-0.3034,  0.0000,  0.8651])
    """
    return applied(MISH, MISH, input, (), inplace, "mish_cpu")


# -- softplus, logsigmoid --


@by_loop("softplus")
def softplus_array(a, beta, threshold):
    """log(1 + exp(beta * a)) / beta; `a` itself where beta * a exceeds `threshold`."""
    with np.errstate(all="ignore"):
        scaled = a if beta == 1 else as_array(a * a.dtype.type(beta))
        out = np.log1p(np.exp(scaled))
        out = as_array(out if beta == 1 else out / a.dtype.type(beta))
        large = scaled > threshold
        if large.any():
            np.copyto(out, a, where=large)
        return out


def softplus_rule(n, g):
    x, (beta, threshold) = n.saved(0), n.args
    found = fused_gradient("softplus_gradient", g, x, numbers=n.args)
    if found is not None:
        return found
    scaled = mul(measured(x), beta)
    found = mul(g, sigmoid_of_saved(scaled))
    return where(scaled > threshold, g, found if found.dtype is g.dtype else found.to(g.dtype))


SOFTPLUS = declare(
    "softplus",
    softplus_rule,
    saves=IN0,
    flags=FLAGS | ONE_PASS,
    kernel=softplus_array,
    inputs="self",
    attributes="beta threshold",
    autocast_gpu="float32",
    out_dtype="found",
)


def softplus(input, beta=1, threshold=20, *, out=None):
    """`log(1 + exp(beta * input)) / beta`, or `input` where beta * input exceeds `threshold`.

    Saves `input`. Gradient: g * sigmoid(beta * input), or g where beta * input exceeds `threshold`.

    >>> import cygrad
    >>> cygrad.nn.functional.softplus(cygrad.tensor([-1.0, 0.0, 100.0]))
    tensor([  0.3133,   0.6931, 100.0000])
    """
    args = number_argument(beta, "softplus", "beta", 2), number_argument(threshold, "softplus", "threshold", 3)
    return applied(SOFTPLUS, SOFTPLUS, input, args, False, "softplus_cpu", out)


@by_loop("logsigmoid")
def logsigmoid_array(a):
    """log(1 / (1 + exp(-a))), also accurate for large negative `a`."""
    with np.errstate(all="ignore"):
        return as_array(np.minimum(a, 0) - np.log1p(np.exp(-np.abs(a))))


def logsigmoid_rule(n, g):
    x = n.saved(0)
    found = fused_gradient("logsigmoid_gradient", g, x)
    return mul(g, sigmoid_of_saved(neg(x))) if found is None else found


LOGSIGMOID = declare(
    "logsigmoid",
    logsigmoid_rule,
    saves=IN0,
    flags=FLAGS | ONE_PASS,
    kernel=logsigmoid_array,
    node="LogSigmoidBackward0",
    inputs="self",
    out_dtype="found",
)


def logsigmoid(input, *, out=None):
    """The logarithm of `sigmoid(input)`. Saves `input`. Gradient: g * sigmoid(-input).

    >>> import cygrad
    >>> cygrad.nn.functional.logsigmoid(cygrad.tensor([-1000.0, 0.0]))
    tensor([-1.0000e+03, -6.9315e-01])
    """
    return applied(LOGSIGMOID, LOGSIGMOID, input, (), False, "log_sigmoid_cpu", out)


# -- tanhshrink, softsign, glu --


def tanhshrink_array(a):
    return np.subtract(a, np.tanh(a))


def tanhshrink_rule(n, g):
    return mul(g, square(tanh_of_saved(conjugate(n.saved(0)))))


TANHSHRINK = declare(
    "tanhshrink",
    tanhshrink_rule,
    saves=IN0,
    flags=FLAGS,
    kernel=tanhshrink_array,
    node="SubBackward0",
    inputs="self",
    in_python=True,
)


def tanhshrink(input):
    """`input - tanh(input)`. Saves `input`. Gradient: g * tanh(input)^2.

    >>> import cygrad
    >>> cygrad.nn.functional.tanhshrink(cygrad.tensor([0.0, 1.0]))
    tensor([0.0000, 0.2384])
    """
    kind = require(input, "tanhshrink").dtype
    if not (kind.is_floating_point or kind.is_complex):
        return sub(input, tanh(input))
    return apply1_args(TANHSHRINK, input, (), None)


def softsign_array(a):
    with np.errstate(all="ignore"):
        below = as_array(np.abs(a))
        below += 1
        return as_array(a / below)


def softsign_rule(n, g):
    return div(g, square(add(magnitude(n.saved(0)), 1)))


SOFTSIGN = declare(
    "softsign",
    softsign_rule,
    saves=IN0,
    flags=FLAGS,
    kernel=softsign_array,
    node="DivBackward0",
    inputs="self",
    in_python=True,
)


def softsign(input):
    """`input / (1 + |input|)`. Saves `input`. Gradient: g / (1 + |input|)^2.

    >>> import cygrad
    >>> cygrad.nn.functional.softsign(cygrad.tensor([-1.0, 3.0]))
    tensor([-0.5000,  0.7500])
    """
    if not require(input, "softsign").dtype.is_floating_point:
        return div(input, add(magnitude(input), 1))
    return apply1_args(SOFTSIGN, input, (), None)


def glu_array(a, dim):
    """Multiply the first half by the sigmoid of the second."""
    found = gated(a, dim)
    return _glu_array(a, dim) if found is None else found


@along
def _glu_array(a, dim):
    first, second = np.split(a, 2, dim)
    with np.errstate(all="ignore"):
        gate = kernels.sigmoid(second)
        return np.multiply(first, gate, out=gate)


def dims_of_halves(n):
    return n.saved(0).ndim - n.args[0]


def glu_rule(n, g):
    x = n.saved(0)
    found = gated_gradient(array_of(g), array_of(x), n.args[0]) if get_modes() & NO_GRAD else None
    return _glu_gradient(n.opened(x), g) if found is None else tensor_of(found)


@in_parts(dims_of_halves, dims_of_halves, inputs=dims_of_halves)
def _glu_gradient(n, g):
    dim = n.args[0]
    first, second = chunk(n.saved(0), 2, dim)
    slope = mul(g, sigmoid_of_saved(second))
    return cat((slope, mul(mul(slope, first), sigmoid_of_saved(neg(second)))), dim)


GLU = declare(
    "glu",
    glu_rule,
    saves=IN0,
    flags=ELSEWHERE | IMAGE,
    kernel=glu_array,
    inputs="self",
    attributes="dim",
    batching=shifting("d"),
    in_python=True,
)


def glu(input, dim=-1):
    """`a * sigmoid(b)`, where a and b are the halves of `input` along `dim`.

    The result is half as long along `dim`. Saves `input`. Gradients: g * s for a, and g * a * s * (1 - s) for b, where
    s = sigmoid(b). Raises RuntimeError if the length along `dim` is odd.

    >>> import cygrad
    >>> cygrad.nn.functional.glu(cygrad.tensor([2.0, 4.0, 0.0, 0.0]))
    tensor([1., 2.])
    """
    if not require(input, "glu").ndim:
        raise RuntimeError("glu does not support scalars because halving size must be even")
    dim = dim_argument(dim, input.ndim, "glu", "dim", 2)
    if input.shape[dim] % 2:
        raise RuntimeError(f"Halving dimension must be even, but dimension {dim} is size {input.shape[dim]}")
    return applied(GLU, GLU, input, (dim,), False, "glu_cpu")


# -- built on softmax --


@facts(autocast_gpu="float32", in_python=True)
def softmin(input, dim=None, _stacklevel=3, dtype=None):
    """`softmax(-input, dim)`. Without `dim`, warns and uses dimension 0 (0-, 1- and 3-dimensional input) or 1.

    The result is exp(-input) / sum(exp(-input)).

    >>> import cygrad
    >>> cygrad.nn.functional.softmin(cygrad.tensor([0.0, 0.0]), dim=0)
    tensor([0.5000, 0.5000])
    """
    turned = neg(require(input, "softmin"))
    dim = implicit_dim(turned, "softmin") if dim is None else dim
    if dtype is not None or not turned.ndim:
        return softmax(turned, dim, _stacklevel, dtype)
    axis = dim_argument(dim, turned.ndim, "softmax", "dim", 2)
    return over(partial(softmax, dim=dim), SOFTMAX, lambda a, out: softmax_array(a, axis, True), turned, (axis,))


@shown
def gumbel_softmax(logits, tau=1, hard=False, eps=1e-10, dim=-1):
    """Sample from the categorical distribution given by `logits`: a softmax of `(logits + Gumbel noise) / tau`.

    The noise is -log(x) for numbers x from the exponential distribution of mean 1.

    With `hard`, the result is one-hot but has the gradient of the soft sample. `eps` has no effect; any value but the
    default triggers a warning.

    >>> import cygrad
    >>> cygrad.nn.functional.gumbel_softmax(cygrad.tensor([100.0, 0.0]), hard=True)
    tensor([1., 0.])
    """
    array = array_of(require(logits, "gumbel_softmax"))
    if eps != 1e-10:
        warn("`eps` parameter is deprecated and has no effect.")
    if not logits.dtype.is_floating_point:
        raise RuntimeError(
            "Exponential distribution is a continuous probability distribution. dtype must be a floating point but you "
            f"specified {logits.dtype.type_name}"
        )
    drawn = exponential_(empty(array.shape, dtype=logits.dtype, device=logits.device))
    soft = softmax(div(sub(logits, log(drawn)), tau), dim)
    if not hard:
        return soft
    return add(sub(tensor_of(_one_at_largest(array_of(soft), dim)), soft.detach()), soft)


@noted
def _one_at_largest(array, dim):
    found = np.zeros_like(array)
    if not array.ndim:
        found[...] = 1
    elif array.size:
        np.put_along_axis(found, array.argmax(dim, keepdims=True), 1, dim)
    return found


composite = dict.fromkeys(("tanhshrink", "softsign", "softmin"), ELSEWHERE)
functions = publish(globals())
