"""The names of PyTorch's `torch._C` that classes and modes with `__torch_function__` use."""

from cygrad._core.registry.torch_function import DisableTorchFunction, DisableTorchFunctionSubclass
from cygrad._core.registry.torch_function import disabled as _disabled_torch_function_impl
from cygrad.overrides._modes import _is_torch_function_mode_enabled, _len_torch_function_stack

__all__ = [
    "DisableTorchFunction",
    "DisableTorchFunctionSubclass",
    "_disabled_torch_function_impl",
    "_is_torch_function_mode_enabled",
    "_len_torch_function_stack",
]
