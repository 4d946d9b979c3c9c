"""Helpers for programs with several modes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

from cygrad.utils._python_dispatch import _disable_current_modes

T = TypeVar("T")

no_dispatch = _disable_current_modes


def all_same_mode(modes: Sequence[Any]) -> bool:
    """Whether these modes are all equal."""
    return all(mode == modes[0] for mode in modes)
