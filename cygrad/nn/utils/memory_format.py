"""Memory formats of convolution weights."""

from __future__ import annotations

from typing import Any

from cygrad.nn.modules.conv import Conv2d, Conv3d, ConvTranspose2d, ConvTranspose3d
from cygrad.nn.modules.module import Module

__all__ = ["convert_conv2d_weight_memory_format", "convert_conv3d_weight_memory_format"]


def convert_conv2d_weight_memory_format(module: Any, memory_format: Any) -> Any:
    """Convert the weight of each 2-D convolution in `module` to this memory format.

    >>> import cygrad
    >>> layer = cygrad.nn.Conv2d(3, 4, 2)
    >>> cygrad.nn.utils.convert_conv2d_weight_memory_format(layer, cygrad.channels_last).weight.stride()
    (12, 1, 6, 3)
    """
    return _convert(module, memory_format, (Conv2d, ConvTranspose2d))


def convert_conv3d_weight_memory_format(module: Any, memory_format: Any) -> Any:
    """Convert the weight of each 3-D convolution in `module` to this memory format.

    >>> import cygrad
    >>> from cygrad import nn
    >>> m = nn.utils.convert_conv3d_weight_memory_format(nn.Conv3d(2, 3, 2), cygrad.channels_last_3d)
    >>> m.weight.is_contiguous(memory_format=cygrad.channels_last_3d)
    True
    """
    return _convert(module, memory_format, (Conv3d, ConvTranspose3d))


def _convert(module: Module, memory_format: Any, classes: tuple[Any, ...]) -> Module:
    for layer in module.modules():
        if isinstance(layer, classes):
            layer.weight.data = layer.weight.detach().clone(memory_format=memory_format)
    return module
