"""Fuses a linear layer or convolution with the batch norm after it, for evaluation."""

from __future__ import annotations

import copy
from typing import Any

import cygrad
from cygrad import Tensor
from cygrad.nn.parameter import Parameter

__all__ = ["fuse_conv_bn_eval", "fuse_conv_bn_weights", "fuse_linear_bn_eval", "fuse_linear_bn_weights"]


def fuse_conv_bn_eval(conv: Any, bn: Any, transpose: bool = False) -> Any:
    """Return a copy of the convolution that computes `bn(conv(x))`. Both must be in evaluation mode.

    Set `transpose` for a transposed convolution.

    >>> import cygrad
    >>> conv, bn = cygrad.nn.Conv2d(3, 4, 2).eval(), cygrad.nn.BatchNorm2d(4).eval()
    >>> x = cygrad.randn(1, 3, 5, 5)
    >>> cygrad.allclose(cygrad.nn.utils.fuse_conv_bn_eval(conv, bn)(x), bn(conv(x)), atol=1e-6)
    True
    """
    fused = _checked_copy(conv, bn)
    fused.weight, fused.bias = fuse_conv_bn_weights(
        fused.weight, fused.bias, bn.running_mean, bn.running_var, bn.eps, bn.weight, bn.bias, transpose
    )
    return fused


def fuse_conv_bn_weights(
    conv_w: Tensor,
    conv_b: Tensor | None,
    bn_rm: Tensor,
    bn_rv: Tensor,
    bn_eps: float,
    bn_w: Tensor | None,
    bn_b: Tensor | None,
    transpose: bool = False,
) -> tuple[Parameter, Parameter]:
    """Return weight and bias of a convolution fused with a batch norm.

    With s = bn_w / sqrt(bn_rv + bn_eps): conv_w * s along the output channels, and
    (conv_b - bn_rm) * s + bn_b.

    >>> import cygrad
    >>> from cygrad import nn
    >>> conv, bn = nn.Conv1d(1, 2, 3), nn.BatchNorm1d(2).eval()
    >>> args = conv.weight, conv.bias, bn.running_mean, bn.running_var, bn.eps, bn.weight, bn.bias
    >>> weight, bias = nn.utils.fuse_conv_bn_weights(*args)
    >>> x = cygrad.ones(1, 1, 4)
    >>> cygrad.nn.functional.conv1d(x, weight, bias).allclose(bn(conv(x)))
    True
    """
    channels = 1 if transpose else 0
    return _fused(conv_w, conv_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b, channels)


def fuse_linear_bn_eval(linear: Any, bn: Any) -> Any:
    """Return a copy of the linear layer that computes `bn(linear(x))`. Both must be in evaluation mode.

    >>> import cygrad
    >>> linear, bn = cygrad.nn.Linear(3, 4).eval(), cygrad.nn.BatchNorm1d(4).eval()
    >>> x = cygrad.randn(5, 3)
    >>> cygrad.allclose(cygrad.nn.utils.fuse_linear_bn_eval(linear, bn)(x), bn(linear(x)), atol=1e-6)
    True
    """
    fused = _checked_copy(linear, bn)
    if bn.num_features not in (linear.out_features, 1):
        raise AssertionError(
            "To fuse, linear.out_features == bn.num_features or bn.num_features == 1, "
            f"got linear.out_features={linear.out_features} and bn.num_features={bn.num_features}"
        )
    fused.weight, fused.bias = fuse_linear_bn_weights(
        fused.weight, fused.bias, bn.running_mean, bn.running_var, bn.eps, bn.weight, bn.bias
    )
    return fused


def fuse_linear_bn_weights(
    linear_w: Tensor,
    linear_b: Tensor | None,
    bn_rm: Tensor,
    bn_rv: Tensor,
    bn_eps: float,
    bn_w: Tensor | None,
    bn_b: Tensor | None,
) -> tuple[Parameter, Parameter]:
    """Return weight and bias of a linear layer fused with a batch norm; see `fuse_conv_bn_weights`.

    >>> import cygrad
    >>> from cygrad import nn
    >>> linear, bn = nn.Linear(3, 2), nn.BatchNorm1d(2).eval()
    >>> args = linear.weight, linear.bias, bn.running_mean, bn.running_var, bn.eps, bn.weight, bn.bias
    >>> weight, bias = nn.utils.fuse_linear_bn_weights(*args)
    >>> x = cygrad.ones(1, 3)
    >>> cygrad.nn.functional.linear(x, weight, bias).allclose(bn(linear(x)))
    True
    """
    return _fused(linear_w, linear_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b, 0)


def _checked_copy(layer: Any, bn: Any) -> Any:
    if layer.training or bn.training:
        raise AssertionError(
            "Fusion only for eval!\nCall eval() on both: in training, the batch norm changes with each batch."
        )
    if bn.running_mean is None or bn.running_var is None:
        raise AssertionError("bn.running_mean and bn.running_var must not be None")
    return copy.deepcopy(layer)


@cygrad.no_grad()
def _fused(
    weight: Tensor,
    bias: Tensor | None,
    mean: Tensor,
    variance: Tensor,
    eps: float,
    scale: Tensor | None,
    shift: Tensor | None,
    channels: int,
) -> tuple[Parameter, Parameter]:
    factor = (variance + eps).rsqrt()
    if scale is not None:
        factor = factor * scale
    new_bias = (-mean if bias is None else bias - mean) * factor
    if shift is not None:
        new_bias = new_bias + shift
    along = [1] * weight.ndim
    along[channels] = -1
    return (
        Parameter((weight * factor.reshape(along)).to(weight.dtype), weight.requires_grad),
        Parameter(new_bias.to(weight.dtype if bias is None else bias.dtype), _requires_grad(bias)),
    )


def _requires_grad(bias: Tensor | None) -> bool:
    return bias is not None and bias.requires_grad
