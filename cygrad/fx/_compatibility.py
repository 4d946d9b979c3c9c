"""The decorator by which PyTorch marks functions whose behavior it will not change."""

from collections.abc import Callable
from typing import TypeVar

_T = TypeVar("_T")


def compatibility(is_backward_compatible: bool) -> Callable[[_T], _T]:
    """Return a decorator that leaves a function as it is."""

    def decorator(function: _T) -> _T:
        return function

    return decorator
