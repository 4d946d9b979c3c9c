"""Layers that pad the last one, two or three dimensions."""

from __future__ import annotations

from typing import Any

from cygrad import Tensor
from cygrad.nn import functional as F
from cygrad.nn.modules._sizes import repeated
from cygrad.nn.modules.module import Module

__all__ = [
    "CircularPad1d",
    "CircularPad2d",
    "CircularPad3d",
    "ConstantPad1d",
    "ConstantPad2d",
    "ConstantPad3d",
    "ReflectionPad1d",
    "ReflectionPad2d",
    "ReflectionPad3d",
    "ReplicationPad1d",
    "ReplicationPad2d",
    "ReplicationPad3d",
    "ZeroPad1d",
    "ZeroPad2d",
    "ZeroPad3d",
]


class _Pad(Module):
    """Pads `dims` dimensions by `padding`: one number, or two per dimension, last dimension first."""

    dims = 0
    mode = ""

    def __init__(self, padding: Any) -> None:
        super().__init__()
        self.padding = repeated(padding, 2 * self.dims)

    def forward(self, input: Tensor) -> Tensor:
        """Pad `input`."""
        return F.pad(input, self.padding, self.mode)

    def extra_repr(self) -> str:
        """Return the padding."""
        return f"{self.padding}"


class _ConstantPadNd(_Pad):
    def __init__(self, padding: Any, value: float) -> None:
        super().__init__(padding)
        self.value = value

    def forward(self, input: Tensor) -> Tensor:
        """Pad `input` with the constant."""
        return F.pad(input, self.padding, "constant", self.value)

    def extra_repr(self) -> str:
        """Return the padding and the constant."""
        return f"padding={self.padding}, value={self.value}"


class _ZeroPad(_ConstantPadNd):
    def __init__(self, padding: Any) -> None:
        super().__init__(padding, 0.0)

    def extra_repr(self) -> str:
        """Return the padding."""
        return f"{self.padding}"


class _ReflectionPadNd(_Pad):
    mode = "reflect"


class _ReplicationPadNd(_Pad):
    mode = "replicate"


class _CircularPadNd(_Pad):
    mode = "circular"

    def forward(self, input: Tensor) -> Tensor:
        """Pad `input`, with or without a batch dimension."""
        if input.dim() not in (self.dims + 1, self.dims + 2):
            raise ValueError(f"expected {self.dims + 1}D or {self.dims + 2}D input (got {input.dim()}D input)")
        return super().forward(input)


class ConstantPad1d(_ConstantPadNd):
    """Pads sequences with a constant.

    >>> import cygrad
    >>> cygrad.nn.ConstantPad1d(2, 7.0)(cygrad.tensor([[0.0, 1.0, 2.0]]))
    tensor([[7., 7., 0., 1., 2., 7., 7.]])
    """

    dims = 1


class ConstantPad2d(_ConstantPadNd):
    """Pads images with a constant.

    >>> import cygrad
    >>> cygrad.nn.ConstantPad2d(1, 7.0)(cygrad.ones(1, 3, 3)).shape
    torch.Size([1, 5, 5])
    """

    dims = 2


class ConstantPad3d(_ConstantPadNd):
    """Pads volumes with a constant.

    >>> import cygrad
    >>> cygrad.nn.ConstantPad3d(1, 7.0)(cygrad.ones(1, 3, 3, 3)).shape
    torch.Size([1, 5, 5, 5])
    """

    dims = 3


class ZeroPad1d(_ZeroPad, ConstantPad1d):
    """Pads sequences with zeros.

    >>> import cygrad
    >>> cygrad.nn.ZeroPad1d(2)(cygrad.tensor([[0.0, 1.0, 2.0]]))
    tensor([[0., 0., 0., 1., 2., 0., 0.]])
    """

    dims = 1


class ZeroPad2d(_ZeroPad, ConstantPad2d):
    """Pads images with zeros.

    >>> import cygrad
    >>> cygrad.nn.ZeroPad2d(1)(cygrad.ones(1, 3, 3)).shape
    torch.Size([1, 5, 5])
    """

    dims = 2


class ZeroPad3d(_ZeroPad, ConstantPad3d):
    """Pads volumes with zeros.

    >>> import cygrad
    >>> cygrad.nn.ZeroPad3d(1)(cygrad.ones(1, 3, 3, 3)).shape
    torch.Size([1, 5, 5, 5])
    """

    dims = 3


class ReflectionPad1d(_ReflectionPadNd):
    """Pads sequences by reflection, without repeating the edge.

    >>> import cygrad
    >>> cygrad.nn.ReflectionPad1d(2)(cygrad.tensor([[0.0, 1.0, 2.0]]))
    tensor([[2., 1., 0., 1., 2., 1., 0.]])
    """

    dims = 1


class ReflectionPad2d(_ReflectionPadNd):
    """Pads images by reflection, without repeating the edge.

    >>> import cygrad
    >>> cygrad.nn.ReflectionPad2d(1)(cygrad.ones(1, 3, 3)).shape
    torch.Size([1, 5, 5])
    """

    dims = 2


class ReflectionPad3d(_ReflectionPadNd):
    """Pads volumes by reflection, without repeating the edge.

    >>> import cygrad
    >>> cygrad.nn.ReflectionPad3d(1)(cygrad.ones(1, 3, 3, 3)).shape
    torch.Size([1, 5, 5, 5])
    """

    dims = 3


class ReplicationPad1d(_ReplicationPadNd):
    """Pads sequences by repeating the edge.

    >>> import cygrad
    >>> cygrad.nn.ReplicationPad1d(2)(cygrad.tensor([[0.0, 1.0, 2.0]]))
    tensor([[0., 0., 0., 1., 2., 2., 2.]])
    """

    dims = 1


class ReplicationPad2d(_ReplicationPadNd):
    """Pads images by repeating the edge.

    >>> import cygrad
    >>> cygrad.nn.ReplicationPad2d(1)(cygrad.ones(1, 3, 3)).shape
    torch.Size([1, 5, 5])
    """

    dims = 2


class ReplicationPad3d(_ReplicationPadNd):
    """Pads volumes by repeating the edge.

    >>> import cygrad
    >>> cygrad.nn.ReplicationPad3d(1)(cygrad.ones(1, 3, 3, 3)).shape
    torch.Size([1, 5, 5, 5])
    """

    dims = 3


class CircularPad1d(_CircularPadNd):
    """Pads sequences periodically, with values from the opposite end.

    >>> import cygrad
    >>> cygrad.nn.CircularPad1d(2)(cygrad.tensor([[0.0, 1.0, 2.0]]))
    tensor([[1., 2., 0., 1., 2., 0., 1.]])
    """

    dims = 1


class CircularPad2d(_CircularPadNd):
    """Pads images periodically, with values from the opposite edge.

    >>> import cygrad
    >>> cygrad.nn.CircularPad2d(1)(cygrad.ones(1, 3, 3)).shape
    torch.Size([1, 5, 5])
    """

    dims = 2


class CircularPad3d(_CircularPadNd):
    """Pads volumes periodically, with values from the opposite face.

    >>> import cygrad
    >>> cygrad.nn.CircularPad3d(1)(cygrad.ones(1, 3, 3, 3)).shape
    torch.Size([1, 5, 5, 5])
    """

    dims = 3
