"""Dropout layers."""

from __future__ import annotations

from cygrad.nn.modules._function_module import UnaryFunctionModule

__all__ = ["AlphaDropout", "Dropout", "Dropout1d", "Dropout2d", "Dropout3d", "FeatureAlphaDropout"]


class _DropoutNd(UnaryFunctionModule):
    """Base of all dropout layers."""

    _settings: tuple[str, ...] = ("p", "training", "inplace")

    def __init__(self, p: float = 0.5, inplace: bool = False) -> None:
        super().__init__()
        if p < 0 or p > 1:
            raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")
        self.p = p
        self.inplace = inplace

    def extra_repr(self) -> str:
        """Return the probability and whether the layer works in place."""
        return f"p={self.p}, inplace={self.inplace}"


class Dropout(_DropoutNd):
    """Zeroes each element with probability `p` during training and scales the others by 1/(1-p).

    The result is mask * x / (1 - p), where each element of the mask is 1 with probability 1 - p, else 0.

    The identity in evaluation mode. Raises `ValueError` unless 0 <= p <= 1.

    >>> import cygrad
    >>> layer = cygrad.nn.Dropout(0.5)
    >>> sorted(set(layer(cygrad.ones(1000)).tolist()))
    [0.0, 2.0]
    >>> layer.eval()(cygrad.ones(3))
    tensor([1., 1., 1.])
    """

    _function = "dropout"


class Dropout1d(_DropoutNd):
    """`Dropout` of whole channels of sequences, (N, C, L) or (C, L).

    >>> import cygrad
    >>> cygrad.nn.Dropout1d(1.0)(cygrad.ones(1, 2, 3))
    tensor([[[0., 0., 0.],
             [0., 0., 0.]]])
    """

    _function = "dropout1d"


class Dropout2d(_DropoutNd):
    """`Dropout` of whole channels of images, (N, C, H, W).

    >>> import cygrad
    >>> cygrad.nn.Dropout2d(1.0)(cygrad.ones(1, 1, 1, 3))
    tensor([[[[0., 0., 0.]]]])
    """

    _function = "dropout2d"


class Dropout3d(_DropoutNd):
    """`Dropout` of whole channels of volumes, (N, C, D, H, W) or (C, D, H, W).

    >>> import cygrad
    >>> cygrad.nn.Dropout3d(1.0)(cygrad.ones(1, 1, 1, 1, 3))
    tensor([[[[[0., 0., 0.]]]]])
    """

    _function = "dropout3d"


class _AlphaDropout(_DropoutNd):
    # Never in place, as in PyTorch, although `inplace` is accepted.
    _settings: tuple[str, ...] = ("p", "training")


class AlphaDropout(_AlphaDropout):
    """Dropout that preserves mean 0 and variance 1: dropped elements become SELU's lower bound, then all are rescaled.

    a x + b for kept elements, a c + b for dropped ones, with c = -1.7581, a = ((1 - p) (1 + p c^2))^(-1/2), b = -a c p.

    >>> import cygrad
    >>> cygrad.nn.AlphaDropout(0.5).eval()(cygrad.ones(3))
    tensor([1., 1., 1.])
    """

    _function = "alpha_dropout"


class FeatureAlphaDropout(_AlphaDropout):
    """`AlphaDropout` of whole channels (slices along the first two dimensions).

    >>> import cygrad
    >>> cygrad.nn.FeatureAlphaDropout(0.5).eval()(cygrad.ones(1, 1, 3))
    tensor([[[1., 1., 1.]]])
    """

    _function = "feature_alpha_dropout"
