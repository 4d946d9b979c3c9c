"""Sizes that a layer takes as one number or as one for each dimension."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

__all__ = ["repeated"]


def repeated(value: Any, count: int) -> tuple[Any, ...]:
    """`value` as a tuple: itself if it is a sequence, else `count` times."""
    return tuple(value) if isinstance(value, Sequence) else (value,) * count
