"""The names of PyTorch's `torch._C` that classes with `__torch_function__` use."""

from cygrad._core.registry.torch_function import DisableTorchFunctionSubclass

__all__ = ["DisableTorchFunctionSubclass"]
