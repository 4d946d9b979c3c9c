"""Passes: functions that look at the nodes of a graph or change them."""

from importlib import import_module
from typing import Any

# Imported at their first use. PyTorch imports them with the package.
_MODULES = """
    graph_drawer graph_manipulation infra operator_support shape_prop split_module split_utils tools_common utils
""".split()


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name)
    return import_module(f"{__name__}.{name}")
