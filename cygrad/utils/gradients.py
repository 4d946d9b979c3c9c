"""Gradient handling shared by modules and optimizers."""

from __future__ import annotations

from cygrad import Tensor


def clear_grad(tensor: Tensor, set_to_none: bool) -> None:
    """Set the gradient of `tensor` to None, or fill it with zeros in place.

    >>> import cygrad
    >>> from cygrad.utils.gradients import clear_grad
    >>> x = cygrad.ones(2, requires_grad=True)
    >>> x.sum().backward()
    >>> clear_grad(x, set_to_none=False)
    >>> x.grad
    tensor([0., 0.])
    """
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
