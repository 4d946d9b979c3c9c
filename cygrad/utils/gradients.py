"""What modules and optimizers both do to gradients."""

from __future__ import annotations

from cygrad import Tensor


def clear_grad(tensor: Tensor, set_to_none: bool) -> None:
    """Drop the gradient of `tensor`, or keep it as the same object and fill it with zeros."""
    grad = tensor.grad
    if grad is None:
        return
    if set_to_none:
        tensor.grad = None
        return
    if grad.grad_fn is not None:
        grad.detach_()
    else:
        grad.requires_grad_(False)
    grad.zero_()
