"""Conversion of a module's parameters, as by `module.half()` or `module.to(device)`."""

from __future__ import annotations

from collections.abc import Callable

from cygrad import Tensor
from cygrad import __future__ as settings
from cygrad.nn.parameter import Parameter, is_lazy
from cygrad.utils import swap_tensors


def converted(parameter: Parameter, fn: Callable[[Tensor], Tensor]) -> Parameter:
    """Return the parameter with the results of `fn` as its data, and as the data of its gradient.

    It is another object only if `cygrad.__future__` asks for that, or if the layout is another one.
    """
    grad = parameter.grad
    data = fn(parameter)
    grad_data = None if grad is None else fn(grad)
    is_swapped = settings.get_swap_module_params_on_conversion()
    is_new = settings.get_overwrite_module_params_on_conversion() or data.layout is not parameter.layout
    if (is_swapped or is_new) and not is_lazy(parameter):
        made = Parameter(data, parameter.requires_grad)
        if grad is not None and grad_data is not None:
            made.grad = grad_data.requires_grad_(grad.requires_grad)
        if is_swapped:
            swap_tensors(parameter, made)
        return parameter if is_swapped else made
    parameter.grad = None  # it has to match the data at all times
    parameter.data = data
    if grad is not None and grad_data is not None:
        grad.data = grad_data
        parameter.grad = grad
    return parameter
