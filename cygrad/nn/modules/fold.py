"""Layers that extract patches from images and reassemble them."""

from __future__ import annotations

from typing import Any

from cygrad.nn.modules._function_module import UnaryFunctionModule

__all__ = ["Fold", "Unfold"]


class _Patches(UnaryFunctionModule):
    def __init__(self, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1) -> None:
        super().__init__()
        self.kernel_size = kernel_size
        self.dilation = dilation
        self.padding = padding
        self.stride = stride


class Unfold(_Patches):
    """Extracts the patches of images (N, C, H, W) as columns (N, C * taps, L), as `F.unfold`.

    L is the product of floor((length + 2 padding - dilation (kernel_size - 1) - 1) / stride + 1) over both lengths.

    >>> import cygrad
    >>> cygrad.nn.Unfold(2)(cygrad.ones(1, 3, 4, 5)).shape
    torch.Size([1, 12, 12])
    """

    _function = "unfold"
    _settings = ("kernel_size", "dilation", "padding", "stride")


class Fold(_Patches):
    """Sums overlapping patches into images (N, C, *output_size), as `F.fold`.

    >>> import cygrad
    >>> cygrad.nn.Fold((4, 5), 2)(cygrad.ones(1, 12, 12)).shape
    torch.Size([1, 3, 4, 5])
    """

    _function = "fold"
    _settings = ("output_size", "kernel_size", "dilation", "padding", "stride")

    def __init__(
        self, output_size: Any, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1
    ) -> None:
        super().__init__(kernel_size, dilation, padding, stride)
        self.output_size = output_size
