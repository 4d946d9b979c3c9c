"""Conversion between the parameters of a model and a single vector."""

from __future__ import annotations

from collections.abc import Iterable

import cygrad
from cygrad import Tensor
from cygrad.utils import typename

__all__ = ["parameters_to_vector", "vector_to_parameters"]


def parameters_to_vector(parameters: Iterable[Tensor]) -> Tensor:
    """Concatenate the elements of all parameters into one vector, recorded for autograd.

    >>> import cygrad
    >>> layer = cygrad.nn.Linear(2, 3)
    >>> cygrad.nn.utils.parameters_to_vector(layer.parameters()).shape
    torch.Size([9])
    """
    return cygrad.cat([parameter.reshape(-1) for parameter in parameters])


def vector_to_parameters(vec: Tensor, parameters: Iterable[Tensor]) -> None:
    """Make the parameters views of consecutive slices of `vec`, sharing its memory.

    Raises `TypeError` unless `vec` is a tensor, `RuntimeError` if it is too short; excess elements are ignored.

    >>> import cygrad
    >>> layer = cygrad.nn.Linear(2, 1)
    >>> cygrad.nn.utils.vector_to_parameters(cygrad.tensor([1.0, 2.0, 3.0]), layer.parameters())
    >>> layer.bias
    Parameter containing:
    tensor([3.], requires_grad=True)
    """
    if not isinstance(vec, Tensor):
        raise TypeError(f"expected torch.Tensor, but got: {typename(vec)}")
    start = 0
    pieces = []
    for parameter in parameters:
        piece = vec[start : start + parameter.numel()]
        pieces.append((parameter, piece.view_as(parameter)))
        start += parameter.numel()
    for parameter, piece in pieces:
        parameter.data = piece.data
