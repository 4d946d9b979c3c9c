"""Functions that make a tuple of one number or of one for each dimension, in PyTorch's place.

>>> from cygrad.nn.modules.utils import _pair
>>> _pair(3), _pair([1, 2])
((3, 3), (1, 2))
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any


def _ntuple(n: int, name: str = "parse") -> Callable[[Any], tuple[Any, ...]]:
    """A function that gives what it gets n times in a tuple, or, if that has elements, these."""

    def parse(x: Any) -> tuple[Any, ...]:
        return tuple(x) if isinstance(x, Iterable) else (x,) * n

    parse.__name__ = name
    return parse


_single, _pair = _ntuple(1, "_single"), _ntuple(2, "_pair")
_triple, _quadruple = _ntuple(3, "_triple"), _ntuple(4, "_quadruple")
