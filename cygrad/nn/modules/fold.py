"""Layers that cut images into patches and join them again."""

from __future__ import annotations

from typing import Any

from cygrad import Tensor
from cygrad.nn import functional as F
from cygrad.nn.modules.module import Module

__all__ = ["Fold", "Unfold"]


class _Patches(Module):
    def __init__(self, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1) -> None:
        super().__init__()
        self.kernel_size = kernel_size
        self.dilation = dilation
        self.padding = padding
        self.stride = stride

    def extra_repr(self) -> str:
        """How patches lie on images."""
        return f"kernel_size={self.kernel_size}, dilation={self.dilation}, padding={self.padding}, stride={self.stride}"


class Unfold(_Patches):
    """The patches of images (N, C, H, W) as columns (N, C * taps, L), as `F.unfold`.

    >>> import cygrad
    >>> cygrad.nn.Unfold(2)(cygrad.ones(1, 3, 4, 5)).shape
    torch.Size([1, 12, 12])
    """

    def forward(self, input: Tensor) -> Tensor:
        """Cut `input` into patches."""
        return F.unfold(input, self.kernel_size, self.dilation, self.padding, self.stride)


class Fold(_Patches):
    """Images (N, C, *output_size) whose pixels sum the patches that cover them, as `F.fold`.

    >>> import cygrad
    >>> cygrad.nn.Fold((4, 5), 2)(cygrad.ones(1, 12, 12)).shape
    torch.Size([1, 3, 4, 5])
    """

    def __init__(
        self, output_size: Any, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1
    ) -> None:
        super().__init__(kernel_size, dilation, padding, stride)
        self.output_size = output_size

    def forward(self, input: Tensor) -> Tensor:
        """Join the columns of `input`."""
        return F.fold(input, self.output_size, self.kernel_size, self.dilation, self.padding, self.stride)

    def extra_repr(self) -> str:
        """The size of the images, and how patches lie on them."""
        return f"output_size={self.output_size}, {super().extra_repr()}"
