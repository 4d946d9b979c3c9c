"""An interpreter for PyTorch's pickles that only resolves the names listed below, so that a file never executes code.

A pickle is a program for a stack machine. This one implements the opcodes for numbers, strings and plain containers;
calls are looked up in tables of our own functions, never imported. A pickle can nest a value in another many times, or
very deeply, so no value is hashed or converted to text before its type has been checked.
"""

from __future__ import annotations

import io
import pickletools
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator
from pickle import UnpicklingError
from typing import Any

import cygrad
from cygrad.serialization import _rebuilding as rebuilding

_VALUES = {
    *("BININT", "BININT1", "BININT2", "INT", "LONG", "LONG1", "LONG4", "FLOAT", "BINFLOAT"),
    *("UNICODE", "SHORT_BINUNICODE", "BINUNICODE", "BINUNICODE8", "STRING", "BINSTRING", "SHORT_BINSTRING"),
    *("BINBYTES", "SHORT_BINBYTES", "BINBYTES8", "BYTEARRAY8"),
}
_CONSTANTS = {"NONE": None, "NEWTRUE": True, "NEWFALSE": False}
_EMPTY: dict[str, type] = {"EMPTY_LIST": list, "EMPTY_DICT": dict, "EMPTY_SET": set}
_TUPLES = {"EMPTY_TUPLE": 0, "TUPLE1": 1, "TUPLE2": 2, "TUPLE3": 3}
_STORE = {"PUT", "BINPUT", "LONG_BINPUT"}
_FETCH = {"GET", "BINGET", "LONG_BINGET"}
_NO_STEP = {"PROTO", "FRAME"}
_OPCODES = {
    opcode.code.encode("latin-1"): (opcode.name, None if opcode.arg is None else opcode.arg.reader)
    for opcode in pickletools.opcodes
}
_MOST_MARKS = 1 << 16  # containers that are filled at the same time; far deeper than picklers can nest them
_SCALARS = (str, int, float, complex, bytes, bool, type(None), cygrad.dtype, cygrad.device)


def unpickle(program: bytes, load_storage: Callable[..., Any]) -> Any:
    """Run a pickle and return its object; `load_storage(kind, key, location, length)` resolves external storages.

    Raises UnpicklingError for a damaged program, and for one that uses names or opcodes that are not allowed.
    """
    machine = _Machine(load_storage)
    try:
        for name, argument in _steps(program):
            machine.step(name, argument)
        return machine.pop()
    except (ValueError, TypeError, LookupError, OverflowError, AttributeError) as error:
        raise UnpicklingError(
            f"Weights only load failed. The pickle is damaged: {type(error).__name__}: {error}"
        ) from error


def _steps(program: bytes) -> Iterator[tuple[str, Any]]:
    """Yield the opcodes with their arguments, in half the time that `pickletools.genops` takes."""
    stream = io.BytesIO(program)
    while True:
        code = stream.read(1)
        if code not in _OPCODES:
            raise ValueError(
                f"at position {stream.tell()}, {f'there is no opcode {code!r}' if code else 'STOP is missing'}"
            )
        name, reader = _OPCODES[code]
        yield name, None if reader is None else reader(stream)
        if name == "STOP":
            return


class _Machine:
    """The stack, the memo, and the opcodes."""

    def __init__(self, load_storage: Callable[..., Any]) -> None:
        self.stack: list[Any] = []
        self.outer: list[list[Any]] = []  # the stacks below the marks
        self.memo: dict[int, Any] = {}
        self.load_storage = load_storage

    def pop(self) -> Any:
        return self.stack.pop()

    def pop_mark(self) -> list[Any]:
        """Pop everything above the last mark."""
        above, self.stack = self.stack, self.outer.pop()
        return above

    def step(self, name: str, argument: Any) -> None:
        """Execute one opcode."""
        stack = self.stack
        if name in _VALUES:
            stack.append(argument)
        elif name in _STORE:
            self.memo[argument] = stack[-1]
        elif name in _FETCH:
            stack.append(self.memo[argument])
        elif name in _CONSTANTS:
            stack.append(_CONSTANTS[name])
        elif name in _EMPTY:
            stack.append(_EMPTY[name]())
        elif name in _TUPLES:
            count = _TUPLES[name]
            if len(stack) < count:
                raise IndexError("too few values for a tuple")
            items = stack[len(stack) - count :]
            del stack[len(stack) - count :]
            stack.append(tuple(items))
        elif name not in _NO_STEP:
            special = getattr(self, f"do_{name}", None)
            if special is None:
                raise UnpicklingError(f"Weights only load failed. Unsupported operand {name}: files have no use for it")
            special(argument)

    def do_STOP(self, _: None) -> None:
        if len(self.stack) != 1 or self.outer:
            raise ValueError("it does not end with one value")

    def do_MEMOIZE(self, _: None) -> None:
        self.memo[len(self.memo)] = self.stack[-1]

    def do_POP(self, _: None) -> None:
        self.pop()

    def do_POP_MARK(self, _: None) -> None:
        self.pop_mark()

    def do_MARK(self, _: None) -> None:
        if len(self.outer) >= _MOST_MARKS:
            raise ValueError(f"more than {_MOST_MARKS} marks are open")
        self.outer.append(self.stack)
        self.stack = []

    # Containers

    def do_TUPLE(self, _: None) -> None:
        items = self.pop_mark()
        self.stack.append(tuple(items))

    def do_LIST(self, _: None) -> None:
        items = self.pop_mark()
        self.stack.append(items)

    def do_DICT(self, _: None) -> None:
        items = self.pop_mark()
        self.stack.append({})
        self._set_items(items)

    def do_APPEND(self, _: None) -> None:
        self._extend([self.pop()])

    def do_APPENDS(self, _: None) -> None:
        self._extend(self.pop_mark())

    def do_ADDITEMS(self, _: None) -> None:
        items = self.pop_mark()
        if type(self.stack[-1]) is not set:
            raise TypeError("elements are added to a non-set")
        self.stack[-1].update(map(_checked_key, items))

    def do_SETITEM(self, _: None) -> None:
        value = self.pop()
        self._set_items([self.pop(), value])

    def do_SETITEMS(self, _: None) -> None:
        self._set_items(self.pop_mark())

    def _extend(self, items: list[Any]) -> None:
        if type(self.stack[-1]) is not list:
            raise TypeError("elements are appended to a non-list")
        self.stack[-1].extend(items)

    def _set_items(self, items: list[Any]) -> None:
        target = self.stack[-1]
        if type(target) not in (dict, OrderedDict) or len(items) % 2:
            raise TypeError("entries are set in a non-dictionary")
        for key, value in zip(items[::2], items[1::2]):
            target[_checked_key(key)] = value

    # Names, calls, and external storages

    def do_GLOBAL(self, argument: str) -> None:
        self.stack.append(_named(argument.replace(" ", ".", 1)))

    def do_STACK_GLOBAL(self, _: None) -> None:
        name, module = self.pop(), self.pop()
        if type(name) is not str or type(module) is not str:
            raise TypeError("a global has no name")
        self.stack.append(_named(f"{module}.{name}"))

    def do_REDUCE(self, _: None) -> None:
        arguments, function = self.pop(), self.pop()
        if not isinstance(function, _Call) or type(arguments) is not tuple:
            raise UnpicklingError("Weights only load failed. The pickle calls something that is not a function")
        self.stack.append(function.call(*arguments))

    def do_NEWOBJ(self, _: None) -> None:
        self.do_REDUCE(None)

    def do_BUILD(self, _: None) -> None:
        state, target = self.pop(), self.stack[-1]
        if type(target) is not OrderedDict or type(state) is not dict or state.keys() - {"_metadata"}:
            raise UnpicklingError(
                f"Weights only load failed. Attributes are set of a {type(target).__name__}, which is not allowed"
            )
        vars(target).update(state)

    def do_BINPERSID(self, _: None) -> None:
        kind, storage, key, location, length = self.pop()
        if kind != "storage" or not isinstance(storage, rebuilding.StorageType):
            raise UnpicklingError("Weights only load failed. Only storages can be taken from a file")
        if type(key) is not str or type(location) is not str or type(length) is not int:
            raise TypeError("a storage has no name, location and length")
        self.stack.append(
            rebuilding.TypedStorage(self.load_storage(storage.dtype, key, location, length), storage.dtype)
        )


# -- names --


class _Call:
    """One of our functions that a pickle may call by a PyTorch name."""

    def __init__(self, call: Callable[..., Any]) -> None:
        self.call = call


def _named(name: str) -> Any:
    """Resolve a name in a pickle."""
    if name in _CALLS:
        return _CALLS[name]
    module, _, last = name.rpartition(".")
    if name in rebuilding.CLASSES:
        return rebuilding.CLASSES[name]
    if module in ("torch", "torch.storage") and last in rebuilding.STORAGES:
        return rebuilding.STORAGES[last]
    if module == "torch" and last in rebuilding.DTYPES:
        return getattr(cygrad, last)
    raise UnpicklingError(
        f"Weights only load failed. Unsupported global: GLOBAL {name} is not loaded\n"
        "  cygrad loads tensors, numbers, strings and plain containers of them, and executes nothing in a file;\n"
        "  save a module's or an optimizer's state_dict(), not the object itself"
    )


def _checked_key(key: Any) -> Any:
    """Return a dictionary key after checking that it is flat: hashing a deep one could hang or overflow the stack."""
    parts = key if type(key) is tuple else (key,)
    if not all(isinstance(part, _SCALARS) for part in parts):
        raise TypeError(f"a {type(key).__name__} is the key of a dictionary or the element of a set")
    return key


def _ordered_dict(*pairs: Any) -> OrderedDict:
    if not pairs:
        return OrderedDict()
    (pairs,) = pairs
    return OrderedDict((_checked_key(key), value) for key, value in pairs)


def _counter(counts: Any = ()) -> Counter:
    return Counter(_ordered_dict(counts.items()))


def _set(items: Any = ()) -> set[Any]:
    return set(map(_checked_key, items))


def _bytes(text: str, encoding: str) -> bytes:
    """`_codecs.encode`, which old pickles use to write bytes."""
    if encoding not in ("latin1", "latin-1"):
        raise ValueError("bytes are written in an encoding other than latin1")
    return text.encode("latin-1")


def _bytearray(data: bytes | str, *encoding: str) -> bytearray:
    return bytearray(data if type(data) is bytes else _bytes(data, *encoding))  # type: ignore[arg-type]


_CALLS: dict[str, Any] = {
    "collections.OrderedDict": _Call(_ordered_dict),
    "collections.Counter": _Call(_counter),
    "_codecs.encode": _Call(_bytes),
    "torch.Size": _Call(cygrad.Size),
    "torch.device": _Call(cygrad.device),
    **{f"{module}.set": _Call(_set) for module in ("builtins", "__builtin__")},
    **{f"{module}.bytearray": _Call(_bytearray) for module in ("builtins", "__builtin__")},
    **{f"{module}.complex": _Call(complex) for module in ("builtins", "__builtin__")},
    **{f"{module}.bytes": _Call(lambda: b"") for module in ("builtins", "__builtin__")},
    **{name: _Call(call) for name, call in rebuilding.FUNCTIONS.items()},
}
_CALLS["torch._tensor._rebuild_from_type_v2"] = _Call(
    lambda function, kind, arguments, state: rebuilding.from_type(function.call(*arguments), kind, state)
)
