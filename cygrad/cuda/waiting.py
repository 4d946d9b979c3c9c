"""Telling where the program waits for the GPU: `set_sync_debug_mode`.

While it is on, CuPy's functions and methods that wait say so first. They are replaced for that time alone, so that
nothing is asked while it is off.
"""

from collections.abc import Callable
from functools import wraps
from typing import Any

from cygrad._core.errors import sites
from cygrad._core.runtime.settings import number_of_mode
from cygrad._kernels.device import cupy_library, gpu_forms
from cygrad._kernels.gpu.runtime.allocator import user_place

__all__ = ["get_sync_debug_mode", "set_sync_debug_mode"]

# What of CuPy has to know a value, or how many there are.
_METHODS = "get item tolist tobytes nonzero __bool__ __int__ __float__ __complex__ __index__".split()
_FUNCTIONS = "argwhere asnumpy bincount flatnonzero nonzero unique".split()
_OF_LINALG = "cond eig eigvals lstsq matrix_rank pinv".split()


class _Mode:
    """What was set, and what puts back the functions that are replaced."""

    current = 0
    undo: list[Callable[[], None]] = []
    reads_are_watched = False
    is_telling = False  # within one that waits, others are not told


def set_sync_debug_mode(debug_mode: int | str) -> None:
    """Let what waits for the GPU warn (1, "warn") or raise RuntimeError (2, "error"); 0, "default", is neither.

    The text names the line of the program. Waits that are asked for, as `synchronize()`, are not told. Raises
    RuntimeError for another value, and where there is no GPU.
    """
    mode = number_of_mode(debug_mode)
    module = cupy_library.cupy()
    while _Mode.undo:
        _Mode.undo.pop()()
    _Mode.current = mode
    if mode:
        _watch(module)
    gpu_forms._forms.clear()  # which may hold functions of the other mode


def get_sync_debug_mode() -> int:
    """What `set_sync_debug_mode` set, as a number.

    >>> import cygrad
    >>> cygrad.cuda.get_sync_debug_mode()
    0
    """
    return _Mode.current


def _watch(module: Any) -> None:
    for place, names in ((module.ndarray, _METHODS), (module, _FUNCTIONS), (module.linalg, _OF_LINALG)):
        for name in names:
            if hasattr(place, name):
                _replace(place, name, _telling(getattr(place, name)))
    if not _Mode.reads_are_watched:
        _watch_reads(module)
        _Mode.reads_are_watched = True


def _watch_reads(module: Any) -> None:
    """Replace what reads `x[...]` for ever: CPython 3.13 calls a former one once a class has changed 1,000 times."""
    read = module.ndarray.__getitem__

    def getitem(self: Any, index: Any) -> Any:
        parts = index if isinstance(index, tuple) else (index,)
        if _Mode.current and any(isinstance(part, module.ndarray) and part.dtype == "bool" for part in parts):
            return _told("reading by a mask", read, self, index)
        return read(self, index)

    module.ndarray.__getitem__ = getitem


def _replace(place: Any, name: str, new: Any) -> None:
    is_own, before = name in vars(place), getattr(place, name)

    def undo() -> None:
        if is_own:
            setattr(place, name, before)
        else:
            delattr(place, name)

    _Mode.undo.append(undo)
    setattr(place, name, new)


def _telling(function: Callable) -> Callable:
    @wraps(function, assigned=("__name__", "__doc__"), updated=())
    def call(*args: Any, **kwargs: Any) -> Any:
        if kwargs.get("blocking") is False:
            return function(*args, **kwargs)
        return _told(function.__name__.strip("_"), function, *args, **kwargs)

    return call


def _told(what: str, function: Callable, *args: Any, **kwargs: Any) -> Any:
    if _Mode.is_telling:
        return function(*args, **kwargs)
    place = user_place()
    text = f"called a synchronizing CUDA operation\n  {what} waits for the GPU, at {sites.at(*place)}"
    if _Mode.current == 2:
        raise RuntimeError(text)
    sites.warn(text)
    _Mode.is_telling = True
    try:
        return function(*args, **kwargs)
    finally:
        _Mode.is_telling = False
