"""Numbers that a step returns: read from tensors by `item()`, `float()`, `int()` or `tolist()`, and not used otherwise.

Note [Returned numbers]
-----------------------
A replay cannot repeat what Python does with a number. But if a step only returns it, as in `return loss.item()`, the
tensor is one more result of the program, and the number is read from that after each replay. `flows.py` tells from the
instructions of the function whether it does nothing else with the number, and where in the returned value it stands.
"""

from __future__ import annotations

import builtins
import sys
from collections.abc import Callable
from types import CodeType, FrameType
from typing import Any

from cygrad._core.graph.internals import own_array
from cygrad._core.replay.returns.flows import Path, has_one_way_out, ways_out
from cygrad._core.tensor.scalar import collect_by

READERS: dict[str, Callable[[Any], Any]] = {
    "item": lambda tensor: tensor.item(),
    "float": lambda tensor: float(tensor.item()),
    "int": lambda tensor: int(tensor.item()),
    "tolist": lambda tensor: tensor.tolist(),
}
_METHODS = ("item", "tolist")


class Numbers:
    """The numbers of one call of a function; a block in which they are collected.

    `codes` are those of the function and of the functions around it that only call it, the outermost first; `root` is
    that of the caller.
    """

    def __init__(self, codes: tuple[CodeType, ...], root: CodeType) -> None:
        self._codes, self._root = codes, root
        self._found: list[tuple[Any, Any, str, frozenset[Path]]] = []

    def __enter__(self) -> Numbers:
        self._former = collect_by(self.collect)
        return self

    def __exit__(self, *error: object) -> None:
        collect_by(self._former)

    def collect(self, tensor: Any, reader: str) -> Any:
        """Return a number that the function will only return, in a tuple, or None for any other."""
        frame = sys._getframe(2 if reader == "tolist" else 1)  # that method is written in Python
        is_object = is_always_found(reader, tensor)
        ways = self._ways(frame, reader, not is_object)
        if ways is None or not is_object and not has_one_way_out(frame.f_code):
            return None
        former = collect_by(None)
        try:
            kept = tensor.detach().clone()
            value = _value_of(kept, reader)
        finally:
            collect_by(former)
        self._found.append((value, kept, reader, ways))
        return (value,)

    def _ways(self, frame: FrameType, reader: str, is_straight: bool) -> frozenset[Path] | None:
        if reader not in _METHODS and frame.f_globals.get(reader) is not None:
            return None
        if reader not in _METHODS and frame.f_builtins.get(reader) is not getattr(builtins, reader):
            return None
        if not self._codes:
            return None
        name = reader
        places: frozenset[Path] = frozenset([()])
        outer: FrameType | None = frame
        for code in reversed(self._codes):
            if outer is None or outer.f_code is not code:
                return None
            ways = ways_out(code, outer.f_lasti, name, reader in _METHODS, is_straight and code is frame.f_code)
            if ways is None:
                return None
            name, places = "", frozenset(way + place for way in ways for place in places)
            outer = outer.f_back
        return places if outer is not None and outer.f_code is self._root else None

    def places_in(self, value: Any) -> dict[Path, tuple[str, Any]]:
        """Return {place in what the call has returned: (how it is read, tensor)} of the numbers there."""
        found: dict[Path, tuple[str, Any]] = {}
        for number, tensor, reader, places in self._found:
            standing = [place for place in places if _item_at(value, place) is number]
            if reader != "tolist" or len(standing) == 1:  # a list that stands in two places is one list
                found.update(dict.fromkeys(standing, (reader, tensor)))
        return found

    def tensors_of(self, value: Any) -> list[Any]:
        """Return the tensors of these numbers, in order."""
        return [tensor for _, tensor in self.places_in(value).values()]


def is_always_found(reader: str, tensor: Any) -> bool:
    """Whether the number is an object of its own, by which it is found in a value: small integers are not."""
    return reader in ("float", "tolist") or reader == "item" and tensor.is_floating_point()


def _value_of(tensor: Any, reader: str) -> Any:
    if reader == "tolist":
        return own_array(tensor, False).tolist()
    value = own_array(tensor, False).item()
    value = value if isinstance(value, (int, complex)) else float(value)  # that of a bfloat16 is no `float`
    return value if reader == "item" else READERS[reader](_Read(value))


class _Read:
    """A number in the place of the tensor that it was read from."""

    def __init__(self, value: Any) -> None:
        self._value = value

    def item(self) -> Any:
        """Return it."""
        return self._value


def _item_at(value: Any, place: Path) -> Any:
    for number in place:
        if type(value) is dict:
            value = list(value.values())
        if not isinstance(value, (tuple, list)) or number >= len(value):
            return _nothing
        value = value[number]
    return value


_nothing = object()
