"""Tuple-making functions for per-dimension arguments, and prefix removal in state dicts.

>>> from cygrad.nn.modules.utils import _pair
>>> _pair(3), _pair([1, 2])
((3, 3), (1, 2))
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any


def _ntuple(n: int, name: str = "parse") -> Callable[[Any], tuple[Any, ...]]:
    """Return a function that repeats a value n times in a tuple, or converts an iterable to a tuple."""

    def parse(x: Any) -> tuple[Any, ...]:
        return tuple(x) if isinstance(x, Iterable) else (x,) * n

    parse.__name__ = name
    return parse


_single, _pair = _ntuple(1, "_single"), _ntuple(2, "_pair")
_triple, _quadruple = _ntuple(3, "_triple"), _ntuple(4, "_quadruple")


def _reverse_repeat_tuple(t: Iterable[Any], n: int) -> tuple[Any, ...]:
    """Return the values in reverse order, each n times: paddings of convolutions as `pad` takes them.

    >>> from cygrad.nn.modules.utils import _reverse_repeat_tuple
    >>> _reverse_repeat_tuple((1, 2), 2)
    (2, 2, 1, 1)
    """
    return tuple(x for x in reversed(tuple(t)) for _ in range(n))


def _list_with_default(out_size: list[int | None], defaults: list[int]) -> list[int]:
    """Return sizes, where None means the default for the same of the last dimensions.

    >>> from cygrad.nn.modules.utils import _list_with_default
    >>> _list_with_default([None, 3], [1, 7, 5])
    [7, 3]
    """
    if isinstance(out_size, int):
        return out_size
    if len(defaults) <= len(out_size):
        raise ValueError(f"Input dimension should be at least {len(out_size) + 1}")
    return [d if n is None else n for n, d in zip(out_size, defaults[-len(out_size) :], strict=True)]


def consume_prefix_in_state_dict_if_present(state_dict: dict[str, Any], prefix: str) -> None:
    """Strip a prefix from the names of a state dict, in place, such as the `"module."` added by `DataParallel`.

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
