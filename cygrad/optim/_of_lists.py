"""Optimizers as functions of lists: of parameters, gradients and each part of the state, all updated in place."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

from cygrad import Tensor
from cygrad.optim.optimizer import Optimizer

__all__ = ["of_lists", "step_of_lists"]

_UNUSED = ("has_complex", "has_sparse_grad")  # what only PyTorch has to be told
_PAIRS = {
    "betas": ("beta1", "beta2"),
    "etas": ("etaminus", "etaplus"),
    "step_sizes": ("step_size_min", "step_size_max"),
}


def of_lists(
    kind: type[Optimizer], name: str, lists: dict[str, str], flags: dict[str, Any], options: Sequence[str]
) -> Callable[..., None]:
    """Return the step of an optimizer as PyTorch's function of this name.

    Its arguments are `params`, `grads`, the `lists` of the state (each with the name of its entries in the state of a
    parameter), `flags` with their defaults, and `options`, which have none and are passed by name. Gradients are
    divided by `grad_scale`, and with a `found_inf` of 1 nothing is updated.
    """
    parameters = [inspect.Parameter(each, inspect.Parameter.POSITIONAL_OR_KEYWORD) for each in ("params", "grads")]
    parameters += [inspect.Parameter(each, inspect.Parameter.POSITIONAL_OR_KEYWORD) for each in lists]
    parameters += [
        inspect.Parameter(flag, inspect.Parameter.POSITIONAL_OR_KEYWORD, default=value) for flag, value in flags.items()
    ]
    parameters += [inspect.Parameter(each, inspect.Parameter.KEYWORD_ONLY) for each in options]
    signature = inspect.Signature(parameters, return_annotation=None)

    def function(*args: Any, **kwargs: Any) -> None:
        bound = signature.bind(*args, **kwargs)
        bound.apply_defaults()
        given = bound.arguments
        params, grads = given.pop("params"), given.pop("grads")
        states = {entry: given.pop(each) for each, entry in lists.items()}
        if not all(isinstance(step, Tensor) for step in states.get("step", ())):
            raise RuntimeError("API has changed, `state_steps` argument must contain a list of singleton tensors")
        if _unscaled(grads, given.pop("grad_scale", None), given.pop("found_inf", None)):
            step_of_lists(kind, params, grads, states, _as_of_class(given))

    function.__name__ = function.__qualname__ = name
    function.__module__ = kind.__module__
    function.__signature__ = signature  # type: ignore[attr-defined]
    function.__doc__ = (
        f"Update `params` by `grads` in place, as a step of `{kind.__name__}` does; so are the lists of its state."
    )
    return function


def _unscaled(grads: list[Tensor], scale: Tensor | None, found_inf: Tensor | None) -> bool:
    """Divide the gradients by the scale of a `GradScaler`, in place; False if it has found infinite ones."""
    if found_inf is not None and found_inf.item():
        return False
    if scale is not None:
        for grad in grads:
            grad.div_(scale)
    return True


def _as_of_class(given: dict[str, Any]) -> dict[str, Any]:
    """Convert arguments of a function to those of the class."""
    options = {key: value for key, value in given.items() if key not in _UNUSED}
    for pair, (first, second) in _PAIRS.items():
        if first in options:
            options[pair] = (options.pop(first), options.pop(second))
    return options


def step_of_lists(
    kind: type[Optimizer], params: list[Tensor], grads: list[Tensor], states: dict[str, list[Any]], options: Any
) -> None:
    """Let an optimizer of the class, made for this purpose, update the tensors."""
    is_recorded = bool(options.get("differentiable"))
    updated = params if is_recorded else [param.detach() for param in params]  # which share memory with them
    if not updated:
        return
    optimizer = kind(updated, **options)
    before = [param.grad if param.is_leaf else None for param in updated]
    for i, (param, grad) in enumerate(zip(updated, grads, strict=True)):
        param.grad = grad
        own = {entry: values[i] for entry, values in states.items() if values and values[i] is not None}
        optimizer.state[param].update(own)
    try:
        optimizer.step()
    finally:
        for param, earlier in zip(updated, before, strict=True):
            param.grad = earlier
    for entry, values in states.items():
        for i, param in enumerate(updated[: len(values)]):
            values[i] = optimizer.state[param].get(entry, values[i])
