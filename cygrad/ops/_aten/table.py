"""The table of the functions of `torch.ops.aten` that have no public name, or other arguments than the public one.

It is a file of its own because all the others fill it.
"""

from collections.abc import Callable
from typing import Any, TypeVar

_F = TypeVar("_F", bound=Callable[..., Any])

own: dict[str, Any] = {}


def aten(function: _F) -> _F:
    """Put a function into the table under its name. The package shows it, so that it is pickled by that name."""
    own[function.__name__] = function
    function.__module__ = "cygrad.ops._aten"
    return function
