"""Converts the parameters of a module in one of the three ways that `cygrad.__future__` offers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from cygrad import Tensor
from cygrad.__future__ import get_overwrite_module_params_on_conversion, get_swap_module_params_on_conversion
from cygrad.nn.parameter import Parameter
from cygrad.utils import swap_tensors


def convert(module: Any, name: str, parameter: Parameter, fn: Callable[[Tensor], Tensor]) -> None:
    """Give a parameter of a module, and its gradient, the data that `fn` returns for them."""
    if get_swap_module_params_on_conversion():
        _swap(f"{module._get_name()}.{name}", parameter, fn)
    elif get_overwrite_module_params_on_conversion():
        new = module._parameters[name] = Parameter(fn(parameter), parameter.requires_grad)
        if parameter.grad is not None:
            new.grad = fn(parameter.grad).requires_grad_(parameter.grad.requires_grad)
    else:
        _change(parameter, fn)


def _change(parameter: Parameter, fn: Callable[[Tensor], Tensor]) -> None:
    # `fn` gets the parameter itself, so that its version counter notices changes in place.
    grad, data = parameter.grad, fn(parameter)
    grad_data = None if grad is None else fn(grad)
    # The gradient must match the data at all times, so it is detached while the data changes.
    parameter.grad = None
    parameter.data = data
    if grad is not None and grad_data is not None:
        grad.data = grad_data
        parameter.grad = grad


def _swap(place: str, parameter: Parameter, fn: Callable[[Tensor], Tensor]) -> None:
    grad = parameter.grad
    new = Parameter(fn(parameter), parameter.requires_grad)
    new_grad = None if grad is None else fn(grad).requires_grad_(grad.requires_grad)
    parameter.grad = None
    try:
        swap_tensors(parameter, new)
    except RuntimeError as error:
        parameter.grad = grad
        raise RuntimeError(f"_apply(): Couldn't swap {place}") from error
    if grad is not None and new_grad is not None and new_grad is not grad:
        try:
            swap_tensors(grad, new_grad)
        except RuntimeError as error:
            raise RuntimeError(f"_apply(): Couldn't swap {place}.grad") from error
    parameter.grad = grad
