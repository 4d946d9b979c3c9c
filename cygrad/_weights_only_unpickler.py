"""The names of PyTorch's module of the same name: loading pickles of which nothing but allowed names is executed."""

from typing import IO, Any

from cygrad.serialization._safe_globals import (
    BLOCKED_MODULES,
    add_safe_globals,
    added_globals,
    allowed_globals,
    clear_safe_globals,
    get_safe_globals,
    remove_safe_globals,
    safe_globals,
)
from cygrad.serialization._unpickler import globals_in, read_pickle

__all__ = ["Unpickler", "load"]

_add_safe_globals = add_safe_globals
_blocklisted_modules = BLOCKED_MODULES
_clear_safe_globals = clear_safe_globals
_get_allowed_globals = allowed_globals
_get_safe_globals = get_safe_globals
_get_user_allowed_globals = added_globals
_remove_safe_globals = remove_safe_globals
_safe_globals = safe_globals


def get_globals_in_pkl(file: IO[bytes]) -> set[str]:
    """Return the names of classes and functions that the pickle in a file uses."""
    return globals_in(file.read())


class Unpickler:
    """Reads pickles of plain values, and of objects whose classes were allowed by `serialization.add_safe_globals`.

    Subclasses define `persistent_load`, which returns the object for a persistent id.
    """

    def __init__(self, file: IO[bytes], *, encoding: str = "bytes") -> None:
        self.file, self.encoding = file, encoding

    def load(self) -> Any:
        """Read the next pickle. Raises `pickle.UnpicklingError` for what is not allowed, and for a damaged one."""
        return read_pickle(self.file, self.persistent_load, self.encoding)

    def persistent_load(self, pid: Any) -> Any:
        """Raises `pickle.UnpicklingError`."""
        from pickle import UnpicklingError  # as little as possible is imported until it is needed

        raise UnpicklingError("unsupported persistent id encountered")


def load(file: IO[bytes], *, encoding: str = "ASCII") -> Any:
    """Read a pickle from a file, as `Unpickler.load` does."""
    return Unpickler(file, encoding=encoding).load()
