"""Checks of the options and gradients that optimizers are given, with PyTorch's errors."""

from __future__ import annotations

from typing import Any

import cygrad
from cygrad import Tensor


def check_learning_rate(lr: Any, may_be_nan: bool = False) -> None:
    """Raise `ValueError` unless this is a nonnegative number, or a tensor holding one."""
    if isinstance(lr, Tensor) and lr.numel() != 1:
        raise ValueError("Tensor lr must be 1-element")
    if lr < 0.0 if may_be_nan else not 0.0 <= lr:
        raise ValueError(f"Invalid learning rate: {lr}")


def check_implementation(foreach: bool | None, fused: bool | None, differentiable: bool) -> None:
    """Raise `RuntimeError` for mutually exclusive implementation options."""
    if fused and differentiable:
        raise RuntimeError("`fused` does not support `differentiable`")
    if fused and foreach:
        raise RuntimeError("`fused` and `foreach` cannot be `True` together.")


def check_not_negative(value: Any, what: str) -> None:
    """Raise `ValueError` if an option is negative."""
    if not value >= 0.0:
        raise ValueError(f"Invalid {what} value: {value}")


def check_betas(betas: Any) -> None:
    """Raise `ValueError` unless both are in [0, 1)."""
    for i, beta in enumerate((betas[0], betas[1])):
        if not 0.0 <= beta < 1.0:
            raise ValueError(f"Invalid beta parameter at index {i}: {beta}")


def refuse_sparse(grad: Tensor, name: str) -> None:
    """Raise RuntimeError if a gradient is sparse."""
    if grad.layout is not cygrad.strided:
        raise RuntimeError(f"{name} does not support sparse gradients")
