"""Base classes of passes."""

from importlib import import_module
from typing import Any

# Imported at their first use. PyTorch imports them with the package.
_MODULES = ("pass_base", "pass_manager")


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name)
    return import_module(f"{__name__}.{name}")
