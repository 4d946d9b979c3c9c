"""Finds and removes hooks that recompute a tensor of a module before each `forward`."""

from __future__ import annotations

from typing import Any


def hook_on(module: Any, kind: type, name: str) -> tuple[int, Any] | None:
    """Return (number, hook) of the hook of class `kind` that computes the tensor `name`, or None."""
    for number, hook in module._forward_pre_hooks.items():
        if isinstance(hook, kind) and hook.name == name:  # type: ignore[attr-defined]
            return number, hook
    return None


def take_hook(module: Any, kind: type, name: str, what: str) -> Any:
    """Remove this hook from the module and return it; raise `ValueError` if there is none."""
    found = hook_on(module, kind, name)
    if found is None:
        raise ValueError(f"{what} of '{name}' not found in {module}")
    number, hook = found
    del module._forward_pre_hooks[number]
    return hook
