"""Which optional modules are installed, by the names under which PyTorch asks."""

from __future__ import annotations

import functools
import importlib.util
from types import ModuleType


def _check_module_exists(name: str) -> bool:
    """Whether a module of this name can be found, without importing it."""
    try:
        return importlib.util.find_spec(name) is not None
    except ImportError:
        return False


@functools.lru_cache
def dill_available() -> bool:
    """Whether `dill` is installed.

    >>> from cygrad.utils._import_utils import dill_available, import_dill
    >>> dill_available() == (import_dill() is not None)
    True
    """
    return _check_module_exists("dill")


@functools.lru_cache
def import_dill() -> ModuleType | None:
    """Return the module `dill`, which then leaves the standard library's pickler as it is; None if it is missing.

    >>> from cygrad.utils._import_utils import import_dill
    >>> getattr(import_dill(), "__name__", "dill")
    'dill'
    """
    if not dill_available():
        return None
    import dill  # an optional package

    dill.extend(use_dill=False)  # importing it has changed the pickler for the whole process
    return dill
