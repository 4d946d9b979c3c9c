"""Nonlinearities."""

from __future__ import annotations

import cygrad
from cygrad import Tensor
from cygrad.nn import functional as F
from cygrad.nn.modules.module import Module

__all__ = ["LogSoftmax", "ReLU", "Sigmoid", "Softmax", "Tanh"]


class ReLU(Module):
    """max(x, 0), elementwise; with `inplace` it overwrites its input.

    >>> import cygrad
    >>> cygrad.nn.ReLU()(cygrad.tensor([-1.0, 2.0]))
    tensor([0., 2.])
    """

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        """Apply to `input`, of any shape."""
        return F.relu(input, self.inplace)

    def extra_repr(self) -> str:
        """Whether the input is overwritten."""
        return "inplace=True" if self.inplace else ""


class Tanh(Module):
    """The hyperbolic tangent, elementwise, between -1 and 1.

    >>> import cygrad
    >>> cygrad.nn.Tanh()(cygrad.tensor([0.0, 1.0]))
    tensor([0.0000, 0.7616])
    """

    def forward(self, input: Tensor) -> Tensor:
        """Apply to `input`, of any shape."""
        return cygrad.tanh(input)


class Sigmoid(Module):
    """1 / (1 + exp(-x)), elementwise, between 0 and 1.

    >>> import cygrad
    >>> cygrad.nn.Sigmoid()(cygrad.tensor([0.0, 1.0]))
    tensor([0.5000, 0.7311])
    """

    def forward(self, input: Tensor) -> Tensor:
        """Apply to `input`, of any shape."""
        return cygrad.sigmoid(input)


class _AlongDimension(Module):
    """A function that normalises one dimension."""

    def __init__(self, dim: int | None = None) -> None:
        super().__init__()
        self.dim = dim

    def extra_repr(self) -> str:
        """The dimension."""
        return f"dim={self.dim}"


class Softmax(_AlongDimension):
    """exp(x) / sum(exp(x)) along `dim`: positive numbers that add up to 1.

    >>> import cygrad
    >>> cygrad.nn.Softmax(dim=1)(cygrad.zeros(1, 4))
    tensor([[0.2500, 0.2500, 0.2500, 0.2500]])
    """

    def forward(self, input: Tensor) -> Tensor:
        """Apply to `input`, of any shape."""
        return F.softmax(input, self.dim)


class LogSoftmax(_AlongDimension):
    """x - log(sum(exp(x))) along `dim`: the logarithm of softmax without overflow.

    >>> import cygrad
    >>> cygrad.nn.LogSoftmax(dim=0)(cygrad.zeros(2))
    tensor([-0.6931, -0.6931])
    """

    def forward(self, input: Tensor) -> Tensor:
        """Apply to `input`, of any shape."""
        return F.log_softmax(input, self.dim)
