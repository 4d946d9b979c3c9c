"""What a call returns, taken apart into tensors and put together again."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from cygrad import Size, Tensor
from cygrad._core.replay.guards.state import are_same
from cygrad._core.replay.returns.flows import Path
from cygrad._core.replay.returns.returned import READERS, Numbers
from cygrad._core.types.return_types import ReturnType

_LEAVES = (int, float, complex, bool, str, bytes, type(None), type(...), range, slice)


class Value:
    """The value of a call: `tensors` in order, and how it is made of them.

    `known` has the objects that existed before the call by address; another object of an unknown kind is `strange`.
    `numbers` were read from tensors that follow the others in a program's results.
    """

    def __init__(self, value: Any, known: dict[int, Any], numbers: Numbers | None = None) -> None:
        self.tensors: list[Tensor] = []
        self.strange: Any = None
        self.is_strange = False
        self._known = known
        places = {} if numbers is None else numbers.places_in(value)
        self._numbers = {place: ("number", reader, i) for i, (place, (reader, _)) in enumerate(places.items())}
        self.plan = self._plan(value, ())

    def _plan(self, value: Any, place: Path) -> tuple[Any, ...]:
        if place in self._numbers:
            return self._numbers[place]
        if isinstance(value, Tensor):
            self.tensors.append(value)
            return "tensor", len(self.tensors) - 1
        kind = type(value)
        if kind in _LEAVES or id(value) in self._known or _is_unchanging(value):
            return "object", value
        if kind in (tuple, list, Size) or isinstance(value, tuple) and (hasattr(kind, "_make") or _is_ours(kind)):
            return "items", kind, self._parts(value, place)
        if kind is dict:
            if all(type(key) in _LEAVES for key in value):
                return "entries", tuple(value), self._parts(value.values(), place)
        self.strange, self.is_strange = value, True
        return "object", value

    def _parts(self, values: Iterable[Any], place: Path) -> tuple[Any, ...]:
        return tuple(self._plan(value, (*place, i)) for i, value in enumerate(values))

    def is_like(self, other: Value) -> bool:
        """Whether two values have the same structure, numbers and objects."""
        return _is_like(self.plan, other.plan)

    def maker(self) -> Callable[[list[Tensor]], Any] | None:
        """Return the function that makes the value of its tensors, or None if it is one tensor."""
        if self.plan == ("tensor", 0):
            return None
        self._known = {}
        if self.plan[:2] == ("items", tuple) and all(part[0] == "tensor" for part in self.plan[2]):
            return tuple
        return _maker(self.plan, len(self.tensors))


def leaves(value: Any) -> list[Tensor]:
    """Return the tensors in a value, in order."""
    return Value(value, {}).tensors


def _is_like(one: tuple[Any, ...], other: tuple[Any, ...]) -> bool:
    if len(one) != len(other) or one[0] != other[0]:
        return False
    if one[0] == "number":
        return one == other
    if one[0] in ("tensor", "object"):
        return are_same(one[1], other[1])
    same_parts = len(one[2]) == len(other[2]) and all(map(_is_like, one[2], other[2]))
    return same_parts and (one[1] is other[1] if one[0] == "items" else are_same(one[1], other[1]))


def _maker(plan: tuple[Any, ...], count: int) -> Callable[[list[Tensor]], Any]:
    """Return the function that makes a value of `count` tensors, and of further ones that numbers are read from."""
    kind, content, *parts = plan
    if kind == "tensor":
        return lambda tensors: tensors[content]
    if kind == "number":
        read, place = READERS[content], count + parts[0]
        return lambda tensors: read(tensors[place])
    if kind == "object":
        return lambda tensors: content
    makers = [_maker(part, count) for part in parts[0]]
    if kind == "entries":
        return lambda tensors: {key: make(tensors) for key, make in zip(content, makers)}
    build = content._make if hasattr(content, "_make") else content
    return lambda tensors: build([make(tensors) for make in makers])


def _is_ours(kind: type) -> bool:
    """Whether objects of a class are made of their items, as what `linalg.qr` returns."""
    return issubclass(kind, ReturnType)


def _is_unchanging(value: Any) -> bool:
    kind = type(value)
    return kind.__module__.startswith("cygrad") and kind.__name__ in ("dtype", "device", "layout", "memory_format")
