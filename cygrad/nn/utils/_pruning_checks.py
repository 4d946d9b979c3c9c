"""What methods of pruning check and compute first; PyTorch's names, which methods of other libraries use."""

from __future__ import annotations

import math
import numbers
from typing import Any

import cygrad
from cygrad import Tensor


def _validate_pruning_amount_init(amount: Any) -> None:
    """Raise TypeError for what is no number, ValueError for one that is neither a count nor a share."""
    if not isinstance(amount, numbers.Real):
        raise TypeError(f"Invalid type for amount: {amount}. Must be int or float.")
    is_share = not isinstance(amount, numbers.Integral)
    if not 0 <= float(amount) <= (1 if is_share else math.inf):
        raise ValueError(f"amount={amount} should either be a float in the range [0, 1] or a non-negative integer")


def _validate_pruning_amount(amount: Any, tensor_size: int) -> None:
    """Raise ValueError for a count that is larger than the number of elements or slices."""
    if isinstance(amount, numbers.Integral) and int(amount) > tensor_size:
        raise ValueError(f"amount={amount} should be smaller than the number of parameters to prune={tensor_size}")


def _compute_nparams_toprune(amount: Any, tensor_size: int) -> int:
    """Return how many of the elements or slices an amount is."""
    return int(amount) if isinstance(amount, numbers.Integral) else round(amount * tensor_size)


def _validate_structured_pruning(t: Tensor) -> None:
    """Raise ValueError for a tensor without slices."""
    if t.ndim <= 1:
        raise ValueError(
            "Structured pruning can only be applied to multidimensional tensors. "
            f"Found tensor of shape {t.shape} with {t.ndim} dims"
        )


def _validate_pruning_dim(t: Tensor, dim: int) -> None:
    """Raise IndexError for a dimension that the tensor does not have."""
    if not -t.ndim <= dim < t.ndim:
        raise IndexError(f"Invalid index {dim} for tensor of size {t.shape}")


def _compute_norm(t: Tensor, n: Any, dim: int) -> Tensor:
    """Return the norm of order `n` of each slice along `dim`."""
    return cygrad.norm(t, p=n, dim=[d for d in range(t.ndim) if d != dim % t.ndim])
