"""The names of PyTorch's `torch._C` that classes with `__torch_function__`, and programs that read files, use."""

from typing import Any

from cygrad._core.registry.torch_function import DisableTorchFunctionSubclass

__all__ = ["DisableTorchFunctionSubclass"]


def __getattr__(name: str) -> Any:
    if name in ("PyTorchFileReader", "PyTorchFileWriter"):
        from cygrad import serialization  # needed only for these

        return getattr(serialization, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name)
