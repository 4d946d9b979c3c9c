"""Ops that make shapes part of an exported graph."""

from __future__ import annotations

from typing import Any

import cygrad
from cygrad import Tensor

__all__ = ["reshape_from_tensor_shape", "shape_as_tensor"]


def shape_as_tensor(x: Tensor) -> Tensor:
    """Return the shape of a tensor as an int64 tensor.

    >>> import cygrad
    >>> cygrad.onnx.operators.shape_as_tensor(cygrad.zeros(2, 3))
    tensor([2, 3])
    """
    return cygrad.tensor(list(x.shape), dtype=cygrad.int64)


def reshape_from_tensor_shape(x: Tensor, shape: Any) -> Tensor:
    """Return a tensor in the shape given by an integer tensor.

    >>> import cygrad
    >>> cygrad.onnx.operators.reshape_from_tensor_shape(cygrad.zeros(4), cygrad.tensor([2, 2])).shape
    torch.Size([2, 2])
    """
    return x.reshape(shape.tolist())
