"""Reports where the program waits for the GPU: `set_sync_debug_mode`.

While enabled, wrappers replace CuPy's synchronizing functions and methods and report each wait before it happens.
They are installed only during that time, so that disabled mode costs nothing.
"""

from collections.abc import Callable
from functools import wraps
from typing import Any

from cygrad._core.errors import sites
from cygrad._core.runtime.settings import number_of_mode
from cygrad._kernels.device import cupy_library, gpu_forms
from cygrad._kernels.gpu.runtime.allocator import user_place

__all__ = ["get_sync_debug_mode", "set_sync_debug_mode"]

# CuPy functions that need a value, or the number of values, on the host.
_METHODS = "get item tolist tobytes nonzero __bool__ __int__ __float__ __complex__ __index__".split()
_FUNCTIONS = "argwhere asnumpy bincount flatnonzero nonzero unique".split()
_OF_LINALG = "cond eig eigvals lstsq matrix_rank pinv".split()


class _Mode:
    """The current setting, and the callbacks that restore the replaced functions."""

    current = 0
    undo: list[Callable[[], None]] = []
    reads_are_watched = False
    is_telling = False  # waits nested in a reported one are not reported


def set_sync_debug_mode(debug_mode: int | str) -> None:
    """Make waits for the GPU warn (1, "warn") or raise RuntimeError (2, "error"); 0, "default", disables this.

    The message names the line of the program. Explicit waits such as `synchronize()` are not reported. Raises
    RuntimeError for other values, and without a GPU.

    >>> import cygrad  # on a machine with a GPU
    >>> x = cygrad.ones(2, device="cuda")
    >>> cygrad.cuda.set_sync_debug_mode("error")
    >>> x.sum().item()
    Traceback (most recent call last):
        ...
    RuntimeError: called a synchronizing CUDA operation...
    >>> cygrad.cuda.set_sync_debug_mode("default")
    """
    mode = number_of_mode(debug_mode)
    module = cupy_library.cupy()
    while _Mode.undo:
        _Mode.undo.pop()()
    _Mode.current = mode
    if mode:
        _watch(module)
    gpu_forms._forms.clear()  # these may hold functions of the previous mode


def get_sync_debug_mode() -> int:
    """Return the mode set by `set_sync_debug_mode`, as a number.

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
    """Patch `ndarray.__getitem__` for good: CPython 3.13 may call a stale one after 1,000 changes of a class."""
    read = module.ndarray.__getitem__

    def getitem(self: Any, index: Any) -> Any:
        parts = index if isinstance(index, tuple) else (index,)
        if _Mode.current and any(isinstance(part, module.ndarray) and part.dtype == "bool" for part in parts):
            return _told("indexing with a mask", read, self, index)
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


def _telling(function: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(function, assigned=("__name__", "__doc__"), updated=())
    def call(*args: Any, **kwargs: Any) -> Any:
        if kwargs.get("blocking") is False:
            return function(*args, **kwargs)
        return _told(function.__name__.strip("_"), function, *args, **kwargs)

    return call


def _told(what: str, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
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
