"""Ranges of integers: what the lengths of an exported program may be."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

__all__ = ["ValueRanges", "int_oo"]


class _Infinity(float):
    """A bound above all integers."""

    def __repr__(self) -> str:
        return "int_oo"

    __str__ = __repr__


int_oo = _Infinity("inf")


@dataclass(frozen=True)
class ValueRanges:
    """The numbers from `lower` to `upper`, both inclusive.

    >>> from cygrad.utils._sympy.value_ranges import ValueRanges, int_oo
    >>> ValueRanges(2, int_oo), 1 in ValueRanges(2, int_oo)
    (VR[2, int_oo], False)
    """

    lower: Any
    upper: Any

    def __contains__(self, value: Any) -> bool:
        return bool(self.lower <= value <= self.upper)

    def __repr__(self) -> str:
        return f"VR[{self.lower}, {self.upper}]"

    @property
    def is_int(self) -> bool:
        """Whether these are integers: always."""
        return True

    def is_singleton(self) -> bool:
        """Whether there is one number only."""
        return bool(self.lower == self.upper)
