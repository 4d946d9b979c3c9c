"""Symbolic numbers, which stand for sizes that a tracer of PyTorch does not know yet, and functions that accept them.

Nothing here makes such numbers: sizes are always ints. The classes exist for programs that test for them, or that
define numbers of their own by a `node`, an object with a method for each operation.
"""

import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

_TWO_WAYS = "add sub mul mod pow floordiv truediv and or lshift rshift".split()
_OPERATORS = {
    **{f"__{name}__": name for name in (*_TWO_WAYS, "eq", "ne", "lt", "le", "gt", "ge")},
    "__neg__": "neg",
    "__pos__": "pos",
    "__abs__": "abs",
    "__floor__": "floor",
    "__ceil__": "ceil",
    "__trunc__": "trunc",
    "__round__": "round",
}
_SMALLEST, _LARGEST = -(2**63), 2**63 - 1


class _Symbolic:
    """A number whose operations are those of its `node`."""

    def __init__(self, node: Any) -> None:
        self.node = node

    def __bool__(self) -> bool:
        return bool(self.node.bool_())

    def __hash__(self) -> int:
        return hash(self.node)

    def __repr__(self) -> str:
        return self.node._graph_repr() if hasattr(self.node, "_graph_repr") else str(self.node)


def _wrapped(node: Any) -> Any:
    """Return the number with this node; a plain one as it is."""
    for cls, asks in ((SymBool, "is_bool"), (SymInt, "is_int"), (SymFloat, "is_float")):
        if getattr(node, asks, bool)():
            return cls(node)
    return node


def _node(value: Any) -> Any:
    return value.node if isinstance(value, _Symbolic) else value


def _method(name: str) -> Callable[..., Any]:
    def method(self, *others):
        return _wrapped(getattr(self.node, name)(*map(_node, others)))

    return method


def _reflected(name: str) -> Callable[..., Any]:
    def method(self, other):
        node = self.node.wrap_int(other) if isinstance(other, int) else self.node.wrap_float(other)
        return _wrapped(getattr(node, name)(self.node))

    return method


for _special, _name in _OPERATORS.items():
    setattr(_Symbolic, _special, _method(_name))
for _name in _TWO_WAYS:
    setattr(_Symbolic, f"__r{_name}__", _reflected(_name))


class SymInt(_Symbolic):
    """An integer that a tracer does not know yet; sizes here are ints, so there are none but those of a program.

    >>> import cygrad
    >>> isinstance(cygrad.ones(2).shape[0], cygrad.SymInt)
    False
    """

    __module__ = "cygrad"

    def __int__(self) -> int:
        return self.node.int_()

    __index__ = __int__


class SymFloat(_Symbolic):
    """A real number that a tracer does not know yet.

    >>> import cygrad
    >>> isinstance(2.5, cygrad.SymFloat)
    False
    """

    __module__ = "cygrad"

    def __float__(self) -> float:
        return self.node.guard_float("", 0)

    def is_integer(self) -> Any:
        """Whether the number has no fractional part.

        >>> import cygrad
        >>> hasattr(cygrad.SymFloat, "is_integer")
        True
        """
        return _wrapped(self.node.is_integer())


class SymBool(_Symbolic):
    """A truth value that a tracer does not know yet.

    >>> import cygrad
    >>> isinstance(True, cygrad.SymBool)
    False
    """

    __module__ = "cygrad"

    def __int__(self) -> int:
        return int(bool(self))

    def __sym_not__(self) -> Any:
        return _wrapped(self.node.sym_not())


def sym_not(a: Any) -> Any:
    """Return `not a`.

    >>> import cygrad as torch
    >>> torch.sym_not(True)
    False
    """
    return a.__sym_not__() if hasattr(a, "__sym_not__") else not a


def sym_float(a: Any) -> Any:
    """Return `float(a)`; a symbolic number stays symbolic.

    >>> import cygrad
    >>> cygrad.sym_float(3)
    3.0
    """
    if isinstance(a, SymFloat):
        return a
    return a.__sym_float__() if hasattr(a, "__sym_float__") else float(a)


def sym_int(a: Any) -> Any:
    """Return `int(a)`, the nearest integer towards 0; a symbolic number stays symbolic.

    >>> import cygrad
    >>> cygrad.sym_int(-3.7)
    -3
    """
    if isinstance(a, SymInt):
        return a
    return math.trunc(a) if isinstance(a, SymFloat) else int(a)  # type: ignore[arg-type]


def _extremum(choose: Callable[..., Any], a: Any, b: Any) -> Any:
    method = f"__sym_{choose.__name__}__"
    for value, other in ((a, b), (b, a)):
        if hasattr(value, method):
            return getattr(value, method)(other)
    kinds = np.integer, np.floating, int, float
    for value in (a, b):
        if not isinstance(value, kinds):
            raise AssertionError(f"expected {kinds}, got {type(value)}")
    found = choose(a, b)
    return float(found) if isinstance(a, (float, np.floating)) or isinstance(b, (float, np.floating)) else found


def sym_max(a: Any, b: Any) -> Any:
    """Return the larger number; a float if one of them is.

    >>> import cygrad as torch
    >>> torch.sym_max(3, 2.5)
    3.0
    """
    return _extremum(max, a, b)


def sym_min(a: Any, b: Any) -> Any:
    """Return the smaller number; a float if one of them is.

    >>> import cygrad
    >>> cygrad.sym_min(3, 2.5), cygrad.sym_min(2, 3.5)
    (2.5, 2.0)
    """
    return _extremum(min, a, b)


def sym_sum(*args: Any) -> Any:
    """Return the sum of numbers, given one by one or in a list; 0 for none.

    >>> import cygrad
    >>> cygrad.sym_sum([1, 2, 3])
    6
    """
    numbers = args[0] if len(args) == 1 and isinstance(args[0], (list, tuple)) else args
    total = 0
    for number in numbers:
        total = operator.add(total, number)
    return total


def sym_ite(b: Any, t: Any, f: Any) -> Any:
    """Return `t` if `b` is true, else `f`. Raises AssertionError unless `b` is a bool and `t` and `f` have one type.

    >>> import cygrad
    >>> cygrad.sym_ite(True, 1, 2)
    1
    """
    if not isinstance(b, (SymBool, bool)):
        raise AssertionError(f"expected SymBool or bool, got {type(b)}")
    if type(t) is not type(f):
        raise AssertionError(f"type mismatch: {type(t)} vs {type(f)}")
    return t if b else f


def sym_fresh_size(expr: Any) -> Any:
    """Return a size as it is.

    >>> import cygrad
    >>> cygrad.sym_fresh_size(3)
    3
    """
    return expr


def sym_constrain_range(size: Any, *, min: int | None = None, max: int | None = None) -> None:
    """Raise RuntimeError unless `min <= size <= max`; None sets no limit.

    >>> import cygrad
    >>> cygrad.sym_constrain_range(3, min=1, max=4)
    """
    low, high = _SMALLEST if min is None else min, _LARGEST if max is None else max
    if low > high:
        raise RuntimeError(f"Max must be greater than or equal to min. Got min={low} max={high}")
    if not low <= size <= high:
        raise RuntimeError(f"Invalid value range for {size} between [{low}, {high}].")


def sym_constrain_range_for_size(size: Any, *, min: int | None = None, max: int | None = None) -> None:
    """Raise RuntimeError unless `min <= size <= max`; `min` is 0 if it is None, and `max` must be above 2.

    >>> import cygrad
    >>> cygrad.sym_constrain_range_for_size(3, max=4)
    """
    if max is not None and max <= 2:
        raise RuntimeError(f"Max value to constrain_range_for_size must be greater than 2. got: {max}")
    sym_constrain_range(size, min=0 if min is None else min, max=max)


def _function(name: str) -> Callable[[Any], Any]:
    def function(a):
        method = f"__sym_{name}__"
        return getattr(a, method)() if hasattr(a, method) else getattr(math, name)(a)

    function.__name__ = function.__qualname__ = f"_sym_{name}"
    function.__doc__ = f"""Return `math.{name}(a)`; a symbolic number stays symbolic.

    >>> import cygrad, math
    >>> cygrad._sym_{name}(1) == math.{name}(1)
    True
    """
    return function


for _name in ("acos", "asin", "atan", "cos", "cosh", "log2", "sin", "sinh", "sqrt", "tan", "tanh"):
    globals()[f"_sym_{_name}"] = _function(_name)
sym_sqrt = globals()["_sym_sqrt"]
