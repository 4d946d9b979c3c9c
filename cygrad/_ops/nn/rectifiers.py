"""Piecewise elementwise activations: relu and its variants. Most are found only in nn.functional.

They save their input. Where two pieces meet with different slopes, the gradient is the same as PyTorch's. With
`inplace` they overwrite and return the input; they then use another row where PyTorch names the node differently.
"""

import numpy as np

from cygrad._core.engine.blocked_gradients import in_parts
from cygrad._core.errors import messages
from cygrad._core.graph.internals import array_of, tensor_of
from cygrad._core.graph.opdef import (
    ELEMENTWISE,
    ELSEWHERE,
    IN0,
    IN1,
    ONE_PASS,
    declare,
    facts,
    named,
    publish,
    shown,
    variant,
)
from cygrad._core.graph.record import apply1_args, apply_n, record_n, write_into
from cygrad._core.registry.function_modes import asked
from cygrad._core.registry.torch_function import answer
from cygrad._core.types.dtypes import by_name
from cygrad._core.types.type_info import finfo
from cygrad._kernels.cpu.base.copying import in_dtype
from cygrad._kernels.cpu.elementwise.fused_loops import by_loop
from cygrad._kernels.cpu.elementwise.numpy_pointwise import where as select
from cygrad._kernels.device.cupy_library import as_array, beside
from cygrad._kernels.tape.tape import noted_data
from cygrad._ops.base.arguments import require
from cygrad._ops.base.arithmetic import mul
from cygrad._ops.base.batching.rules import operands, rule
from cygrad._ops.base.checks.common import number_argument
from cygrad._ops.base.pointwise import relu as relu_into
from cygrad._ops.base.views import reshape
from cygrad._ops.common.gradients import fused_gradient, measured
from cygrad._ops.elementwise.selection import where
from cygrad._ops.nn.activations import applied, tied
from cygrad._ops.random.random import uniform

FLAGS = ELEMENTWISE | ELSEWHERE | ONE_PASS


# -- relu, leaky_relu, threshold --


def relu(input, inplace=False):
    """`max(input, 0)`, elementwise, in place if `inplace`. Gradient: g where the result is positive, else 0.

    >>> import cygrad
    >>> cygrad.nn.functional.relu(cygrad.tensor([-1.0, 2.0]))
    tensor([0., 2.])
    """
    if asked and (found := answer(relu, input, inplace=inplace)):
        return found[0]
    return relu_into(input, out=require(input, "relu")) if inplace else relu_into(input)


relu.asks = True  # type: ignore[attr-defined]


@shown
def relu_(input):
    """`relu` in place: overwrites and returns `input`.

    >>> import cygrad
    >>> import cygrad.nn.functional as F
    >>> x = cygrad.tensor([-1.0, 2.0])
    >>> F.relu_(x), x
    (tensor([0., 2.]), tensor([0., 2.]))
    """
    return relu(input, True)


@by_loop("leaky_relu", are_operands=True)
def leaky_relu_array(a, slope):
    """a where positive, else slope * a."""
    with np.errstate(all="ignore"):
        return select(a > 0, a, a * a.dtype.type(slope))


def leaky_relu_rule(n, g):
    return _leaky_gradient(g, n.saved(0), n.args[0])


def _leaky_gradient(g, x, slope):
    found = fused_gradient("leaky_relu_gradient", g, x, tensor_of(noted_data(np.asarray(slope, array_of(g).dtype))))
    return tied(where(x > 0, g, mul(g, slope)), x) if found is None else found


LEAKY_RELU = declare(
    "leaky_relu",
    leaky_relu_rule,
    saves=IN0,
    flags=FLAGS,
    kernel=leaky_relu_array,
    inputs="self",
    attributes="negative_slope",
    in_python=True,
    inplace_argument=True,
)
LEAKY_RELU_INPLACE = variant(LEAKY_RELU, "LeakyReluBackward1")


def leaky_relu(input, negative_slope=0.01, inplace=False):
    """`input` where positive, else `negative_slope * input`. Saves `input`.

    Gradient: g where `input` is positive, else g * negative_slope.

    >>> import cygrad
    >>> cygrad.nn.functional.leaky_relu(cygrad.tensor([-1.0, 2.0]), 0.1)
    tensor([-0.1000,  2.0000])
    """
    slope = number_argument(negative_slope, "leaky_relu", "negative_slope", 2)
    return applied(LEAKY_RELU, LEAKY_RELU_INPLACE, input, (slope,), inplace, "leaky_relu_cpu")


@shown
def leaky_relu_(input, negative_slope=0.01):
    """`leaky_relu` in place: overwrites and returns `input`.

    >>> import cygrad
    >>> import cygrad.nn.functional as F
    >>> F.leaky_relu_(cygrad.tensor([-1.0, 2.0]))
    tensor([-0.0100,  2.0000])
    """
    return leaky_relu(input, negative_slope, True)


@by_loop("threshold")
def threshold_array(a, threshold, value):
    """a where it exceeds the threshold, else value."""
    limit, other = (np.asarray(number).astype(a.dtype)[()] for number in (threshold, value))  # integers wrap around
    return select(a <= limit, other, a)


def threshold_rule(n, g):
    x = n.saved(0)
    found = fused_gradient("above", g, x, numbers=n.args[:1])
    return tied(where(measured(x) <= n.args[0], 0.0, g), x) if found is None else found


THRESHOLD = declare(
    "threshold",
    threshold_rule,
    saves=IN0,
    flags=FLAGS,
    kernel=threshold_array,
    inputs="self",
    attributes="threshold",
    inplace_argument=True,
)
THRESHOLD_INPLACE = variant(THRESHOLD, "ThresholdBackward1")


def threshold(input, threshold, value, inplace=False):
    """`input` where it exceeds `threshold`, else `value`. Saves `input`. Gradient: g where it exceeds it, else 0.

    Raises NotImplementedError for boolean and complex tensors.

    >>> import cygrad
    >>> cygrad.nn.functional.threshold(cygrad.tensor([-1.0, 2.0]), 0.5, 9.0)
    tensor([9., 2.])
    """
    op = THRESHOLD_INPLACE if inplace else THRESHOLD
    return _threshold(op, input, threshold, value, input if inplace else None)


@named("threshold")
def threshold_of_package(input, threshold, value, *, out=None):
    """`input` where it exceeds `threshold`, else `value`. Gradient: g where it exceeds it, else 0.

    Raises NotImplementedError for boolean and complex tensors.

    >>> import cygrad
    >>> cygrad.threshold(cygrad.tensor([0.5, 2.0]), 1.0, -1.0)
    tensor([-1.,  2.])
    """
    return _threshold(THRESHOLD, input, threshold, value, out)


@shown
def threshold_(input, threshold, value):
    """`threshold` in place: overwrites and returns `input`.

    >>> import cygrad
    >>> import cygrad.nn.functional as F
    >>> F.threshold_(cygrad.tensor([0.1, 2.0]), 1.0, 9.0)
    tensor([9., 2.])
    """
    return _threshold(THRESHOLD_INPLACE, input, threshold, value, input)


def _threshold(op, input, threshold, value, out):
    kind = require(input, "threshold").dtype
    args = (
        number_argument(threshold, "threshold", "threshold", 2),
        number_argument(value, "threshold", "value", 3),
    )
    if kind.name == "bool" or kind.is_complex:
        raise messages.not_implemented_for("threshold_cpu", kind)
    return apply1_args(op, input, args, out)


# -- learned and random slopes --


@by_loop("leaky_relu", 2)
def prelu_array(a, weight):
    """a where positive, else weight * a."""
    with np.errstate(all="ignore"):
        return select(a > 0, a, a * weight)


def prelu_rule(n, g):
    x, weight = n.saved(0), n.saved(1) if n.needs(0) else None
    opened = n.opened(x, weight)
    if weight is not None and weight.numel() != 1:
        return _prelu_gradients(opened, g)
    grad_x = fused_gradient("leaky_relu_gradient", g, x, weight) if n.needs(0) else None
    if n.needs(0) and grad_x is None:
        return _prelu_gradients(opened, g)
    grad_weight = fused_gradient("negative_products", g, x) if n.needs(1) else None
    return _prelu_gradients(opened, g) if n.needs(1) and grad_weight is None else (grad_x, grad_weight)


@in_parts(0, 0, inputs=0)
def _prelu_gradients(n, g):
    x = n.saved(0)
    positive = x > 0
    grad_x = tied(where(positive, g, mul(n.saved(1), g)), x) if n.needs(0) else None
    return grad_x, where(positive, 0.0, mul(x, g)) if n.needs(1) else None


PRELU = declare(
    "prelu",
    prelu_rule,
    saves=(IN0 | IN1, IN0),
    kernel=prelu_array,
    node="PreluKernelBackward0",
    inputs="self weight",
    devices="together",
    autocast="lower",
    autocast_gpu="lower",
    float8="prelu_cpu",
)


def prelu(input, weight):
    """`input` where positive, else `weight * input`; `weight` has one element, or one for each channel (dimension 1).

    Gradients: of `input`, g or g * weight; of `weight`, the sum of g * input over the elements that are not positive.
    Raises RuntimeError for mismatched shapes and dtypes. Saves `input` and `weight`.

    >>> import cygrad
    >>> cygrad.prelu(cygrad.tensor([[-1.0, -2.0]]), cygrad.tensor([0.5, 0.1]))
    tensor([[-0.5000, -0.2000]])
    """
    x, w = require(input, "prelu"), require(weight, "prelu", "weight", 2)
    if x.dtype is not w.dtype:
        raise RuntimeError(f"prelu: Type promoting not supported. Got {x.dtype.type_name} and {w.dtype.type_name}")
    if w.ndim > 1:
        raise RuntimeError(f"prelu: Expected `weight` to be a scalar or 1D tensor, but got: ndim = {w.ndim}")
    if w.numel() != 1:
        if not x.ndim:
            raise RuntimeError("Not allow zero-dim input tensor.")
        channels = x.shape[1] if x.ndim > 1 else 1
        if w.numel() != channels:
            raise RuntimeError(
                f"Mismatch of parameter numbers and input channel size. Found parameter numbers = {w.numel()} and "
                f"channel size = {channels}."
            )
    if not x.dtype.is_floating_point:
        raise messages.not_implemented_for("prelu_cpu", x.dtype)
    shape = (1,) * x.ndim if w.numel() == 1 else (w.numel(),) + (1,) * (x.ndim - 2)
    w = w if w.shape == shape else reshape(w, shape)
    return record_n(PRELU, prelu_array(array_of(x), array_of(w)), (x, w))


@rule("prelu")
def _prelu(call):
    return apply_n(call.op, tuple(operands(call, call.inputs)))


def rrelu_rule(n, g):
    low, high, training, noise = n.args
    return tied(mul(g, noise), n.saved(0)) if training else _leaky_gradient(g, n.saved(0), (low + high) / 2)


RRELU = declare(
    "rrelu",
    rrelu_rule,
    saves=IN0,
    flags=ELSEWHERE,
    node="RreluWithNoiseBackward0",
    inputs="self",
    attributes="lower upper training noise",
    batching=None,
    inplace_argument=True,
    float8="leaky_relu_cpu",
)
RRELU_INPLACE = variant(RRELU, "RreluWithNoiseBackward1")


def rrelu(input, lower=0.125, upper=1.0 / 3, training=False, inplace=False):
    """`input` where positive, else `slope * input`, with random slopes in training, otherwise the mean slope.

    Slopes are drawn uniformly from [lower, upper). Saves `input`. Gradient: g where `input` is positive, else
    g * slope.

    >>> import cygrad
    >>> cygrad.nn.functional.rrelu(cygrad.tensor([-1.0, 2.0]), 0.1, 0.3)
    tensor([-0.2000,  2.0000])
    """
    return _rrelu(input, lower, upper, training, None, inplace)


@named("rrelu")
def rrelu_of_package(input, lower=0.125, upper=1.0 / 3, training=False, generator=None):
    """`input` where positive, else `slope * input`, with random slopes in training, otherwise the mean slope.

    Slopes are drawn uniformly from [lower, upper). Gradient: g, or g * slope.

    >>> import cygrad
    >>> cygrad.rrelu(cygrad.tensor([-24.0, 2.0]))
    tensor([-5.5000,  2.0000])
    """
    return _rrelu(input, lower, upper, training, generator, False)


@shown
def rrelu_(input, lower=0.125, upper=1.0 / 3, training=False, generator=None):
    """`rrelu` in place: overwrites and returns `input`.

    >>> import cygrad
    >>> import cygrad.nn.functional as F
    >>> F.rrelu_(cygrad.tensor([-2.0, 3.0]), 0.5, 0.5)
    tensor([-1.,  3.])
    """
    return _rrelu(input, lower, upper, training, generator, True)


def _rrelu(input, lower, upper, training, generator, inplace):
    x = require(input, "rrelu")
    low, high = number_argument(lower, "rrelu", "lower", 2), number_argument(upper, "rrelu", "upper", 3)
    if not isinstance(training, bool):
        raise messages.wrong_type("rrelu", "training", 4, "bool", training)
    if low > high:
        raise RuntimeError("Lower bound should be less than or equal to the upper bound")
    if not x.dtype.is_floating_point:
        raise messages.not_implemented_for("rrelu_with_noise_out_cpu" if training else "leaky_relu_cpu", x.dtype)
    array = array_of(x)
    noise = None
    if training:
        slopes = _random_slopes(x, low, high, generator)
        with np.errstate(all="ignore"):
            result = in_dtype(as_array(array * slopes), array.dtype)
        noise = tensor_of(in_dtype(slopes, array.dtype))
    else:
        result = leaky_relu_array(array, (low + high) / 2)
    args = low, high, training, noise
    if inplace:
        return write_into(RRELU_INPLACE, x, result, (x,), args)
    return record_n(RRELU, result, (x,), args)


def _random_slopes(x, low, high, generator):
    """Return an array of slopes from [low, high), and 1 where `x` is positive; on the CPU, none are drawn for these.

    On the CPU, half precision has slopes of single precision, as in PyTorch.
    """
    array = array_of(x)
    number = array.dtype.type
    if not x.is_cpu:
        drawn = beside(uniform(array.shape, x.dtype, generator, "rrelu"), array)
        return select(array > 0, number(1), drawn * number(high - low) + number(low))
    wide = np.float32 if array.itemsize < 8 else np.float64
    slopes = np.ones(array.shape, wide)
    with np.errstate(invalid="ignore"):  # bfloat16 warns of nan
        is_drawn = np.less_equal(array, 0)
    units = uniform((np.count_nonzero(is_drawn),), by_name()["float64"], generator, "rrelu")
    first, last = float(wide(low)), float(wide(high))
    slopes[is_drawn] = units * (last - first) + first
    return slopes


# -- clamped --


@by_loop("hardtanh")
def hardtanh_array(a, low, high):
    """Clamp a to [low, high]."""
    return as_array(np.clip(a, a.dtype.type(low), a.dtype.type(high)))


def hardtanh_rule(n, g):
    x, (low, high) = n.saved(0), n.args
    found = fused_gradient("inside", g, x, numbers=n.args)
    if found is not None:
        return found
    return tied(where((x <= low) | (x >= high), 0.0, g), x)


HARDTANH = declare(
    "hardtanh",
    hardtanh_rule,
    saves=IN0,
    flags=FLAGS,
    kernel=hardtanh_array,
    inputs="self",
    attributes="min_val max_val",
    in_python=True,
    inplace_argument=True,
)


def hardtanh(input, min_val=-1.0, max_val=1.0, inplace=False):
    """Clamp `input` to [`min_val`, `max_val`]. Saves `input`. Gradient: g strictly between them, else 0.

    Raises ValueError if `min_val` exceeds `max_val`, RuntimeError for booleans.

    >>> import cygrad
    >>> cygrad.nn.functional.hardtanh(cygrad.tensor([-3.0, 0.5, 2.0]))
    tensor([-1.0000,  0.5000,  1.0000])
    """
    if min_val > max_val:
        raise ValueError("min_val cannot be greater than max_val")
    kind = require(input, "hardtanh").dtype
    args = number_argument(min_val, "hardtanh", "min_val", 2), number_argument(max_val, "hardtanh", "max_val", 3)
    if kind.name == "bool":
        raise RuntimeError("Bool inputs not supported for hardtanh")
    if kind.is_complex:
        raise NotImplementedError("clamp is not supported for complex types")
    if not kind.is_signed and args[0] < 0:
        raise RuntimeError("cannot do hardtanh on an unsigned type with negative limits")
    return apply1_args(HARDTANH, input, args, input if inplace else None)


@shown
def hardtanh_(input, min_val=-1.0, max_val=1.0):
    """`hardtanh` in place: overwrites and returns `input`.

    >>> import cygrad
    >>> import cygrad.nn.functional as F
    >>> F.hardtanh_(cygrad.tensor([-3.0, 0.5]))
    tensor([-1.0000,  0.5000])
    """
    return hardtanh(input, min_val, max_val, True)


@shown
@facts(in_python=True)
def relu6(input, inplace=False):
    """Clamp `input` to [0, 6]: `hardtanh(input, 0, 6)`. Gradient: g strictly between the bounds, else 0.

    >>> import cygrad
    >>> cygrad.nn.functional.relu6(cygrad.tensor([-3.0, 0.5, 8.0]))
    tensor([0.0000, 0.5000, 6.0000])
    """
    return hardtanh(require(input, "relu6"), 0, 6, inplace)


@by_loop("hardsigmoid")
def hardsigmoid_array(a):
    """Clamp a / 6 + 1 / 2 to [0, 1]."""
    number = a.dtype.type
    with np.errstate(all="ignore"):
        return as_array(np.clip(a + number(3), number(0), number(6)) / number(6))


def hardsigmoid_rule(n, g):
    x = n.saved(0)
    found = fused_gradient("hardsigmoid_gradient", g, x)
    return where((x > -3) & (x < 3), mul(g, 1 / 6), 0.0) if found is None else found


HARDSIGMOID = declare(
    "hardsigmoid",
    hardsigmoid_rule,
    saves=IN0,
    flags=FLAGS,
    kernel=hardsigmoid_array,
    inputs="self",
    in_python=True,
    inplace_argument=True,
)


def hardsigmoid(input, inplace=False):
    """`input / 6 + 1 / 2`, clamped to [0, 1]. Saves `input`. Gradient: g / 6 strictly between the bounds, else 0.

    >>> import cygrad
    >>> cygrad.nn.functional.hardsigmoid(cygrad.tensor([-4.0, 0.0, 4.0]))
    tensor([0.0000, 0.5000, 1.0000])
    """
    return applied(HARDSIGMOID, HARDSIGMOID, input, (), inplace, "hardsigmoid_cpu")


@by_loop("hardswish")
def hardswish_array(a):
    """Multiply a by its hardsigmoid."""
    with np.errstate(all="ignore"):
        return as_array(a * hardsigmoid_array(a))


def hardswish_rule(n, g):
    x = n.saved(0)
    found = fused_gradient("hardswish_gradient", g, x)
    if found is not None:
        return found
    middle = mul(g, x * (1 / 3) + 0.5)
    return where(x <= -3, 0.0, where(x < 3, middle, g))


HARDSWISH = declare(
    "hardswish",
    hardswish_rule,
    saves=IN0,
    flags=FLAGS,
    kernel=hardswish_array,
    inputs="self",
    in_python=True,
    inplace_argument=True,
)


def hardswish(input, inplace=False):
    """`input * hardsigmoid(input)`. Saves `input`. Gradient: 0 up to -3, g from 3 on, g * (input / 3 + 1 / 2) between.

    The result is input * min(max(input / 6 + 1 / 2, 0), 1).

    >>> import cygrad
    >>> cygrad.nn.functional.hardswish(cygrad.tensor([-4.0, 1.0, 4.0]))
    tensor([-0.0000, 0.6667, 4.0000])
    """
    return applied(HARDSWISH, HARDSWISH, input, (), inplace, "hardswish_cpu")


# -- shrinking --


def shrink_rule(n, g):
    x, lambd = n.saved(0), n.args[0]
    found = fused_gradient("outside", g, x, numbers=n.args)
    if found is not None:
        return found
    return tied(where((x >= -lambd) & (x <= lambd), 0.0, g), x)


@by_loop("hardshrink")
def hardshrink_array(a, lambd):
    """0 from -lambd to lambd, else a."""
    number = a.dtype.type
    return select((a >= number(-lambd)) & (a <= number(lambd)), number(0), a)


HARDSHRINK = declare(
    "hardshrink",
    shrink_rule,
    saves=IN0,
    flags=ELEMENTWISE | ONE_PASS,
    kernel=hardshrink_array,
    inputs="self",
    attributes="lambd",
    out_dtype="found",
)


def hardshrink(input, lambd=0.5, *, out=None):
    """`input` where its magnitude exceeds `lambd`, else 0. Saves `input`. Gradient: g where it exceeds it, else 0.

    >>> import cygrad
    >>> cygrad.hardshrink(cygrad.tensor([-1.0, 0.2, 1.0]))
    tensor([-1.,  0.,  1.])
    """
    bound = number_argument(lambd, "hardshrink", "lambd", 2)
    if not require(input, "hardshrink").dtype.is_floating_point:
        raise messages.not_implemented_for("hardshrink_cpu", input.dtype)
    return apply1_args(HARDSHRINK, input, (bound,), out)


@by_loop("softshrink")
def softshrink_array(a, lambd):
    """Shrink the magnitude of a by lambd, but not below 0."""
    number = a.dtype.type
    with np.errstate(all="ignore"):
        return select(np.abs(a) > number(lambd), a - np.copysign(number(lambd), a), a * number(0))


SOFTSHRINK = declare(
    "softshrink",
    shrink_rule,
    saves=IN0,
    flags=FLAGS,
    kernel=softshrink_array,
    inputs="self",
    attributes="lambd",
    out_dtype="found",
)


def softshrink(input, lambd=0.5, *, out=None):
    """Shrink the magnitude of `input` by `lambd`, but not below 0. Saves `input`.

    The result is sign(input) * max(|input| - lambd, 0).

    Gradient: g where the magnitude exceeds `lambd`, else 0. Raises RuntimeError for a negative `lambd`.

    >>> import cygrad
    >>> cygrad.nn.functional.softshrink(cygrad.tensor([-1.0, 0.2, 1.0]))
    tensor([-0.5000,  0.0000,  0.5000])
    """
    bound = number_argument(lambd, "softshrink", "lambd", 2)
    kind = require(input, "softshrink").dtype
    if not kind.is_floating_point:
        raise messages.not_implemented_for("softshrink_check", kind)
    largest = finfo(kind).max
    if not 0 <= bound <= largest:
        raise RuntimeError(
            f"lambda must be in range [0, {largest:g}] for input dtype {kind.type_name}, but found {bound:g}"
        )
    return apply1_args(SOFTSHRINK, input, (bound,), out)


# cygrad's own forms of functions that have other arguments in nn.functional.
functions = publish(
    globals(),
    {
        "relu_": relu_,
        "rrelu": rrelu_of_package,
        "rrelu_": rrelu_,
        "threshold": threshold_of_package,
        "threshold_": threshold_,
    },
)
