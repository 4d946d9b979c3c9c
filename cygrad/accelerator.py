"""The accelerator of this machine, whatever its kind: the GPU that `cygrad.cuda` uses, if there is one.

Programs that choose a device by it run unchanged with and without a GPU:

>>> import cygrad
>>> place = cygrad.accelerator.current_accelerator() if cygrad.accelerator.is_available() else cygrad.device("cpu")
>>> cygrad.zeros(2, device=place).shape
torch.Size([2])

Without a GPU, all that needs one raises RuntimeError.
"""

from collections import OrderedDict
from typing import Any

import cygrad
from cygrad._core.types.device import device as device_of

__all__ = [
    "current_accelerator",
    "current_device_idx",
    "current_device_index",
    "current_stream",
    "device_count",
    "device_index",
    "empty_cache",
    "empty_host_cache",
    "get_device_capability",
    "get_memory_info",
    "is_available",
    "max_memory_allocated",
    "max_memory_reserved",
    "memory_allocated",
    "memory_reserved",
    "memory_stats",
    "reset_accumulated_memory_stats",
    "reset_peak_memory_stats",
    "set_device_idx",
    "set_device_index",
    "set_stream",
    "synchronize",
]


def _gpu() -> Any:
    """Return the module of the accelerator. Raises RuntimeError if there is none."""
    if not cygrad.cuda.is_available():
        raise RuntimeError(
            "Cannot access accelerator device when none is available.\n  check `accelerator.is_available()` first"
        )
    return cygrad.cuda


def is_available() -> bool:
    """Whether there is an accelerator.

    >>> import cygrad
    >>> cygrad.accelerator.is_available() == (cygrad.accelerator.device_count() > 0)
    True
    """
    return cygrad.cuda.is_available()


def current_accelerator(check_available: bool = False) -> Any:
    """Return the accelerator as a device without an index, or None if there is none.

    >>> import cygrad
    >>> device = cygrad.accelerator.current_accelerator()
    >>> device is None or device.type == "cuda"
    True
    """
    return device_of("cuda") if cygrad.cuda.is_available() else None


def device_count() -> int:
    """Return the number of accelerators; 0 if there are none.

    >>> import cygrad
    >>> cygrad.accelerator.device_count() == cygrad.cuda.device_count()
    True
    """
    return cygrad.cuda.device_count()


def get_device_module(device: Any = None) -> Any:
    """Return the module of a kind of device: `cygrad.cuda`, `cygrad.cpu`, `cygrad.mps`, ...

    For None, that of the accelerator, or of the CPU if there is none. Raises RuntimeError if PyTorch has none for it.

    >>> import cygrad
    >>> cygrad.get_device_module("cpu").is_available()
    True
    """
    if device is None:
        kind = "cuda" if cygrad.cuda.is_available() else "cpu"
    elif isinstance(device, (device_of, str)):
        kind = device_of(device).type
    else:
        raise RuntimeError(f"Invalid value of device '{device}', expect torch.device, str, or None")
    if kind not in ("cpu", "cuda", "mps", "mtia", "xpu"):
        raise RuntimeError(f"Device '{kind}' does not have a corresponding module registered as 'torch.{kind}'.")
    return getattr(cygrad, kind)


def current_device_index() -> int:
    """Return the index of this thread's current accelerator.

    >>> import cygrad  # on a machine with a GPU
    >>> cygrad.accelerator.current_device_index()
    0
    """
    return _gpu().current_device()


def set_device_index(device: Any, /) -> None:
    """Make an accelerator the current one of this thread.

    >>> import cygrad  # on a machine with a GPU
    >>> cygrad.accelerator.set_device_index(0)
    >>> cygrad.accelerator.current_device_index()
    0
    """
    _gpu().set_device(device)


def current_device_idx() -> int:
    """Deprecated alias of `current_device_index`.

    >>> import cygrad  # on a machine with a GPU
    >>> cygrad.accelerator.current_device_idx()
    0
    """
    return current_device_index()


def set_device_idx(device: Any, /) -> None:
    """Deprecated alias of `set_device_index`.

    >>> import cygrad  # on a machine with a GPU
    >>> cygrad.accelerator.set_device_idx(0)
    """
    set_device_index(device)


class device_index:
    """A context in which the accelerator of that index is current; None is a no-op.

    >>> import cygrad  # on a machine with a GPU
    >>> with cygrad.accelerator.device_index(0):
    ...     cygrad.accelerator.current_device_index()
    0
    """

    def __init__(self, device: int | None, /) -> None:
        self.idx = device
        self.prev_idx: int | None = None

    def __enter__(self) -> None:
        if self.idx is not None:
            self.prev_idx = current_device_index()
            set_device_index(self.idx)

    def __exit__(self, *error: Any) -> None:
        if self.prev_idx is not None:
            set_device_index(self.prev_idx)


def current_stream(device: Any = None, /) -> Any:
    """Return the stream in which this thread's work is queued on an accelerator.

    >>> import cygrad  # on a machine with a GPU
    >>> cygrad.accelerator.current_stream() == cygrad.cuda.current_stream()
    True
    """
    return _gpu().current_stream(device)


def set_stream(stream: Any) -> None:
    """Queue this thread's work in a stream from now on.

    >>> import cygrad  # on a machine with a GPU
    >>> side = cygrad.cuda.Stream()
    >>> cygrad.accelerator.set_stream(side)
    >>> cygrad.accelerator.current_stream() == side
    True
    >>> cygrad.accelerator.set_stream(cygrad.cuda.default_stream())
    """
    _gpu().set_stream(stream)


def synchronize(device: Any = None, /) -> None:
    """Wait until an accelerator has finished its work.

    >>> import cygrad  # on a machine with a GPU
    >>> x = cygrad.ones(2, device="cuda") + 1
    >>> cygrad.accelerator.synchronize()
    """
    _gpu().synchronize(device)


def get_device_capability(device: Any = None, /) -> dict[str, Any]:
    """Return what an accelerator supports: its dtypes, under "supported_dtypes".

    >>> import cygrad  # on a machine with a GPU
    >>> cygrad.float32 in cygrad.accelerator.get_device_capability()["supported_dtypes"]
    True
    """
    _gpu()
    names = "bool uint8 int8 int16 int32 int64 float16 bfloat16 float32 float64 complex64 complex128"
    return {"supported_dtypes": {getattr(cygrad, name) for name in names.split()}}


# -- memory --


def empty_cache() -> None:
    """Release unused memory of the accelerator's pool.

    >>> import cygrad  # on a machine with a GPU
    >>> cygrad.accelerator.empty_cache()
    """
    _gpu().empty_cache()


def empty_host_cache() -> None:
    """Release unused pinned memory.

    >>> import cygrad  # on a machine with a GPU
    >>> cygrad.accelerator.empty_host_cache()
    """
    _gpu().empty_cache()


def get_memory_info(device_index: Any = None, /) -> tuple[int, int]:
    """Return (free, total) bytes of an accelerator.

    >>> import cygrad  # on a machine with a GPU
    >>> free, total = cygrad.accelerator.get_memory_info()
    >>> 0 < free <= total
    True
    """
    return _gpu().mem_get_info(device_index)


def memory_allocated(device_index: Any = None, /) -> int:
    """Return the number of bytes occupied by tensors on an accelerator.

    >>> import cygrad  # on a machine with a GPU
    >>> x = cygrad.ones(2, device="cuda")
    >>> cygrad.accelerator.memory_allocated() >= 512
    True
    """
    return _gpu().memory_allocated(device_index)


def max_memory_allocated(device_index: Any = None, /) -> int:
    """Return the peak of bytes occupied by tensors, since the start or `reset_peak_memory_stats`.

    >>> import cygrad  # on a machine with a GPU
    >>> x = cygrad.ones(2, device="cuda")
    >>> cygrad.accelerator.max_memory_allocated() >= 512
    True
    """
    return _gpu().max_memory_allocated(device_index)


def memory_reserved(device_index: Any = None, /) -> int:
    """Return the number of bytes held by the accelerator's pool.

    >>> import cygrad  # on a machine with a GPU
    >>> x = cygrad.ones(2, device="cuda")
    >>> cygrad.accelerator.memory_reserved() >= 512
    True
    """
    return _gpu().memory_reserved(device_index)


def max_memory_reserved(device_index: Any = None, /) -> int:
    """Return the peak of bytes held by the accelerator's pool.

    >>> import cygrad  # on a machine with a GPU
    >>> x = cygrad.ones(2, device="cuda")
    >>> cygrad.accelerator.max_memory_reserved() >= 512
    True
    """
    return _gpu().max_memory_reserved(device_index)


def memory_stats(device_index: Any = None, /) -> OrderedDict[str, Any]:
    """Return the figures of an accelerator's memory by PyTorch's names, sorted.

    >>> import cygrad  # on a machine with a GPU
    >>> x = cygrad.ones(2, device="cuda")
    >>> cygrad.accelerator.memory_stats()["allocated_bytes.all.current"] >= 512
    True
    """
    return OrderedDict(sorted(_gpu().memory_stats(device_index).items()))


def reset_accumulated_memory_stats(device_index: Any = None, /) -> None:
    """Reset the counts of what has happened; there are none but the peaks, which stay.

    >>> import cygrad  # on a machine with a GPU
    >>> cygrad.accelerator.reset_accumulated_memory_stats()
    """
    _gpu()


def reset_peak_memory_stats(device_index: Any = None, /) -> None:
    """Reset the peaks to the current figures.

    >>> import cygrad  # on a machine with a GPU
    >>> cygrad.accelerator.reset_peak_memory_stats()
    >>> cygrad.accelerator.max_memory_allocated() == cygrad.accelerator.memory_allocated()
    True
    """
    _gpu().reset_peak_memory_stats(device_index)
