"""Attributes with dotted names, such as `layers.0.weight`: what nodes refer to."""

from collections.abc import Callable
from typing import Any


def follow(obj: Any, target: str, has: Callable[[Any, str], bool] = hasattr) -> tuple[Any, list[str]]:
    """Follow a dotted name as far as it leads. Return the last object found, and the parts of the name not found."""
    parts = target.split(".")
    for i, part in enumerate(parts):
        if not has(obj, part):
            return obj, parts[i:]
        obj = getattr(obj, part)
    return obj, []


def found_or_none(obj: Any, target: str) -> Any:
    """Return the attribute with a dotted name, or None if there is none."""
    found, missing = follow(obj, target)
    return None if missing else found
