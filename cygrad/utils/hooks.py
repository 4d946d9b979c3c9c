"""Hook registration."""

from __future__ import annotations

from typing import Any

from cygrad._core.types.hook_handles import HookDict, RemovableHandle, warn_if_has_hooks

__all__ = ["HookDict", "RemovableHandle", "add_hook", "unserializable_hook", "warn_if_has_hooks"]


def unserializable_hook(f: Any) -> Any:
    """Mark a hook as one that pickles may leave out: `warn_if_has_hooks` does not warn of it.

    >>> import cygrad
    >>> from cygrad.utils.hooks import unserializable_hook, warn_if_has_hooks
    >>> @unserializable_hook
    ... def double(grad):
    ...     return grad * 2
    >>> x = cygrad.ones(2, requires_grad=True)
    >>> handle = x.register_hook(double)
    >>> warn_if_has_hooks(x)
    """
    f.__torch_unserializable__ = True
    return f


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
