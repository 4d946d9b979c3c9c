"""Normalization functions under the names of PyTorch's internal ops, which also return the statistics.

Means and inverse deviations have no gradient; their dtype is that of the weights, if there are any.
"""

import math

from cygrad._core.graph.internals import array_of
from cygrad._core.graph.opdef import FUNCTION_ONLY, publish
from cygrad._core.graph.tensor import Tensor
from cygrad._core.registry.dispatch import unseen
from cygrad._ops.base.arguments import require
from cygrad._ops.base.checks.common import typed
from cygrad._ops.base.pointwise import reciprocal
from cygrad._ops.base.views import reshape
from cygrad._ops.elementwise.trigonometry import hypot
from cygrad._ops.nn.batch_norm import batch_norm_of_package, check_both_running
from cygrad._ops.nn.normalization import group_norm_of_package, layer_norm
from cygrad._ops.reduction.statistics import std_mean


def _statistics(t, axes, shape, eps, *parameters):
    """Return (mean, 1 / deviation) over `axes`, reshaped to `shape`."""
    with unseen():
        x = t.detach().float() if t.dtype.itemsize == 2 else t.detach()
        deviation, middle = std_mean(x, axes, correction=0, keepdim=True)
        factor = reciprocal(hypot(deviation, deviation.new_full((), math.sqrt(eps))))  # squares may leave the range
        kind = next((p for p in parameters if p is not None), t).dtype
        return reshape(middle, shape).to(kind), reshape(factor, shape).to(kind)


@typed(eps=float)
def native_layer_norm(input, normalized_shape, weight, bias, eps):
    """Run `layer_norm` and return a tuple (result, mean, 1 / sqrt(variance + eps)).

    >>> import cygrad
    >>> cygrad.native_layer_norm(cygrad.tensor([1.0, 3.0]), [2], None, None, 0.0)
    (tensor([-1.,  1.]), tensor([2.]), tensor([1.]))
    """
    result = layer_norm(input, normalized_shape, weight, bias, eps)
    own = 1 if isinstance(normalized_shape, int) else len(normalized_shape)
    shape = (*result.shape[: result.ndim - own], *(1,) * own)
    return result, *_statistics(input, tuple(range(-own, 0)), shape, eps, weight, bias)


@typed(N=int, C=int, HxW=int, group=int, eps=float)
def native_group_norm(input, weight, bias, N, C, HxW, group, eps):
    """Run `group_norm` on N samples of C channels of HxW elements: a tuple (result, mean, 1 / sqrt(variance + eps)).

    >>> import cygrad
    >>> cygrad.native_group_norm(cygrad.tensor([[1.0, 3.0]]), None, None, 1, 2, 1, 1, 0.0)
    (tensor([[-1.,  1.]]), tensor([[2.]]), tensor([[1.]]))
    """
    t = require(input, "native_group_norm")
    if t.numel() != N * C * HxW:
        raise RuntimeError(
            "Expected X.numel() == N * C * HxW to be true, but got false.  (Could this error message be improved?  "
            "If so, please report an enhancement request to PyTorch.)"
        )
    result = group_norm_of_package(reshape(t, (N, C, HxW)), group, weight, bias, eps)
    statistics = _statistics(reshape(t, (N, group, C // group * HxW)), (2,), (N, group), eps, weight, bias)
    return reshape(result, tuple(t.shape)), *statistics


@typed(training=bool, momentum=float, eps=float)
def native_batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps):
    """Run `batch_norm`: (result, mean, 1 / sqrt(variance + eps)); without `training` the statistics are empty.

    >>> import cygrad
    >>> cygrad.native_batch_norm(cygrad.tensor([[1.0], [3.0]]), None, None, None, None, True, 0.1, 0.0)
    (tensor([[-1.],
            [ 1.]]), tensor([2.]), tensor([1.]))
    """
    if all(isinstance(value, Tensor | None) for value in (running_mean, running_var)):  # other types raise below
        check_both_running(running_mean, running_var)
    result = batch_norm_of_package(input, weight, bias, running_mean, running_var, training, momentum, eps, False)
    shape = tuple(array_of(input).shape)
    if not training:
        return result, input.new_empty(0), input.new_empty(0)
    axes = (0, *range(2, len(shape)))
    return result, *_statistics(input, axes, shape[1:2], eps, weight, bias, running_mean)


composite = dict.fromkeys(("native_layer_norm", "native_group_norm", "native_batch_norm"), FUNCTION_ONLY)
functions = publish(globals())
