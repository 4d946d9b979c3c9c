"""Hooks that compute a module's tensor anew before each `forward`: how one finds them."""

from __future__ import annotations

from typing import Any


def hook_on(module: Any, kind: type, name: str) -> tuple[int, Any] | None:
    """Number and hook of the one of class `kind` that computes the tensor of this name, if there is one."""
    for number, hook in module._forward_pre_hooks.items():
        if isinstance(hook, kind) and hook.name == name:  # type: ignore[attr-defined]
            return number, hook
    return None


def take_hook(module: Any, kind: type, name: str, what: str) -> Any:
    """Remove this hook from the module, and return it; `ValueError` if there is none."""
    found = hook_on(module, kind, name)
    if found is None:
        raise ValueError(f"{what} of '{name}' not found in {module}")
    number, hook = found
    del module._forward_pre_hooks[number]
    return hook
