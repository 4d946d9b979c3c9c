"""Layer sizes given as one number or as one per dimension."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

__all__ = ["repeated"]


def repeated(value: Any, count: int) -> tuple[Any, ...]:
    """Return `value` as a tuple: the values themselves if it is a sequence, else `value` repeated `count` times."""
    return tuple(value) if isinstance(value, Sequence) else (value,) * count
