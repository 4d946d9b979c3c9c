"""Functions that make a tuple of one number or of one for each dimension, and names without a prefix.

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


def consume_prefix_in_state_dict_if_present(state_dict: dict[str, Any], prefix: str) -> None:
    """Take a prefix off the names of a state dict, in place: `"module."`, which `DataParallel` puts before them.

    >>> from cygrad.nn.modules.utils import consume_prefix_in_state_dict_if_present
    >>> state = {"module.weight": 1}
    >>> consume_prefix_in_state_dict_if_present(state, "module.")
    >>> state
    {'weight': 1}
    """
    metadata = getattr(state_dict, "_metadata", {})
    for names, ending in ((state_dict, prefix), (metadata, prefix.rstrip("."))):
        for name in [name for name in names if name and name.startswith(ending)]:
            names[name[len(prefix) :]] = names.pop(name)
