"""Smooth activations, and activations along a dimension. Piecewise ones, from rectifiers.py, can be found here, too."""

from __future__ import annotations

import cygrad
from cygrad import Tensor
from cygrad.nn import functional as F
from cygrad.nn.modules._function_module import Activation
from cygrad.nn.modules.attention import MultiheadAttention as MultiheadAttention
from cygrad.nn.modules.module import Module
from cygrad.nn.modules.rectifiers import (  # noqa: F401, libraries look for activations here
    CELU,
    ELU,
    GELU,
    SELU,
    Hardshrink,
    Hardsigmoid,
    Hardswish,
    Hardtanh,
    LeakyReLU,
    Mish,
    PReLU,
    ReLU,
    ReLU6,
    RReLU,
    SiLU,
    Softplus,
    Softshrink,
    Threshold,
)

__all__ = [
    "GLU",
    "LogSigmoid",
    "LogSoftmax",
    "Sigmoid",
    "Softmax",
    "Softmax2d",
    "Softmin",
    "Softsign",
    "Tanh",
    "Tanhshrink",
]


class Tanh(Activation):
    """The hyperbolic tangent (exp(x) - exp(-x)) / (exp(x) + exp(-x)), elementwise, between -1 and 1.

    >>> import cygrad
    >>> cygrad.nn.Tanh()(cygrad.tensor([0.0, 1.0]))
    tensor([0.0000, 0.7616])
    """

    def forward(self, input: Tensor) -> Tensor:
        """Apply to `input`, of any shape.

        >>> import cygrad
        >>> from cygrad import nn
        >>> nn.Tanh()(cygrad.tensor([0.0, 1.0]))
        tensor([0.0000, 0.7616])
        """
        return cygrad.tanh(input)


class Sigmoid(Activation):
    """1 / (1 + exp(-x)), elementwise, between 0 and 1.

    >>> import cygrad
    >>> cygrad.nn.Sigmoid()(cygrad.tensor([0.0, 1.0]))
    tensor([0.5000, 0.7311])
    """

    def forward(self, input: Tensor) -> Tensor:
        """Apply to `input`, of any shape.

        >>> import cygrad
        >>> from cygrad import nn
        >>> nn.Sigmoid()(cygrad.tensor([0.0, 1.0]))
        tensor([0.5000, 0.7311])
        """
        return cygrad.sigmoid(input)


class LogSigmoid(Activation):
    """log(1 / (1 + exp(-x))), elementwise, without overflow.

    >>> import cygrad
    >>> cygrad.nn.LogSigmoid()(cygrad.tensor([0.0, 1.0]))
    tensor([-0.6931, -0.3133])
    """

    _function = "logsigmoid"


class Softsign(Activation):
    """x / (1 + |x|), elementwise, between -1 and 1.

    >>> import cygrad
    >>> cygrad.nn.Softsign()(cygrad.tensor([-1.0, 3.0]))
    tensor([-0.5000,  0.7500])
    """

    _function = "softsign"


class Tanhshrink(Activation):
    """x - tanh(x), elementwise.

    >>> import cygrad
    >>> cygrad.nn.Tanhshrink()(cygrad.tensor([0.0, 1.0]))
    tensor([0.0000, 0.2384])
    """

    _function = "tanhshrink"


class GLU(Activation):
    """The gated linear unit a * sigmoid(b), where a and b are the halves of the input along `dim`.

    >>> import cygrad
    >>> cygrad.nn.GLU()(cygrad.tensor([1.0, 2.0, 0.0, 0.0]))
    tensor([0.5000, 1.0000])
    """

    _function = "glu"
    _settings = ("dim",)

    def __init__(self, dim: int = -1) -> None:
        super().__init__()
        self.dim = dim


class _AlongDimension(Activation):
    """A function that normalizes along one dimension."""

    _settings = ("dim",)

    def __init__(self, dim: int | None = None) -> None:
        super().__init__()
        self.dim = dim


class Softmax(_AlongDimension):
    """exp(x) / sum(exp(x)) along `dim`: positive numbers that add up to 1.

    >>> import cygrad
    >>> cygrad.nn.Softmax(dim=1)(cygrad.zeros(1, 4))
    tensor([[0.2500, 0.2500, 0.2500, 0.2500]])
    """

    _function = "softmax"


class Softmin(_AlongDimension):
    """exp(-x) / sum(exp(-x)) along `dim`: the softmax of -x.

    >>> import cygrad
    >>> cygrad.nn.Softmin(dim=0)(cygrad.tensor([0.0, 1.0]))
    tensor([0.7311, 0.2689])
    """

    _function = "softmin"


class LogSoftmax(_AlongDimension):
    """x - log(sum(exp(x))) along `dim`: the logarithm of the softmax, without overflow.

    >>> import cygrad
    >>> cygrad.nn.LogSoftmax(dim=0)(cygrad.zeros(2))
    tensor([-0.6931, -0.6931])
    """

    _function = "log_softmax"


class Softmax2d(Module):
    """Softmax over the channels of images of shape (N, C, H, W) or (C, H, W), at each pixel.

    exp(x[c]) / (sum over channels k of exp(x[k])).

    >>> import cygrad
    >>> cygrad.nn.Softmax2d()(cygrad.zeros(4, 1, 2))[0]
    tensor([[0.2500, 0.2500]])
    """

    def forward(self, input: Tensor) -> Tensor:
        """Apply to `input` of 3 or 4 dimensions; raise ValueError otherwise.

        >>> import cygrad
        >>> from cygrad import nn
        >>> nn.Softmax2d()(cygrad.zeros(2, 1, 1)).flatten()
        tensor([0.5000, 0.5000])
        """
        if input.dim() not in (3, 4):
            raise ValueError(f"Softmax2d: expected input to be 3D or 4D, got {input.dim()}D instead")
        return F.softmax(input, -3)
