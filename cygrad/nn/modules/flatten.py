"""Modules that change shapes."""

from __future__ import annotations

from cygrad import Tensor
from cygrad.nn.modules.module import Module

__all__ = ["Flatten"]


class Flatten(Module):
    """Joins the dimensions from `start_dim` to `end_dim` into one.

    >>> import cygrad
    >>> cygrad.nn.Flatten()(cygrad.zeros(8, 1, 28, 28)).shape
    torch.Size([8, 784])
    """

    def __init__(self, start_dim: int = 1, end_dim: int = -1) -> None:
        super().__init__()
        self.start_dim = start_dim
        self.end_dim = end_dim

    def forward(self, input: Tensor) -> Tensor:
        """Flatten `input`."""
        return input.flatten(self.start_dim, self.end_dim)

    def extra_repr(self) -> str:
        """The dimensions."""
        return f"start_dim={self.start_dim}, end_dim={self.end_dim}"
