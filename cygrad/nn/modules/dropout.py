"""Dropout layers."""

from __future__ import annotations

from cygrad import Tensor
from cygrad.nn import functional as F
from cygrad.nn.modules.module import Module

__all__ = ["AlphaDropout", "Dropout", "Dropout1d", "Dropout2d", "Dropout3d", "FeatureAlphaDropout"]


class _Dropout(Module):
    """What all dropout layers share; `function` names the one of `cygrad.nn.functional` that they call."""

    function = ""

    def __init__(self, p: float = 0.5, inplace: bool = False) -> None:
        super().__init__()
        if p < 0 or p > 1:
            raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")
        self.p = p
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        """Drop in training, return `input` in evaluation."""
        return getattr(F, self.function)(input, self.p, self.training, self.inplace)

    def extra_repr(self) -> str:
        """The probability, and whether the input is overwritten."""
        return f"p={self.p}, inplace={self.inplace}"


class Dropout(_Dropout):
    """In training, zeroes each element with probability `p` and scales the others by 1/(1-p).

    In evaluation it returns its input. Raises `ValueError` unless 0 <= p <= 1.

    >>> import cygrad
    >>> layer = cygrad.nn.Dropout(0.5)
    >>> sorted(set(layer(cygrad.ones(1000)).tolist()))
    [0.0, 2.0]
    >>> layer.eval()(cygrad.ones(3))
    tensor([1., 1., 1.])
    """

    function = "dropout"


class Dropout1d(_Dropout):
    """`Dropout` of whole channels of sequences, (N, C, L) or (C, L).

    >>> import cygrad
    >>> cygrad.nn.Dropout1d(1.0)(cygrad.ones(1, 2, 3))
    tensor([[[0., 0., 0.],
             [0., 0., 0.]]])
    """

    function = "dropout1d"


class Dropout2d(_Dropout):
    """`Dropout` of whole channels of images, (N, C, H, W).

    >>> import cygrad
    >>> cygrad.nn.Dropout2d(1.0)(cygrad.ones(1, 1, 1, 3))
    tensor([[[[0., 0., 0.]]]])
    """

    function = "dropout2d"


class Dropout3d(_Dropout):
    """`Dropout` of whole channels of volumes, (N, C, D, H, W) or (C, D, H, W).

    >>> import cygrad
    >>> cygrad.nn.Dropout3d(1.0)(cygrad.ones(1, 1, 1, 1, 3))
    tensor([[[[[0., 0., 0.]]]]])
    """

    function = "dropout3d"


class _AlphaDropout(_Dropout):
    def forward(self, input: Tensor) -> Tensor:
        """Drop in training, return `input` in evaluation; never in place, as in PyTorch."""
        return getattr(F, self.function)(input, self.p, self.training)


class AlphaDropout(_AlphaDropout):
    """Dropout that keeps mean 0 and variance 1: dropped elements become SELU's lowest value, all are rescaled.

    >>> import cygrad
    >>> cygrad.nn.AlphaDropout(0.5).eval()(cygrad.ones(3))
    tensor([1., 1., 1.])
    """

    function = "alpha_dropout"


class FeatureAlphaDropout(_AlphaDropout):
    """`AlphaDropout` of whole channels, the first two dimensions.

    >>> import cygrad
    >>> cygrad.nn.FeatureAlphaDropout(0.5).eval()(cygrad.ones(1, 1, 3))
    tensor([[[1., 1., 1.]]])
    """

    function = "feature_alpha_dropout"
