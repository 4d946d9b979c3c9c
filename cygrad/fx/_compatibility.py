"""The decorator by which PyTorch marks functions whose behavior it will not change."""

from collections.abc import Callable
from typing import TypeVar

_T = TypeVar("_T")
# What PyTorch enters here is listed: what has been decorated, and what of it stays as it is.
_BACK_COMPAT_OBJECTS: dict[object, None] = {}
_MARKED_WITH_COMPATIBILITY: dict[object, None] = {}


def compatibility(is_backward_compatible: bool) -> Callable[[_T], _T]:
    """Return a decorator that leaves a function as it is, and notes it."""

    def decorator(function: _T) -> _T:
        _MARKED_WITH_COMPATIBILITY[function] = None
        if is_backward_compatible:
            _BACK_COMPAT_OBJECTS[function] = None
        return function

    return decorator
