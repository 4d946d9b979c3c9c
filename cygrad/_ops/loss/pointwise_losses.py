"""Elementwise losses between an output and a target: squared, absolute, smooth L1 and Huber.

`reduction` and its predecessors are described in reductions.py. Each loss is one node, including the reduction.
"""

import numpy as np

from cygrad._core.engine.blocked_gradients import in_parts
from cygrad._core.errors import messages
from cygrad._core.graph.internals import array_of
from cygrad._core.graph.opdef import ELSEWHERE, IN0, IN1, declare, publish
from cygrad._core.graph.record import promoted
from cygrad._kernels.cpu.loss import losses as kernels
from cygrad._ops.base.arguments import broadcast_shape, require
from cygrad._ops.base.arithmetic import mul, neg, sub
from cygrad._ops.base.pointwise import abs as magnitude
from cygrad._ops.base.pointwise import sgn
from cygrad._ops.common.gradients import fused_gradient
from cygrad._ops.elementwise.selection import where
from cygrad._ops.loss import checks
from cygrad._ops.loss.reductions import (
    NONE,
    by_reduction,
    computed,
    loss_of_elements,
    pointwise_loss,
    reduced,
    reduction_of,
    spread,
    weighted,
)

# -- squared and absolute error --


def mse_rule(n, g):
    x, target = n.saved(0), n.saved(1)
    grad = fused_gradient("squared_error_gradient", x, target, spread(n, g))
    if grad is None:
        grad = mul(mul(sub(x, target), 2), spread(n, g))
    return grad, neg(grad) if n.needs(1) else None


MSE = declare(
    "mse_loss",
    mse_rule,
    saves=IN0 | IN1,
    flags=ELSEWHERE,
    kernel=kernels.squared_error,
    inputs="self target",
    attributes="reduction",
    devices="together",
    autocast="float32",
    autocast_gpu="float32",
    batching=pointwise_loss,
    in_python=True,
    float8="mse_cpu",
)


def mse_loss(input, target, size_average=None, reduce=None, reduction="mean", weight=None):
    """The squared error `(input - target)^2`; its mean, its sum, or each element's.

    `weight`, of the input's shape, scales the elements. Saves `input` and `target`. Gradient: 2 * g * (input - target),
    divided by the number of elements for the mean. Warns if input and target differ in shape, in which case they are
    broadcast.

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
        broadcast_shape(a.shape, b.shape)  # raises if they do not broadcast
    if weight is not None:
        losses = computed(MSE, kernels.squared_error, (a, b), (), (x, y), NONE)
        return weighted(losses, weight, x, how, "mse_loss")
    return computed(MSE, kernels.squared_error, (a, b), (), (x, y), how)


@in_parts(0, 0, inputs=0)
def l1_rule(n, g):
    grad = mul(sgn(sub(n.saved(0), n.saved(1))), spread(n, g))
    return grad, neg(grad) if n.needs(1) else None


L1 = declare(
    "l1_loss",
    l1_rule,
    saves=IN0 | IN1,
    flags=ELSEWHERE,
    kernel=kernels.absolute_error,
    inputs="self target",
    attributes="reduction",
    devices="together",
    autocast="float32",
    autocast_gpu="float32",
    batching=loss_of_elements,
    in_python=True,
)
L1_BY_REDUCTION = by_reduction(L1, "AbsBackward0")


def _absolute_errors(x, y, how):
    """Return the absolute errors, their mean or their sum."""
    a, b = array_of(x), array_of(y)
    if how == NONE or a.dtype is not b.dtype or a.dtype.kind != "f":
        return reduced(magnitude(sub(x, y)), how)
    broadcast_shape(a.shape, b.shape)  # raises if they do not broadcast
    return computed(L1_BY_REDUCTION[how], kernels.absolute_error, (a, b), (), (x, y), how)


def l1_loss(input, target, size_average=None, reduce=None, reduction="mean", weight=None):
    """The absolute error `|input - target|`; its mean, its sum, or each element's.

    `weight`, of the input's shape, scales the elements. Saves `input` and `target`. Gradient: g * sign(input - target),
    divided by the number of elements for the mean. Warns if input and target differ in shape, in which case they are
    broadcast.

    >>> import cygrad
    >>> cygrad.nn.functional.l1_loss(cygrad.tensor([1.0, 2.0]), cygrad.tensor([0.0, 0.0]))
    tensor(1.5000)
    """
    x, y = require(input, "l1_loss"), require(target, "l1_loss", "target", 2)
    how = reduction_of(reduction, size_average, reduce)
    checks.warn_sizes(x, y)
    if weight is None:
        return _absolute_errors(x, y, how)
    return weighted(_absolute_errors(x, y, NONE), weight, x, how, "l1_loss")


# -- smooth L1 --


def smooth_l1_rule(n, g):
    x, target = n.saved(0), n.saved(1)
    grad = fused_gradient("bounded_difference", x, target, spread(n, g), numbers=(1, 1 / n.args[2]))
    if grad is None:
        return _smooth_l1_gradients(n.opened(x, target), g)
    return grad, neg(grad) if n.needs(1) else None


@in_parts(0, 0, inputs=0)
def _smooth_l1_gradients(n, g):
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
    devices="together",
    autocast="float32",
    autocast_gpu="float32",
    batching=pointwise_loss,
    in_python=True,
    float8="smooth_l1_cpu",
)


def smooth_l1_loss(input, target, size_average=None, reduce=None, reduction="mean", beta=1.0):
    """`0.5 * d^2 / beta` if the difference |d| is below beta, else `|d| - 0.5 * beta`; mean, sum, or each element's.

    Saves `input` and `target`. Gradient: g * d / beta, or g * sign(d), divided by the number of elements for the mean.
    Warns if input and target differ in shape, in which case they are broadcast. Raises RuntimeError for a negative
    beta.

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
        return _absolute_errors(x, y, how)
    checks.check_floating(x, y, "smooth_l1_cpu")
    broadcast_shape(array_of(x).shape, array_of(y).shape)  # raises if they do not broadcast
    a, b = promoted(x, y, 0)
    return computed(SMOOTH_L1, kernels.smooth_l1, (a, b), (beta,), (x, y), how, (float(beta),))


# -- Huber --


def huber_rule(n, g):
    x, target = n.saved(0), n.saved(1)
    grad = fused_gradient("bounded_difference", x, target, spread(n, g), numbers=(n.args[2], 1))
    if grad is None:
        return _huber_gradients(n.opened(x, target), g)
    return grad, neg(grad) if n.needs(1) else None


@in_parts(0, 0, inputs=0)
def _huber_gradients(n, g):
    delta = n.args[2]
    d = sub(n.saved(0), n.saved(1))
    grad = mul(where(magnitude(d) >= delta, mul(sgn(d), delta), d), spread(n, g))
    return grad, neg(grad) if n.needs(1) else None


HUBER = declare(
    "huber_loss",
    huber_rule,
    saves=IN0 | IN1,
    flags=ELSEWHERE,
    kernel=kernels.huber,
    inputs="self target",
    attributes="reduction _ delta",
    devices="together",
    autocast="float32",
    autocast_gpu="float32",
    batching=pointwise_loss,
    in_python=True,
    float8="huber_cpu",
)


def huber_loss(input, target, reduction="mean", delta=1.0, weight=None):
    """`0.5 * d^2` if the difference |d| is below delta, else `delta * (|d| - 0.5 * delta)`; mean, sum, or elementwise.

    `weight`, of the input's shape, scales the elements. Saves `input` and `target`. Gradient: g * d, with d clamped to
    magnitude delta, divided by the number of elements for the mean. Warns if input and target differ in shape, in
    which case they are broadcast. Raises RuntimeError for a delta that is not positive.

    >>> import cygrad
    >>> cygrad.nn.functional.huber_loss(cygrad.tensor([0.5, 3.0]), cygrad.zeros(2), reduction="none")
    tensor([0.1250, 2.5000])
    """
    x, y = require(input, "huber_loss"), require(target, "huber_loss", "target", 2)
    checks.warn_sizes(x, y)
    broadcast_shape(array_of(x).shape, array_of(y).shape)  # raises if they do not broadcast
    how = reduction_of(reduction, None, None)
    if not isinstance(delta, (int, float)):
        if not (isinstance(delta, np.number) and delta.dtype.kind in "iuf"):
            raise messages.wrong_type("huber_loss", "delta", 4, "float", delta)
        delta = delta.item()
    if not delta > 0:
        raise RuntimeError("huber_loss does not support non-positive values for delta.")
    checks.check_floating(x, y, "huber_cpu")
    a, b = promoted(x, y, 0)
    if weight is None:
        found = computed(HUBER, kernels.huber, (a, b), (delta,), (x, y), how, (float(delta),))
        return found.to(x.dtype) if x.is_floating_point() else found
    if require(weight, "huber_loss", "weight", 5).shape != x.shape:
        raise ValueError("Weights and input must have the same size.")
    losses = computed(HUBER, kernels.huber, (a, b), (delta,), (x, y), NONE, (float(delta),))
    return reduced(mul(losses, weight), how)


functions = publish(globals())
