"""Losses that compare an output with a target element by element.

`reduction` and its predecessors are described in loss_reductions.py. Each loss is one node, reduction included, except
for l1_loss.
"""

from cygrad._core import messages
from cygrad._core.access import array_of
from cygrad._core.opdef import ELSEWHERE, IN0, IN1, declare, publish
from cygrad._core.record import promoted
from cygrad._kernels import losses as kernels
from cygrad._ops import loss_checks as checks
from cygrad._ops.activations import logsigmoid
from cygrad._ops.arguments import broadcast_shape, require
from cygrad._ops.arithmetic import add, div, mul, neg, sub
from cygrad._ops.loss_reductions import NONE, finished, reduced, reduction_of, spread, weighted
from cygrad._ops.pointwise import abs as magnitude
from cygrad._ops.pointwise import log, sgn, sigmoid
from cygrad._ops.selection import clamp, where


def _optional(weight, function, name):
    """The array of a weight, which has no gradient; None for None."""
    if weight is None:
        return None
    checks.check_constant(require(weight, function, name, 3), function, name)
    return array_of(weight)


# -- squared and absolute error ----------------------------------------------------------------------------


def mse_rule(n, g):
    grad = mul(mul(sub(n.saved(0), n.saved(1)), 2), spread(n, g))
    return grad, neg(grad) if n.needs(1) else None


MSE = declare(
    "mse_loss",
    mse_rule,
    saves=IN0 | IN1,
    flags=ELSEWHERE,
    kernel=kernels.squared_error,
    inputs="self target",
    attributes="reduction",
)


def mse_loss(input, target, size_average=None, reduce=None, reduction="mean", weight=None):
    """The squared error `(input - target)^2`; its mean, its sum, or that of each element.

    `weight` of the input's shape weighs the elements. Saves both. Gradient: 2 * g * (input - target), divided by their
    number for the mean. Warns if input and target differ in shape, which broadcasts.

    >>> import cygrad
    >>> cygrad.nn.functional.mse_loss(cygrad.tensor([1.0, 2.0]), cygrad.tensor([0.0, 0.0]))
    tensor(2.5000)
    """
    x, y = require(input, "mse_loss"), require(target, "mse_loss", "target", 2)
    how = reduction_of(reduction, size_average, reduce)
    a, b = array_of(x), array_of(y)
    if a.dtype is not b.dtype or a.dtype.kind != "f":
        checks.check_floating(x, y, "mse_cpu")
        a, b = promoted(x, y, 0)
    if a.shape != b.shape:
        checks.warn_sizes(x, y)
        broadcast_shape(a.shape, b.shape)  # raises if they do not
    losses = kernels.squared_error(a, b)
    if weight is not None:
        return weighted(finished(MSE, losses, (x, y), NONE), weight, x, how, "mse_loss")
    return finished(MSE, losses, (x, y), how)


def l1_loss(input, target, size_average=None, reduce=None, reduction="mean", weight=None):
    """The absolute error `|input - target|`; its mean, its sum, or that of each element.

    `weight` of the input's shape weighs the elements. Gradient: g * sign(input - target), divided by their number for
    the mean. Warns if input and target differ in shape, which broadcasts.

    >>> import cygrad
    >>> cygrad.nn.functional.l1_loss(cygrad.tensor([1.0, 2.0]), cygrad.tensor([0.0, 0.0]))
    tensor(1.5000)
    """
    x, y = require(input, "l1_loss"), require(target, "l1_loss", "target", 2)
    how = reduction_of(reduction, size_average, reduce)
    checks.warn_sizes(x, y)
    losses = magnitude(sub(x, y))
    return reduced(losses, how) if weight is None else weighted(losses, weight, x, how, "l1_loss")


# -- absolute error, smoothed ------------------------------------------------------------------------------


def smooth_l1_rule(n, g):
    d = sub(n.saved(0), n.saved(1))
    beta = n.args[2]
    grad = mul(where(magnitude(d) >= beta, sgn(d), mul(d, 1 / beta)), spread(n, g))
    return grad, neg(grad) if n.needs(1) else None


SMOOTH_L1 = declare(
    "smooth_l1_loss",
    smooth_l1_rule,
    saves=IN0 | IN1,
    flags=ELSEWHERE,
    kernel=kernels.smooth_l1,
    node="SmoothL1LossBackward0",
    inputs="self target",
    attributes="reduction _ beta",
)


def smooth_l1_loss(input, target, size_average=None, reduce=None, reduction="mean", beta=1.0):
    """`0.5 * d^2 / beta` for a difference |d| below beta, else `|d| - 0.5 * beta`; mean, sum, or of each element.

    Saves both. Gradient: g * d / beta, or g * sign(d), divided by the number of elements for the mean. Warns if input
    and target differ in shape, which broadcasts. Raises RuntimeError for a negative beta.

    >>> import cygrad
    >>> cygrad.nn.functional.smooth_l1_loss(cygrad.tensor([0.5, 2.0]), cygrad.zeros(2), reduction="none")
    tensor([0.1250, 1.5000])
    """
    x, y = require(input, "smooth_l1_loss"), require(target, "smooth_l1_loss", "target", 2)
    how = reduction_of(reduction, size_average, reduce)
    checks.warn_sizes(x, y)
    if beta < 0:
        raise RuntimeError("smooth_l1_loss does not support negative values for beta.")
    if beta == 0:
        return reduced(magnitude(sub(x, y)), how)
    checks.check_floating(x, y, "smooth_l1_cpu")
    broadcast_shape(array_of(x).shape, array_of(y).shape)  # raises if they do not
    a, b = promoted(x, y, 0)
    losses = kernels.smooth_l1(a, b, beta)
    return finished(SMOOTH_L1, losses, (x, y), how, (float(beta),))


# -- binary cross-entropy ----------------------------------------------------------------------------------


def bce_rule(n, g):
    x, weight = n.saved(0), n.saved(2)
    scale = spread(n, g)
    if weight is not None:
        scale = mul(scale, weight)
    grad_x = grad_y = None
    if n.needs(0):
        grad_x = mul(scale, div(sub(x, n.saved(1)), clamp(mul(x, sub(1, x)), 1e-12)))
    if n.needs(1):
        grad_y = mul(scale, sub(log(sub(1, x)), log(x)))
    return grad_x, grad_y


BCE = declare(
    "binary_cross_entropy",
    bce_rule,
    saves=(IN0 | IN1, IN0),
    flags=ELSEWHERE,
    kernel=kernels.binary_cross_entropy,
    inputs="self target weight",
    attributes="reduction",
)


def binary_cross_entropy(input, target, weight=None, size_average=None, reduce=None, reduction="mean"):
    """`-(target * log(input) + (1 - target) * log(1 - input))`; its mean, its sum, or that of each element.

    `input` holds probabilities, `target` values from 0 to 1 in the same shape; `weight` broadcasts to it. Logarithms
    are taken as -100 at least. Saves all three. Gradient: g * weight * (input - target) / (input * (1 - input)),
    divided by the number of elements for the mean.

    Raises ValueError for different shapes, RuntimeError for probabilities outside [0, 1] and for different dtypes.

    >>> import cygrad
    >>> cygrad.nn.functional.binary_cross_entropy(cygrad.tensor([0.5, 0.9]), cygrad.tensor([1.0, 1.0]))
    tensor(0.3993)
    """
    name = "binary_cross_entropy"
    x, y = array_of(require(input, name)), array_of(require(target, name, "target", 2))
    w = _optional(weight, name, "weight")
    how = reduction_of(reduction, size_average, reduce)
    if x.shape != y.shape:
        raise ValueError(
            f"Using a target size ({target.shape}) that is different to the input size ({input.shape}) is deprecated. "
            "Please ensure they have the same size."
        )
    for other in (target, weight):
        if other is not None and other.dtype is not input.dtype:
            raise RuntimeError(f"Found dtype {other.dtype.type_name} but expected {input.dtype.type_name}")
    checks.check_floating(input, target, name)
    if w is not None:
        checks.check_expands(weight, x.shape)
    if not ((x >= 0) & (x <= 1)).all():
        raise RuntimeError(
            "all elements of input should be between 0 and 1\n  for logits, which are any numbers, use "
            "binary_cross_entropy_with_logits"
        )
    return finished(BCE, kernels.binary_cross_entropy(x, y, w), (input, target), how, (), weight)


def bce_with_logits_rule(n, g):
    x, weight, pos_weight = n.saved(0), n.saved(2), n.args[2]
    scale = spread(n, g)
    if weight is not None:
        scale = mul(scale, weight)
    grad_x = grad_y = None
    if n.needs(0):
        y = n.saved(1)
        if pos_weight is None:
            grad_x = mul(scale, sub(sigmoid(x), y))
        else:
            t = mul(pos_weight, y)
            grad_x = mul(scale, sub(mul(sub(add(t, 1), y), sigmoid(x)), t))
    if n.needs(1):
        slope = neg(x)
        if pos_weight is not None:
            slope = sub(slope, mul(sub(pos_weight, 1), logsigmoid(x)))
        grad_y = mul(scale, slope)
    return grad_x, grad_y


BCE_WITH_LOGITS = declare(
    "binary_cross_entropy_with_logits",
    bce_with_logits_rule,
    saves=(IN0 | IN1, IN0),
    flags=ELSEWHERE,
    kernel=kernels.binary_cross_entropy_with_logits,
    inputs="self target weight",
    attributes="reduction _ pos_weight",
)


def binary_cross_entropy_with_logits(
    input, target, weight=None, size_average=None, reduce=None, reduction="mean", pos_weight=None
):
    """`binary_cross_entropy(sigmoid(input), target)`, exact for large inputs as well; mean, sum, or of each element.

    `weight` and `pos_weight` broadcast; `pos_weight` multiplies the term of the target. Saves all. Gradient without
    pos_weight: g * weight * (sigmoid(input) - target), divided by the number of elements for the mean.

    Raises ValueError for different shapes.

    >>> import cygrad
    >>> F = cygrad.nn.functional
    >>> F.binary_cross_entropy_with_logits(cygrad.tensor([0.0, 1000.0]), cygrad.tensor([1.0, 0.0]), reduction="none")
    tensor([6.9315e-01, 1.0000e+03])
    """
    name = "binary_cross_entropy_with_logits"
    x, y = require(input, name), require(target, name, "target", 2)
    w, p = _optional(weight, name, "weight"), _optional(pos_weight, name, "pos_weight")
    how = reduction_of(reduction, size_average, reduce)
    shape = array_of(x).shape
    if shape != array_of(y).shape:
        raise ValueError(f"Target size ({y.shape}) must be the same as input size ({x.shape})")
    if not x.dtype.is_floating_point:
        raise messages.not_implemented_for("log_sigmoid_cpu", x.dtype)
    if not (y.dtype.is_floating_point or y.dtype.is_complex):
        raise RuntimeError(
            f"result type {x.dtype.type_name} can't be cast to the desired output type {y.dtype.type_name}\n"
            "  the target must be floating point: target.float()"
        )
    if p is not None:
        broadcast_shape(p.shape, shape)  # raises if they do not
    if w is not None:
        broadcast_shape(shape, w.shape)
    a, b = promoted(x, y, 0)
    losses = kernels.binary_cross_entropy_with_logits(a, b, w, p)
    return finished(BCE_WITH_LOGITS, losses, (x, y), how, (pos_weight,), weight)


functions = publish(globals())
