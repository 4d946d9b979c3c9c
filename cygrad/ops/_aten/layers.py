"""Convolutions, norms, pooling and padding."""

import cygrad
from cygrad.ops._aten.table import aten


@aten
def _convolution(
    input,
    weight,
    bias,
    stride,
    padding,
    dilation,
    transposed,
    output_padding,
    groups,
    benchmark=False,
    deterministic=False,
    cudnn_enabled=True,
    allow_tf32=True,
):
    """Return `convolution`; the last arguments are for GPUs."""
    return cygrad.convolution(input, weight, bias, stride, padding, dilation, transposed, output_padding, groups)


@aten
def convolution_overrideable(input, weight, bias, stride, padding, dilation, transposed, output_padding, groups):
    """Return `convolution`."""
    return cygrad.convolution(input, weight, bias, stride, padding, dilation, transposed, output_padding, groups)


@aten
def _convolution_mode(input, weight, bias, stride, padding, dilation, groups):
    """Return a convolution whose padding is "same" or "valid"."""
    run = getattr(cygrad, f"conv{weight.ndim - 2}d")
    return run(input, weight, bias, tuple(stride), padding, tuple(dilation), groups)


@aten
def _native_batch_norm_legit(input, weight, bias, *rest):
    """Return `native_batch_norm`: (running_mean, running_var, training, momentum, eps), or the last three alone."""
    statistics = rest[:-3] or (None, None)
    return cygrad.native_batch_norm(input, weight, bias, *statistics, *rest[-3:])


@aten
def _native_batch_norm_legit_no_training(input, weight, bias, running_mean, running_var, momentum, eps):
    """Return `native_batch_norm` with the running statistics."""
    return cygrad.native_batch_norm(input, weight, bias, running_mean, running_var, False, momentum, eps)
