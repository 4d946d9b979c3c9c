"""Gradients of each sample of a batch by itself, which `backward` leaves in `grad_sample` of the parameters."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import cygrad
from cygrad import Tensor
from cygrad.nn.modules.module import Module
from cygrad.nn.utils.stateless import call_with

__all__ = ["call_for_per_sample_grads"]


def call_for_per_sample_grads(
    module: Module, *, batch_size: int | None = None, loss_reduction: str = "sum", batch_first: bool = True
) -> Callable:
    """Return a function that calls a module; after `backward` of its result, each parameter that requires grad has
    `grad_sample`, the gradients of the samples, which adds up over calls.

    `loss_reduction` is that of the loss: with "mean", gradients are multiplied by the size of the batch.

    >>> import cygrad
    >>> from cygrad.nn.utils._per_sample_grad import call_for_per_sample_grads
    >>> layer, x = cygrad.nn.Linear(2, 1), cygrad.tensor([[1.0, 2.0], [3.0, 4.0]])
    >>> call_for_per_sample_grads(layer)(x).sum().backward()
    >>> layer.weight.grad_sample.tolist()
    [[[1.0, 2.0]], [[3.0, 4.0]]]
    """
    if loss_reduction not in ("sum", "mean"):
        raise RuntimeError(f"Expected loss_reduction argument to be sum or mean, got {loss_reduction}")
    if not isinstance(module, Module):
        raise RuntimeError(f"Module passed must be nn.Module, got {type(module).__name__}")
    if not (batch_size is None or isinstance(batch_size, int)):
        raise RuntimeError(f"Batch size passed must be None or an integer, got {type(batch_size).__name__}")
    if batch_size is not None and batch_size < 1:
        raise RuntimeError(f"Batch size must be positive, got {batch_size}")
    axis = 0 if batch_first else 1

    @functools.wraps(module.forward)
    def call(*args: Any, **kwargs: Any) -> Any:
        size = batch_size or _size_of((*args, *kwargs.values()), axis)
        weights = {name: p for name, p in module.named_parameters() if p.requires_grad}
        copies = {name: p.detach().expand(size, *p.shape).clone().requires_grad_() for name, p in weights.items()}

        def leave(grad: Tensor, weight: Any) -> None:
            own = grad * size if loss_reduction == "mean" else grad
            former = getattr(weight, "grad_sample", None)
            weight.grad_sample = own if former is None else former + own

        for name, copy in copies.items():
            copy.register_post_accumulate_grad_hook(lambda c, weight=weights[name]: leave(c.grad, weight))

        def of_sample(own: dict[str, Tensor], args: tuple, kwargs: dict) -> Any:
            single = [_as_batch(value, axis) for value in args]
            named = {key: _as_batch(value, axis) for key, value in kwargs.items()}
            return call_with(module, own, tuple(single), named).squeeze(axis)

        places = tuple(axis if isinstance(value, Tensor) else None for value in args)
        named_places = {key: axis if isinstance(value, Tensor) else None for key, value in kwargs.items()}
        mapped = cygrad.func.vmap(of_sample, in_dims=(0, places, named_places), out_dims=axis, randomness="different")
        return mapped(copies, args, kwargs)

    return call


def _as_batch(value: Any, axis: int) -> Any:
    """Return a sample as a batch of one."""
    return value.unsqueeze(axis) if isinstance(value, Tensor) else value


def _size_of(values: tuple, axis: int) -> int:
    """Return the size of the batch. Raises RuntimeError if tensors disagree, or if there are none."""
    sizes = {value.shape[axis] for value in values if isinstance(value, Tensor)}
    if len(sizes) > 1:
        raise RuntimeError(
            "When computing batch size, found at least one input with one batch size and one with a different: "
            f"{sorted(sizes)}"
        )
    if not sizes:
        raise RuntimeError(
            "Unable to find a tensor in the passed args and kwargs. They may not be pytree-able and so ExpandedWeights "
            "cannot compute the batch size from the inputs. Please specify it explicitly"
        )
    return sizes.pop()
