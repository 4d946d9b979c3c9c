"""An interpreter for PyTorch's pickles that only resolves allowed names, so that a file never executes other code.

A pickle is a program for a stack machine. This one implements the opcodes for numbers, strings and plain containers;
names are looked up in tables (`_safe_globals`), never imported. A pickle can nest a value in another many times, or
very deeply, so no value is hashed or converted to text before its type has been checked.
"""

from __future__ import annotations

import io
import pickletools
from _compat_pickle import IMPORT_MAPPING, NAME_MAPPING
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator
from pickle import UnpicklingError
from typing import IO, Any

import cygrad
from cygrad.serialization._rebuilding import FUNCTIONS, TENSOR_CLASSES, StorageType
from cygrad.serialization._safe_globals import BLOCKED_MODULES, added_globals, allowed_globals, checked_key, safe_call

_VALUES = {
    *("BININT", "BININT1", "BININT2", "INT", "LONG", "LONG1", "LONG4", "FLOAT", "BINFLOAT"),
    *("UNICODE", "SHORT_BINUNICODE", "BINUNICODE", "BINUNICODE8"),
    *("BINBYTES", "SHORT_BINBYTES", "BINBYTES8", "BYTEARRAY8"),
}
_CONSTANTS = {"NONE": None, "NEWTRUE": True, "NEWFALSE": False}
_EMPTY: dict[str, type] = {"EMPTY_LIST": list, "EMPTY_DICT": dict, "EMPTY_SET": set}
_TUPLES = {"EMPTY_TUPLE": 0, "TUPLE1": 1, "TUPLE2": 2, "TUPLE3": 3}
_STORE = {"PUT", "BINPUT", "LONG_BINPUT"}
_FETCH = {"GET", "BINGET", "LONG_BINGET"}
_NO_STEP = {"PROTO", "FRAME"}


def _line(stream: IO[bytes]) -> str:
    line = stream.readline()
    if not line.endswith(b"\n"):
        raise ValueError("a line has no end")
    return line[:-1].decode("utf-8")


def _two_lines(stream: IO[bytes]) -> str:
    return f"{_line(stream)} {_line(stream)}"


# `pickletools` would look for escapes in these, and warn of those that are none.
_READERS: dict[str, Callable[[IO[bytes]], Any]] = {
    "GLOBAL": _two_lines,
    "INST": _two_lines,
    "PERSID": _line,
    "STRING": _line,
}
_OPCODES: dict[bytes, tuple[str, Callable[[IO[bytes]], Any] | None]] = {
    opcode.code.encode("latin-1"): (
        opcode.name,
        _READERS.get(opcode.name, None if opcode.arg is None else opcode.arg.reader),
    )
    for opcode in pickletools.opcodes
}
_REBUILDS_CLASS = FUNCTIONS["torch._tensor._rebuild_from_type_v2"]
_READ_ELEMENTS = tuple(
    FUNCTIONS[f"torch._utils.{name}"] for name in ("_rebuild_device_tensor_from_cpu_tensor", "_rebuild_sparse_tensor")
)
_SIZED = (str, bytes, bytearray, list, tuple, dict, set)
_MOST_WORK, _MOST_WORK_PER_BYTE = 1 << 16, 4
_MOST_MARKS = 1 << 16  # containers that are filled at the same time; far deeper than picklers can nest them
_STRINGS = {"BINSTRING", "SHORT_BINSTRING"}  # those of Python 2, which are bytes
_TEXTS = {"UNICODE", "SHORT_BINUNICODE", "BINUNICODE", "BINUNICODE8", *_STRINGS}


def unpickle(program: bytes, load_storage: Callable[..., Any], encoding: str = "utf-8") -> Any:
    """Run a pickle and return its object; `load_storage(kind, key, location, length)` resolves external storages.

    `encoding` is that of the strings of Python 2.

    Raises UnpicklingError for a damaged program, and for one that uses names or opcodes that are not allowed.
    """
    try:
        return read_pickle(io.BytesIO(program), lambda pid: load_storage(*_storage(pid)), encoding)
    except UnpicklingError as error:
        raise explained(error) from error.__cause__


def read_pickle(stream: IO[bytes], persistent_load: Callable[[Any], Any], encoding: str) -> Any:
    """Run the pickle that a file continues with; `persistent_load` returns the objects for persistent ids.

    `encoding` is that of the strings of Python 2, which remain bytes if it is "bytes".
    """
    machine = Machine(persistent_load, stream.tell, encoding)
    try:
        for name, argument in _steps(stream):
            machine.step(name, argument)
        return machine.pop()
    except (ValueError, TypeError, LookupError, OverflowError, AttributeError) as error:
        raise UnpicklingError(f"The pickle is damaged: {type(error).__name__}: {error}") from error


def _storage(pid: Any) -> tuple:
    """Return the arguments of `load_storage` that a persistent id states."""
    kind, storage, key, location, length, *view = pid
    if type(kind) is not str or kind != "storage" or not isinstance(storage, StorageType):
        raise NotAllowedError("Only persistent_load of storage is allowed")
    if type(key) is not str or type(location) is not str or type(length) is not int:
        raise TypeError("a storage has no name, location and length")
    return storage, key, location, length, *view


def end_of_pickle(content: bytes, place: int) -> int:
    """Return where the pickle that begins at `place` ends."""
    stream = io.BytesIO(content)
    stream.seek(place)
    try:
        for _ in _steps(stream):
            pass
    except (ValueError, OverflowError) as error:
        raise UnpicklingError(f"The pickle is damaged: {type(error).__name__}: {error}") from error
    return stream.tell()


def _steps(stream: IO[bytes]) -> Iterator[tuple[str, Any]]:
    """Yield the opcodes with their arguments, in half the time that `pickletools.genops` takes."""
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


class Machine:
    """The stack, the memo, and the opcodes."""

    def __init__(self, persistent_load: Callable[[Any], Any], position: Callable[[], int], encoding: str) -> None:
        self.stack: list[Any] = []
        self.outer: list[list[Any]] = []  # the stacks below the marks
        self.memo: dict[int, Any] = {}
        self.persistent_load, self.encoding = persistent_load, encoding
        self.position, self.begin, self.work = position, position(), 0
        self.storages: set[int] = set()
        self.nbytes = 0  # of all storages
        self.added = added_globals()
        self.added_by_identity = {id(value): value for value in self.added.values()}

    def pop(self) -> Any:
        return self.stack.pop()

    def spend(self, work: int) -> None:
        """Count items that a call or a key takes, most of which were read only once but can be used over and over.

        Raises ValueError if there are far more than the pickle can have brought: its time would not be linear.
        """
        self.work += work
        if self.work > _MOST_WORK and self.work > _MOST_WORK_PER_BYTE * (self.position() - self.begin + self.nbytes):
            raise ValueError("it uses its values far more often than a file has use for")

    def pop_mark(self) -> list[Any]:
        """Pop everything above the last mark."""
        above, self.stack = self.stack, self.outer.pop()
        return above

    def step(self, name: str, argument: Any) -> None:
        """Execute one opcode."""
        stack = self.stack
        if name in _VALUES:
            stack.append(argument)
        elif name in _STRINGS:
            string = argument.encode("latin-1")  # as which `pickletools` reads it
            stack.append(string if self.encoding == "bytes" else string.decode(self.encoding))
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
                raise NotAllowedError(f"Unsupported operand {name}: files have no use for it")
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
        self.stack[-1].update(map(self._key, items))

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
        if type(target) not in (dict, OrderedDict, Counter) or len(items) % 2:
            raise TypeError("entries are set in a non-dictionary")
        for key, value in zip(items[::2], items[1::2]):
            target[self._key(key)] = value

    def _key(self, key: Any) -> Any:
        """Return a key that may be hashed."""
        checked_key(key)
        if type(key) is tuple or (type(key) is int and key.bit_length() > 64):
            self.spend(_length(key))
        return key

    # Names, calls, and external storages

    def do_GLOBAL(self, argument: str) -> None:
        self.stack.append(_resolved(argument.replace(" ", ".", 1), self.added))

    def do_STACK_GLOBAL(self, _: None) -> None:
        name, module = self.pop(), self.pop()
        if type(name) is not str or type(module) is not str:
            raise TypeError("a global has no name")
        self.stack.append(_resolved(f"{module}.{name}", self.added))

    def do_REDUCE(self, _: None) -> None:
        arguments, function = self.pop(), self.pop()
        if type(arguments) is not tuple:
            raise TypeError("the arguments of a call are not a tuple")
        call = safe_call(function) or self.added_by_identity.get(id(function))
        if call is None:
            raise NotAllowedError(f"Trying to call reduce for unrecognized function: a {type(function).__name__}")
        if function is _REBUILDS_CLASS:
            self._check_rebuilding(arguments)
        self.spend(_length_of_all(arguments) + _elements_read(function, arguments))
        self.stack.append(call(*arguments))

    def _check_rebuilding(self, arguments: tuple) -> None:
        """Check that what makes a tensor of a class may be called, and that the class was allowed."""
        function, kind = arguments[:2]
        is_known = any(function is known for known in FUNCTIONS.values() if known is not _REBUILDS_CLASS)
        if not is_known or not (kind in TENSOR_CLASSES.values() or id(kind) in self.added_by_identity):
            raise TypeError("a tensor of a class that cygrad does not know")

    def do_NEWOBJ(self, _: None) -> None:
        kind = self.stack[-2]
        if id(kind) not in self.added_by_identity:
            self.do_REDUCE(None)
            return
        arguments, kind = self.pop(), self.pop()
        self.stack.append(kind.__new__(kind, *arguments))

    def do_BUILD(self, _: None) -> None:
        state, target = self.pop(), self.stack[-1]
        if id(type(target)) in self.added_by_identity:
            _set_state(target, state)
        elif type(target) is OrderedDict and type(state) is dict and not state.keys() - {"_metadata"}:
            vars(target).update(state)
        else:
            raise NotAllowedError(
                "Can only build Tensor, Parameter, OrderedDict or types allowlisted via `add_safe_globals`, but got "
                f"{type(target)}"
            )

    def do_BINPERSID(self, _: None) -> None:
        loaded = self.persistent_load(self.pop())
        if isinstance(loaded, cygrad.TypedStorage) and id(loaded) not in self.storages:
            self.storages.add(id(loaded))
            self.nbytes += loaded.nbytes()
        self.stack.append(loaded)


def _length(value: Any) -> int:
    """Return how much there is to read of a value, apart from what is inside of its items."""
    if type(value) is int:
        return value.bit_length() >> 3
    return len(value) if isinstance(value, _SIZED) else 1


def _length_of_all(arguments: tuple) -> int:
    """Return how much a call has to read of its arguments, and of those in a short tuple among them."""
    lengths = map(_length, arguments)
    inner = (map(_length, value) for value in arguments if type(value) is tuple and len(value) < 16)
    return sum(lengths) + sum(map(sum, inner))


def _elements_read(function: Any, arguments: tuple) -> int:
    """Return how many elements of tensors a call has to read; most only look at their layout."""
    if function is _REBUILDS_CLASS:
        function, _, arguments = arguments[:3]
    if not any(function is each for each in _READ_ELEMENTS) or type(arguments) is not tuple:
        return 0
    inner = [each for value in arguments if type(value) is tuple and len(value) < 16 for each in value]
    return sum(value.numel() for value in (*arguments, *inner) if isinstance(value, cygrad.Tensor))


def _set_state(target: Any, state: Any) -> None:
    """Set the state of an object of an allowed class, as pickles do."""
    if hasattr(target, "__setstate__"):
        target.__setstate__(state)
        return
    attributes, slots = state if isinstance(state, tuple) and len(state) == 2 else (state, None)
    if attributes:
        vars(target).update(attributes)
    for name, value in (slots or {}).items():
        setattr(target, name, value)


# -- names --


def unsafe_globals_of(program: bytes) -> list[str]:
    """Return the names in a pickle that are not allowed, as far as they can be told without running it."""
    try:
        names = globals_in(program)
    except (ValueError, LookupError, TypeError) as error:
        raise UnpicklingError(f"The pickle is damaged: {type(error).__name__}: {error}") from error
    return sorted(names - allowed_globals().keys() - added_globals().keys())


def globals_in(program: bytes) -> set[str]:
    """Return the names in a pickle, as far as they can be told without running it."""
    found: set[str] = set()
    memo: dict[Any, Any] = {}
    texts = ["", ""]  # the last two texts, of which STACK_GLOBAL makes a name
    last: Any = None
    for name, argument in _steps(io.BytesIO(program)):
        if name == "GLOBAL":
            found.add(_current_name(argument.replace(" ", ".", 1)))
        elif name == "STACK_GLOBAL":
            found.add(_current_name(".".join(texts)))
        elif name in _STORE or name == "MEMOIZE":
            memo[len(memo) if name == "MEMOIZE" else argument] = last
            continue
        last = memo.get(argument) if name in _FETCH else argument
        if name in _TEXTS or (name in _FETCH and isinstance(last, str)):
            texts = [texts[1], last]
    return found


def _current_name(path: str) -> str:
    """Return the name in Python 3 of what a pickle of protocol 2 or less names as Python 2 did."""
    module, _, name = path.rpartition(".")
    if (module, name) in NAME_MAPPING:
        return ".".join(NAME_MAPPING[module, name])
    return f"{IMPORT_MAPPING.get(module, module)}.{name}"


def _resolved(path: str, added: dict[str, Any]) -> Any:
    """Return what a name in a pickle means."""
    path = _current_name(path)
    module = path.rpartition(".")[0]
    if module in BLOCKED_MODULES:
        raise NotAllowedError(f"Trying to load unsupported GLOBAL {path} whose module {module} is blocked.")
    if path in allowed_globals():
        return allowed_globals()[path]
    if path in added:
        return added[path]
    shown = path.removeprefix("builtins.")
    raise NotAllowedError(
        f"Unsupported global: GLOBAL {shown} was not an allowed global by default. Please use "
        f"`torch.serialization.add_safe_globals([{shown}])` or the `torch.serialization.safe_globals([{shown}])` "
        "context manager to allowlist this global if you trust this class/function."
    )


# -- errors --


class NotAllowedError(UnpicklingError):
    """A pickle does what `weights_only=True` does not allow."""


_CHANGED_DEFAULT = (
    "In PyTorch 2.6, we changed the default value of the `weights_only` argument in `torch.load` from `False` to "
    "`True`. Re-running `torch.load` with `weights_only` set to `False` will likely succeed, but it can result in "
    "arbitrary code execution. Do it only if you got the file from a trusted source."
)


def explained(error: UnpicklingError) -> UnpicklingError:
    """Return the error to raise from `load`, which begins as PyTorch's."""
    text = str(error)
    if not isinstance(error, NotAllowedError):
        return UnpicklingError(f"Weights only load failed. {text}")
    if text.startswith("Unsupported global"):
        return UnpicklingError(
            "Weights only load failed. This file can still be loaded, to do so you have two options, \033[1mdo those "
            "steps only if you trust the source of the checkpoint\033[0m. \n"
            "\t(1) torch.load(..., weights_only=False) calls whatever the file names, which can be any code\n"
            "\t(2) with weights_only=True, allow the name below, and no other\n"
            f"\tWeightsUnpickler error: {text}\n"
            "  or save a module's or an optimizer's state_dict(), not the object itself"
        )
    return UnpicklingError(f"Weights only load failed. {_CHANGED_DEFAULT}\n  WeightsUnpickler error: {text}")
