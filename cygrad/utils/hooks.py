"""Hook registration."""

from __future__ import annotations

from typing import Any

from cygrad._core.types.hook_handles import HookDict, RemovableHandle, warn_if_has_hooks

__all__ = ["HookDict", "RemovableHandle", "add_hook", "warn_if_has_hooks"]


def add_hook(hooks: HookDict, hook: Any, prepend: bool = False) -> RemovableHandle:
    """Add a hook after the existing ones, or with `prepend` before them.

    >>> from cygrad.utils.hooks import HookDict, add_hook
    >>> hooks = HookDict()
    >>> first, second = add_hook(hooks, len), add_hook(hooks, print, prepend=True)
    >>> [hook.__name__ for hook in hooks.values()]
    ['print', 'len']
    """
    earlier = list(hooks.items()) if prepend else []
    handle = RemovableHandle.add(hooks, hook)
    for number, other in earlier:  # move the earlier ones behind the new one
        del hooks[number]
        hooks[number] = other
    return handle
