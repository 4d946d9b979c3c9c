"""Tensors of other libraries, taken in without importing those libraries."""

from __future__ import annotations

from typing import Any

import numpy as np

import cygrad
from cygrad import Tensor

__all__ = ["as_tensor", "is_tensor_like"]


def is_tensor_like(value: Any) -> bool:
    """Whether state dicts may hold this as a tensor: ours and PyTorch's may be, arrays not, as in PyTorch."""
    return isinstance(value, Tensor) or hasattr(type(value), "__torch_function__")


def as_tensor(value: Any) -> Tensor:
    """A tensor with the elements of `value`: a tensor itself, or any library's tensor or array.

    Shares memory where the other library lets it. Tensors with a history are detached.

    >>> import numpy
    >>> from cygrad.utils.interop import as_tensor
    >>> as_tensor(numpy.arange(3.0))
    tensor([0., 1., 2.], dtype=torch.float64)
    """
    if isinstance(value, Tensor):
        return value
    if hasattr(value, "detach"):
        value = value.detach()
    return cygrad.from_numpy(np.asarray(value))
