"""Functions of PyTorch's optimizers that optimizers of other packages use, too."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import cygrad
from cygrad import Tensor


def _use_grad_for_differentiable(func: Callable) -> Callable:
    """Decorate `step`: it records if the optimizer's `differentiable` is set, and does not otherwise."""

    @functools.wraps(func)
    def step(*args: Any, **kwargs: Any) -> Any:
        with cygrad.set_grad_enabled(bool(args[0].defaults["differentiable"])):
            return func(*args, **kwargs)

    return step


def _default_to_fused_or_foreach(
    params: list[Tensor], differentiable: bool, use_fused: bool = False
) -> tuple[bool, bool]:
    """Return whether PyTorch would choose its (fused, foreach) implementation: both are for tensors on a GPU."""
    if differentiable:
        return False, False
    on_gpu = all(p is None or (type(p) in (Tensor, cygrad.nn.Parameter) and p.is_cuda) for p in params)
    fused = use_fused and on_gpu and all(p is None or p.is_floating_point() for p in params)
    return fused, not fused and on_gpu


def _get_capturable_supported_devices(supports_xla: bool = True) -> list[str]:
    """Return the kinds of devices whose steps can be captured in graphs."""
    return ["cuda"]


def _get_value(x: Any) -> Any:
    """Return a number, or that in a tensor."""
    return x.item() if isinstance(x, Tensor) else x


def _view_as_real(params: list[Tensor], *states: list[Tensor]) -> None:
    """Replace complex parameters, and their states, by views of their real and imaginary parts, in the lists."""
    for i, p in enumerate(params):
        if cygrad.is_complex(p):
            params[i] = cygrad.view_as_real(p)
            for state in states:
                state[i] = cygrad.view_as_real(state[i])


def _disable_dynamo_if_unsupported(single_tensor_fn: Callable | None = None) -> Callable:
    """Decorate a function of an optimizer; nothing is compiled, so that nothing has to be left out."""
    return lambda function: function


def _stack_if_compiling(x: Any) -> Any:
    """Return a list of numbers as it is: nothing is compiled."""
    return x


def _get_scalar_dtype(is_fused: bool | None = None) -> cygrad.dtype:
    """Return the dtype of step counts."""
    is_double = cygrad.get_default_dtype() is cygrad.float64 and not is_fused
    return cygrad.float64 if is_double else cygrad.float32


def _to_scalar(x: Any) -> Any:
    """Return a tensor of one element without dimensions, and anything else as it is."""
    return x.squeeze() if isinstance(x, Tensor) and x.dim() else x


def _device_dtype_check_for_fused(p: Tensor, cuda_unsupported: bool = False) -> None:
    """Raise RuntimeError unless PyTorch's fused steps would take this parameter."""
    kinds = ["cpu"] if cuda_unsupported else ["cpu", "cuda"]
    if p.device.type not in kinds or not p.is_floating_point():
        raise RuntimeError(
            f"`fused=True` requires all the params to be floating point Tensors of supported devices: {kinds} but "
            f"{p.dtype} and {p.device.type}"
        )
