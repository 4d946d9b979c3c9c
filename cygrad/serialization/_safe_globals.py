"""Which names a file may use under `weights_only=True`: a fixed list, and what the program has added.

Nothing else is ever looked up. Each entry has the object that the name means, and the function to call in its place:
ours check their arguments, since a pickle can nest a value in another many times, or very deeply.
"""

from __future__ import annotations

import codecs
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable
from functools import cache
from typing import Any

import cygrad
from cygrad.serialization import _rebuilding as rebuilding
from cygrad.serialization._names import of_torch

BLOCKED_MODULES = ("sys", "os", "posix", "nt")  # never allowed, not even if the program adds names of them
_SCALARS = (str, int, float, complex, bytes, bool, type(None), cygrad.dtype, cygrad.device)
_added: set[Any] = set()
_of_modules: set[Any] = set()


def add_safe_globals(safe_globals: Iterable[Any]) -> None:
    """Let files use these classes and functions under `weights_only=True`: `load` calls them, and sets their state.

    An item is a class or function, or a pair of one and the full name by which files refer to it.

    >>> import argparse, io, cygrad
    >>> file = io.BytesIO()
    >>> cygrad.save(argparse.Namespace(lr=0.1), file)
    >>> _ = file.seek(0)
    >>> with cygrad.serialization.safe_globals([argparse.Namespace]):
    ...     cygrad.load(file)
    Namespace(lr=0.1)
    """
    global _added
    _added = _added | set(safe_globals)


def add_own_globals(*classes: Any) -> None:
    """Let files use these classes of a module of cygrad's that has just been imported, whatever the program adds."""
    _of_modules.update(classes)


def get_safe_globals() -> list[Any]:
    """Return what the program has added with `add_safe_globals`.

    >>> from fractions import Fraction
    >>> from cygrad.serialization import get_safe_globals, safe_globals
    >>> with safe_globals([Fraction]):
    ...     get_safe_globals()
    [<class 'fractions.Fraction'>]
    """
    return list(_added)


def clear_safe_globals() -> None:
    """Forget what the program has added with `add_safe_globals`.

    >>> import cygrad
    >>> from fractions import Fraction
    >>> cygrad.serialization.add_safe_globals([Fraction])
    >>> cygrad.serialization.clear_safe_globals()
    >>> cygrad.serialization.get_safe_globals()
    []
    """
    global _added
    _added = set()


def remove_safe_globals(safe_globals: Iterable[Any]) -> None:
    """Forget some of what the program has added with `add_safe_globals`."""
    global _added
    _added = _added - set(safe_globals)


class safe_globals:
    """Within the block, files may use these classes and functions, as after `add_safe_globals`.

    >>> import cygrad
    >>> import io
    >>> from fractions import Fraction
    >>> file = io.BytesIO()
    >>> cygrad.save({"ratio": Fraction(1, 3)}, file)
    >>> size = file.seek(0)
    >>> with cygrad.serialization.safe_globals([Fraction]):
    ...     cygrad.load(file)
    {'ratio': Fraction(1, 3)}
    """

    def __init__(self, safe_globals: list[Any]) -> None:
        self.safe_globals = safe_globals

    def __enter__(self) -> None:
        add_safe_globals(self.safe_globals)

    def __exit__(self, *error: Any) -> None:
        remove_safe_globals(self.safe_globals)


def added_globals() -> dict[str, Any]:
    """Return what the program and our modules have added, by the names that files use, which may be PyTorch's too."""
    found: dict[str, Any] = {}
    for item in _added | _of_modules:
        if isinstance(item, tuple):
            if len(item) != 2:
                raise ValueError(
                    "Expected tuple of length 2 (global, str of callable full path), but got tuple of length: "
                    f"{len(item)}"
                )
            if type(item[1]) is not str:
                raise TypeError(
                    f"Expected second item in tuple to be str of callable full path, but got: {type(item[1])}"
                )
            found[item[1]] = item[0]
        else:
            found[f"{item.__module__}.{item.__qualname__}"] = item
            names = of_torch(item)
            if names is not None:
                found[".".join(names)] = item
    return found


@cache
def allowed_globals() -> dict[str, Any]:
    """Return what every file may use, by name."""
    found: dict[str, Any] = {name: original for name, (original, _) in _calls().items()}
    found |= rebuilding.TENSOR_CLASSES | rebuilding.STORAGE_TYPES
    return found | {f"torch.{name}": getattr(cygrad, name) for name in rebuilding.DTYPES if hasattr(cygrad, name)}


def safe_call(function: Any) -> Callable[..., Any] | None:
    """Return what to call for a function or class that every file may call; None for others."""
    return _calls_by_identity().get(id(function))


@cache
def _calls_by_identity() -> dict[int, Callable[..., Any]]:
    return {id(original): call for original, call in _calls().values()}


@cache
def _calls() -> dict[str, tuple[Any, Callable[..., Any]]]:
    return {
        "collections.OrderedDict": (OrderedDict, _ordered_dict),
        "collections.Counter": (Counter, _counter),
        "_codecs.encode": (codecs.encode, _bytes),
        "torch.Size": (cygrad.Size, cygrad.Size),
        "torch.device": (cygrad.device, cygrad.device),
        "torch.nn.parameter.Parameter": (cygrad.nn.Parameter, _parameter),
        "builtins.set": (set, _set),
        "builtins.bytearray": (bytearray, _bytearray),
        "builtins.complex": (complex, complex),
        "builtins.bytes": (bytes, _no_bytes),
        **{name: (call, call) for name, call in rebuilding.FUNCTIONS.items()},
    }


def checked_key(key: Any) -> Any:
    """Return a dictionary key after checking that it is flat: hashing a deep one could hang or overflow the stack."""
    parts = key if type(key) is tuple else (key,)
    if not all(isinstance(part, _SCALARS) for part in parts):
        raise TypeError(f"a {type(key).__name__} is the key of a dictionary or the element of a set")
    return key


def _ordered_dict(*pairs: Any) -> OrderedDict:
    if not pairs:
        return OrderedDict()
    (pairs,) = pairs
    return OrderedDict((checked_key(key), value) for key, value in pairs)


def _counter(counts: Any = ()) -> Counter:
    return Counter(_ordered_dict(counts.items())) if counts else Counter()


def _set(items: Any = ()) -> set:
    return set(map(checked_key, items))


def _bytes(text: str, encoding: str) -> bytes:
    """`_codecs.encode`, which old pickles use to write bytes."""
    if encoding not in ("latin1", "latin-1"):
        raise ValueError("bytes are written in an encoding other than latin1")
    return text.encode("latin-1")


def _no_bytes() -> bytes:
    return b""


def _bytearray(data: bytes | str = b"", *encoding: str) -> bytearray:
    return bytearray(data if type(data) is bytes else _bytes(data, *encoding))  # type: ignore[arg-type]


def _parameter(data: Any, requires_grad: Any = True) -> Any:
    return rebuilding.FUNCTIONS["torch._utils._rebuild_parameter"](data, requires_grad, ())
