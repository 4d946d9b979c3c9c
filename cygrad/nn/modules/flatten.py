"""Layers that flatten and unflatten dimensions."""

from __future__ import annotations

from typing import Any

from cygrad import Tensor
from cygrad.nn.modules.module import Module

__all__ = ["Flatten", "Unflatten"]


class Flatten(Module):
    """Merges the dimensions from `start_dim` to `end_dim` into one.

    >>> import cygrad
    >>> cygrad.nn.Flatten()(cygrad.zeros(8, 1, 28, 28)).shape
    torch.Size([8, 784])
    """

    def __init__(self, start_dim: int = 1, end_dim: int = -1) -> None:
        super().__init__()
        self.start_dim = start_dim
        self.end_dim = end_dim

    def forward(self, input: Tensor) -> Tensor:
        """Flatten `input`.

        >>> import cygrad
        >>> from cygrad import nn
        >>> nn.Flatten()(cygrad.ones(2, 3, 4)).shape
        torch.Size([2, 12])
        """
        return input.flatten(self.start_dim, self.end_dim)

    def extra_repr(self) -> str:
        """Return the dimensions.

        >>> from cygrad import nn
        >>> nn.Flatten().extra_repr()
        'start_dim=1, end_dim=-1'
        """
        return f"start_dim={self.start_dim}, end_dim={self.end_dim}"


class Unflatten(Module):
    """Splits the dimension `dim` into the dimensions `unflattened_size`, one of which may be -1.

    Raises `TypeError` unless the sizes are a sequence of ints.

    >>> import cygrad
    >>> cygrad.nn.Unflatten(1, (1, 28, 28))(cygrad.zeros(8, 784)).shape
    torch.Size([8, 1, 28, 28])
    """

    def __init__(self, dim: int, unflattened_size: Any) -> None:
        super().__init__()
        if not isinstance(unflattened_size, (tuple, list)):
            kind = type(unflattened_size).__name__
            raise TypeError(f"unflattened_size must be a tuple of ints, but found type {kind}")
        for i, size in enumerate(unflattened_size):
            if not isinstance(size, int):
                raise TypeError(
                    "unflattened_size must be tuple of ints, "
                    f"but found element of type {type(size).__name__} at pos {i}"
                )
        self.dim = dim
        self.unflattened_size = unflattened_size

    def forward(self, input: Tensor) -> Tensor:
        """Split a dimension of `input`.

        >>> import cygrad
        >>> from cygrad import nn
        >>> nn.Unflatten(1, (2, 3))(cygrad.ones(4, 6)).shape
        torch.Size([4, 2, 3])
        """
        return input.unflatten(self.dim, self.unflattened_size)

    def extra_repr(self) -> str:
        """Return the dimension and the sizes.

        >>> from cygrad import nn
        >>> nn.Unflatten(1, (2, 3)).extra_repr()
        'dim=1, unflattened_size=(2, 3)'
        """
        return f"dim={self.dim}, unflattened_size={self.unflattened_size}"
