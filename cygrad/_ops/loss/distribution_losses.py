"""Elementwise losses that compare an output with probabilities, counts or the parameters of a distribution.

`reduction` and the deprecated arguments it replaces are described in reductions.py; the functions of the main
package take its code. The two binary cross-entropies are one node, including the reduction.
"""

import math

import numpy as np

from cygrad._core.engine.blocked_gradients import in_parts
from cygrad._core.errors import messages
from cygrad._core.errors.sites import warn
from cygrad._core.graph.dual import values_of
from cygrad._core.graph.internals import array_of, memory_of, tensor_of
from cygrad._core.graph.opdef import ELEMENTWISE, ELSEWHERE, IN0, IN1, IN2, PRIVATE, declare, facts, named, publish
from cygrad._core.graph.record import apply2, promoted, result_type
from cygrad._kernels.cpu.loss import losses as kernels
from cygrad._kernels.device.cupy_library import is_array, is_meta
from cygrad._kernels.tape.calls import noted
from cygrad._ops.base.arguments import broadcast_shape, require
from cygrad._ops.base.arithmetic import add, div, mul, neg, sub
from cygrad._ops.base.batching.rules import operands, rule
from cygrad._ops.base.checks.common import check_constant, require_kind, typed
from cygrad._ops.base.pointwise import exp, log, sigmoid, square
from cygrad._ops.base.views import unsqueeze
from cygrad._ops.common.gradients import fused_gradient
from cygrad._ops.elementwise.selection import clamp, where
from cygrad._ops.loss import checks
from cygrad._ops.loss.reductions import (
    CODES,
    NONE,
    SUM,
    by_reduction,
    computed,
    known,
    loss_of_elements,
    of_one_type,
    pointwise_loss,
    reduced,
    reduced_samples,
    reduction_of,
    spread,
)
from cygrad._ops.nn.activations import logsigmoid


def _optional(weight, function, name):
    """Return the array of a weight, which must not need a gradient; None for None."""
    if weight is None:
        return None
    check_constant(require(weight, function, name, 3), function, name)
    return array_of(weight)


# -- binary cross-entropy --


@noted
def _are_probabilities(x):
    return bool(x.min() >= 0 and x.max() <= 1)


@in_parts(0, 0, inputs=0)
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
    devices="together",
    autocast="float32",
    autocast_gpu="refused",
    batching=pointwise_loss,
    in_python=True,
    derived={"weight": None},
)


def binary_cross_entropy(input, target, weight=None, size_average=None, reduce=None, reduction="mean"):
    """`-(target * log(input) + (1 - target) * log(1 - input))`: the mean, the sum, or the loss of each element.

    `input` holds probabilities, `target` values from 0 to 1 of the same shape; `weight` broadcasts to it. Logarithms
    are clamped to at least -100. Saves all three. Gradient: g * weight * (input - target) / (input * (1 - input)),
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
    if x.size and not is_array(x) and not _are_probabilities(x):
        raise RuntimeError(
            "all elements of input should be between 0 and 1\n  for logits, which are any numbers, use "
            "binary_cross_entropy_with_logits"
        )
    return computed(BCE, kernels.binary_cross_entropy, (x, y, w), (), (input, target), how, (), weight)


def bce_with_logits_rule(n, g):
    if n.saved(2) is None and n.args[2] is None and not n.needs(1):
        name = "binary_cross_entropy_with_logits_gradient"
        found = fused_gradient(name, n.saved(0), n.saved(1), spread(n, g))
        if found is not None:
            return found, None
    return _bce_with_logits_gradients(n, g)


@in_parts(0, 0, (None, None, 0), 0)
def _bce_with_logits_gradients(n, g):
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
    devices="together",
    autocast="float32",
    autocast_gpu="float32",
    batching=pointwise_loss,
    derived={"weight": None},
)


def binary_cross_entropy_with_logits(
    input, target, weight=None, size_average=None, reduce=None, reduction="mean", pos_weight=None
):
    """`binary_cross_entropy(sigmoid(input), target)`, also accurate for large inputs.

    The result is the mean, the sum, or the loss of each element. `weight` and `pos_weight` broadcast; `pos_weight`
    multiplies the term with `target`. Saves all arguments. Gradient without pos_weight: g * weight * (sigmoid(input) -
    target), divided by the number of elements for the mean.

    Raises ValueError for different shapes.

    >>> import cygrad
    >>> F = cygrad.nn.functional
    >>> F.binary_cross_entropy_with_logits(cygrad.tensor([0.0, 1000.0]), cygrad.tensor([1.0, 0.0]), reduction="none")
    tensor([6.9315e-01, 1.0000e+03])
    """
    how = reduction_of(reduction, size_average, reduce)
    if require(target, "binary_cross_entropy_with_logits", "target", 2).shape != input.shape:
        raise ValueError(
            f"Target size ({target.shape}) must be the same as input size ({input.shape})\n"
            "  each element of the input is the score of one label; for one score per row, use target.unsqueeze(1)"
        )
    return _with_logits(input, target, weight, pos_weight, how)


@typed(reduction=int)
@named("binary_cross_entropy_with_logits")
def bce_with_logits_of_package(input, target, weight=None, pos_weight=None, reduction=NONE):
    """`binary_cross_entropy(sigmoid(input), target)`, also accurate for large inputs; `reduction` is a code.

    >>> import cygrad
    >>> cygrad.binary_cross_entropy_with_logits(cygrad.tensor([0.0, 200.0]), cygrad.tensor([1.0, 0.0]))
    tensor([  0.6931, 200.0000])
    """
    return _with_logits(input, target, weight, pos_weight, reduction)


def with_logits(x, y, how=NONE):
    """Return binary cross-entropies, reduced by the code `how`, for logits and targets of any dtype."""
    broadcast_shape(array_of(y).shape, array_of(x).shape)  # raises if they do not broadcast
    arrays = (*promoted(x, y, 0), None, None)
    return computed(BCE_WITH_LOGITS, kernels.binary_cross_entropy_with_logits, arrays, (), (x, y), how, (None,))


def _with_logits(input, target, weight, pos_weight, how):
    name = "binary_cross_entropy_with_logits"
    x, y = require(input, name), require(target, name, "target", 2)
    w, p = _optional(weight, name, "weight"), _optional(pos_weight, name, "pos_weight")
    if not x.dtype.is_floating_point:
        raise messages.not_implemented_for("log_sigmoid_cpu", x.dtype)
    shape = broadcast_shape(array_of(x).shape, array_of(y).shape)
    if not (y.dtype.is_floating_point or y.dtype.is_complex):
        raise RuntimeError(
            f"result type {x.dtype.type_name} can't be cast to the desired output type {y.dtype.type_name}\n"
            "  the target must be floating point: target.float()"
        )
    if p is not None:
        broadcast_shape(p.shape, shape)  # raises if they do not broadcast
    if w is not None:
        broadcast_shape(shape, w.shape)
    a, b = promoted(x, y, 0)
    kernel = kernels.binary_cross_entropy_with_logits
    found = computed(BCE_WITH_LOGITS, kernel, (a, b, w, p), (), (x, y), how, (pos_weight,), weight)
    return found.to(y.dtype) if w is None and p is None and y.is_floating_point() else found


# -- Kullback-Leibler divergence --


def kl_rule(n, g):
    y, grad_y = n.saved(1), None
    if n.needs(1):  # with y * log(y) defined as in `xlogy`
        grad_y = mul(g, sub(add(where(y == 0, 0.0, log(y)), div(y, y)), n.saved(0)))
    return neg(mul(g, y)) if n.needs(0) else None, grad_y


KL = declare(
    "kl_divergence",
    kl_rule,
    saves=(IN1, IN0 | IN1),
    flags=ELEMENTWISE | PRIVATE,
    kernel=kernels.kl_divergence,
    inputs="input target",
    node="SubBackward0",
)


def kl_divergence(input, target):
    """`target * (log(target) - input)`, but 0 where `target` is 0."""
    return apply2(KL, input, target, None)


@facts(autocast="float32", autocast_gpu="float32")
def kl_div(input, target, size_average=None, reduce=None, reduction="mean", log_target=False):
    """Kullback-Leibler divergence `target * (log(target) - input)` for log-probabilities `input`.

    The result is the mean, the sum, "batchmean", or the loss of each element. "batchmean" divides the sum by the length
    of dimension 0. With `log_target`, the target is a logarithm, too. Saves both; the gradient of `input` only needs
    the target. Gradients without log_target: -g * target, and g * (log(target) + 1 - input). Raises RuntimeError for
    integers and complex numbers.

    >>> import cygrad
    >>> log_probabilities = cygrad.tensor([[0.5, 0.5]]).log()
    >>> cygrad.nn.functional.kl_div(log_probabilities, cygrad.tensor([[1.0, 0.0]]), reduction="batchmean")
    tensor(0.6931)
    """
    x = require(input, "kl_div")
    batchmean = size_average is None and reduce is None and reduction == "batchmean"
    if size_average is None and reduce is None and reduction == "mean":
        warn(
            "reduction: 'mean' divides the total loss by both the batch size and the support size.'batchmean' divides "
            "only by the batch size, and aligns with the KL div math definition.'mean' will be changed to behave the "
            "same as 'batchmean' in the next major release."
        )
    result = _kl_div(x, target, SUM if batchmean else reduction_of(reduction, size_average, reduce), log_target)
    return div(result, x.shape[0]) if batchmean and x.ndim else result


@typed(reduction=int, log_target=bool)
@named("kl_div")
def kl_div_of_package(input, target, reduction=NONE, *, log_target=False):
    """`target * (log(target) - input)` for log-probabilities `input`; `reduction` is a code: 0 none, 1 mean, 2 sum.

    >>> import cygrad
    >>> p, q = cygrad.tensor([0.5, 0.5]), cygrad.tensor([0.25, 0.75])
    >>> cygrad.kl_div(q.log(), p, 2)
    tensor(0.1438)
    """
    return _kl_div(input, target, reduction, log_target)


def _kl_div(input, target, reduction, log_target):
    x, y = require(input, "kl_div"), require(target, "kl_div", "target", 2)
    for tensor in (x, y):
        if not tensor.dtype.is_floating_point:
            kind = "Complex" if tensor.dtype.is_complex else "Integral"
            raise RuntimeError(f"kl_div: {kind} inputs not supported.")
    if log_target:
        return reduced(mul(exp(y), sub(y, x)), reduction)
    require_kind("f", "xlogy_cpu", y)
    broadcast_shape(array_of(y).shape, array_of(x).shape)  # raises if they do not broadcast
    return reduced(kl_divergence(x, y), reduction)


# -- Poisson and Gaussian negative log-likelihood --


@in_parts(0, 0, inputs=0)
def poisson_rule(n, g):
    x, y, scale = n.saved(0), n.saved(1), spread(n, g)
    _how, _count, log_input, full, eps = n.args
    grad_x = grad_y = None
    if n.needs(0):
        grad_x = mul(scale, sub(exp(x), y) if log_input else sub(1, div(y, add(x, eps))))
    if n.needs(1):
        slope = neg(x if log_input else log(add(x, eps)))
        if full:
            is_many = y > 1
            y = where(is_many, y, 1.0)  # the slope at 0 is masked, but its derivatives would be 0 * inf
            slope = add(slope, where(is_many, add(log(y), div(0.5, y)), 0.0))
        grad_y = mul(scale, slope)
    return grad_x, grad_y


POISSON = declare(
    "poisson_nll_loss",
    poisson_rule,
    saves=IN0 | IN1,
    flags=ELSEWHERE,
    kernel=kernels.poisson,
    inputs="self target",
    attributes="reduction _ log_input full eps",
    devices="together",
    autocast="float32",
    autocast_gpu="float32",
    batching=loss_of_elements,
)
POISSON_BY_REDUCTION = by_reduction(POISSON, "SubBackward0"), by_reduction(POISSON, "AddBackward0")  # if full


def poisson_nll_loss(
    input, target, log_input=True, full=False, size_average=None, eps=1e-8, reduce=None, reduction="mean"
):
    """Negative log-likelihood of counts `target` with expected values exp(input), or `input` without `log_input`.

    The loss is `exp(input) - target * input`, or, without `log_input`, `input - target * log(input + eps)`. `full` adds
    Stirling's approximation of log(target!) for targets above 1. Saves both.

    >>> import cygrad
    >>> cygrad.nn.functional.poisson_nll_loss(cygrad.tensor([0.0, 1.0]), cygrad.tensor([1.0, 2.0]))
    tensor(0.8591)
    """
    return _poisson(input, target, log_input, full, eps, reduction_of(reduction, size_average, reduce))


@typed(log_input=bool, full=bool, eps=float, reduction=int)
@named("poisson_nll_loss")
def poisson_nll_of_package(input, target, log_input, full, eps, reduction):
    """`exp(input) - target * input`, the negative log-likelihood of counts; `input - target * log(input + eps)` without
    `log_input`. `full` adds Stirling's approximation of log(target!).

    `reduction` is a code: 0 none, 1 mean, 2 sum. Saves both.

    >>> import cygrad
    >>> cygrad.poisson_nll_loss(cygrad.tensor([0.0, 1.0]), cygrad.tensor([1.0, 2.0]), True, False, 1e-8, 0)
    tensor([1.0000, 0.7183])
    """
    return _poisson(input, target, log_input, full, eps, reduction)


def _poisson(input, target, log_input, full, eps, reduction):
    x, y = require(input, "poisson_nll_loss"), require(target, "poisson_nll_loss", "target", 2)
    given = of_one_type(x, y)
    if given is None:
        raise messages.not_implemented_for("poisson_nll_loss", result_type((x, y)))
    arrays, args = tuple(map(array_of, given)), (log_input, full, eps)
    broadcast_shape(arrays[1].shape, arrays[0].shape)  # raises if they do not broadcast
    row = POISSON_BY_REDUCTION[bool(full)][known(reduction)]
    return computed(row, kernels.poisson, arrays, args, given, reduction, args)


@in_parts(0, 0, inputs=0)
def gaussian_rule(n, g):
    d, var, scale = sub(n.saved(0), n.saved(1)), n.saved(2), spread(n, g)
    share = div(d, var)
    grad = mul(scale, share) if n.needs(0) or n.needs(1) else None
    return (
        grad if n.needs(0) else None,
        neg(grad) if n.needs(1) else None,
        mul(scale, mul(sub(div(1, var), square(share)), 0.5)) if n.needs(2) else None,
    )


GAUSSIAN = declare(
    "gaussian_nll_loss",
    gaussian_rule,
    saves=IN0 | IN1 | IN2,
    flags=ELSEWHERE,
    kernel=kernels.gaussian,
    inputs="self target var",
    attributes="reduction _ constant",
    devices="together",
    in_python=True,
)
GAUSSIAN_BY_REDUCTION = by_reduction(GAUSSIAN, "MulBackward0"), by_reduction(GAUSSIAN, "AddBackward0")  # if full


def gaussian_nll_loss(input, target, var, full=False, eps=1e-6, reduction="mean"):
    """Negative log-likelihood of `target` under normal distributions with mean `input` and variance `var`.

    The loss is `0.5 * (log(var) + (input - target)^2 / var)`. `var` is clamped to at least `eps`, but gradients pass
    through the clamp unchanged. `full` adds log(2 pi) / 2. `var` is a number, or has the shape of `input`, possibly
    with the last dimension missing or of length 1. Saves all three. Raises ValueError for other shapes and for negative
    variances.

    >>> import cygrad
    >>> cygrad.nn.functional.gaussian_nll_loss(cygrad.tensor([0.0]), cygrad.tensor([2.0]), cygrad.tensor([1.0]))
    tensor(2.)
    """
    x, y = require(input, "gaussian_nll_loss"), require(target, "gaussian_nll_loss", "target", 2)
    if isinstance(var, (int, float)):
        if var < 0:
            raise ValueError("var has negative entry/entries")
        var = tensor_of(np.full_like(memory_of(x), var))
    elif _has_negative(values_of(require(var, "gaussian_nll_loss", "var", 3))):
        raise ValueError("var has negative entry/entries")
    if var.shape != x.shape:
        if x.shape[:-1] == var.shape:
            var = unsqueeze(var, -1)
        elif x.ndim != var.ndim or sum(n for m, n in zip(x.shape, var.shape) if m != n) != 1:
            raise ValueError("var is of incorrect size")
    if reduction not in CODES:
        raise ValueError(f"{reduction} is not valid")
    values = values_of(var)
    if is_array(values) or _has_less_than(values, eps):
        bare = var.detach()
        var = add(var, sub(clamp(bare, min=eps), bare))
    given = of_one_type(x, y, var)
    if given is None:
        raise messages.not_implemented_for("gaussian_nll_loss", result_type((x, y, var)))
    arrays, constant = tuple(map(array_of, given)), 0.5 * math.log(2 * math.pi) if full else 0.0
    broadcast_shape(arrays[0].shape, arrays[1].shape)  # raises if they do not broadcast
    row = GAUSSIAN_BY_REDUCTION[bool(full)][CODES[reduction]]
    return computed(row, kernels.gaussian, arrays, (constant,), given, CODES[reduction], (constant,), hint=(eps,))


@rule("gaussian_nll_loss")
def _gaussian(call):
    reduction, _, constant = call.args
    shape = (call.size, *np.broadcast_shapes(*[x.shape for x in call.inputs]))
    means, targets, variances = (x.expand(shape) for x in operands(call, call.inputs))
    losses = gaussian_nll_loss(means, targets, variances, full=bool(constant), eps=0, reduction="none")
    return reduced_samples(losses, reduction)


@noted
def _has_negative(values):
    return not is_meta(values) and bool(values.size) and not values.min() >= 0 and bool((values < 0).any())


@noted
def _has_less_than(values, least):
    return bool(values.size) and not values.min() >= least


composite = {"kl_div": ELSEWHERE}
functions = publish(
    globals(),
    {
        "binary_cross_entropy_with_logits": bce_with_logits_of_package,
        "kl_div": kl_div_of_package,
        "poisson_nll_loss": poisson_nll_of_package,
    },
)
