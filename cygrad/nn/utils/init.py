"""Creates modules with uninitialized parameters, for loading a checkpoint."""

from __future__ import annotations

import inspect
from typing import Any

from cygrad.nn.modules.module import Module

__all__ = ["skip_init"]


def skip_init(module_cls: type[Module], *args: Any, **kwargs: Any) -> Any:
    """Create a module of this class with uninitialized parameters and buffers; no random numbers are drawn.

    The class must accept `device`, as PyTorch's do (`RuntimeError` otherwise).

    >>> import cygrad
    >>> cygrad.nn.utils.skip_init(cygrad.nn.Linear, 2, 3)
    Linear(in_features=2, out_features=3, bias=True)
    """
    if not issubclass(module_cls, Module):
        raise RuntimeError(f"Expected a Module; got {module_cls}")
    if "device" not in inspect.signature(module_cls).parameters:
        raise RuntimeError("Module must support a 'device' arg to skip initialization")
    device = kwargs.pop("device", None) or "cpu"
    return module_cls(*args, device="meta", **kwargs).to_empty(device=device)
