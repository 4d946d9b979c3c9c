"""Registering hooks."""

from __future__ import annotations

from typing import Any

from cygrad._core.graph.hook_handles import HookDict, RemovableHandle

__all__ = ["HookDict", "RemovableHandle", "add_hook"]


def add_hook(hooks: HookDict, hook: Any, prepend: bool = False) -> RemovableHandle:
    """Put a hook behind those that are there, or with `prepend` before them."""
    earlier = list(hooks.items()) if prepend else []
    handle = RemovableHandle.add(hooks, hook)
    for number, other in earlier:  # to the end, behind the new one
        del hooks[number]
        hooks[number] = other
    return handle
