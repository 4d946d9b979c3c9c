"""Dropout layers."""

from __future__ import annotations

from cygrad import Tensor
from cygrad.nn import functional as F
from cygrad.nn.modules.module import Module

__all__ = ["Dropout"]


class Dropout(Module):
    """In training, zeroes each element with probability `p` and scales the others by 1/(1-p).

    In evaluation it returns its input. Raises `ValueError` unless 0 <= p <= 1.

    >>> import cygrad
    >>> layer = cygrad.nn.Dropout(0.5)
    >>> sorted(set(layer(cygrad.ones(1000)).tolist()))
    [0.0, 2.0]
    >>> layer.eval()(cygrad.ones(3))
    tensor([1., 1., 1.])
    """

    def __init__(self, p: float = 0.5, inplace: bool = False) -> None:
        super().__init__()
        if p < 0 or p > 1:
            raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")
        self.p = p
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        """Apply to `input`, of any shape."""
        return F.dropout(input, self.p, self.training, self.inplace)

    def extra_repr(self) -> str:
        """The probability, and whether the input is overwritten."""
        return f"p={self.p}, inplace={self.inplace}"
