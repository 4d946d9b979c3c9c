"""Tools that PyTorch calls experimental."""

from importlib import import_module
from typing import Any

# Imported at their first use. PyTorch imports them with the package.
_MODULES = ("const_fold", "proxy_tensor")


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name)
    return import_module(f"{__name__}.{name}")
