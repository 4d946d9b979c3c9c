"""The memory of GPUs, which CuPy's pool hands out and keeps."""

from typing import Any

from cygrad._core.memory import empty_cache as _empty_cpu_cache
from cygrad._kernels.gpu import library
from cygrad._kernels.machine import size_text
from cygrad.cuda.devices import _index, is_initialized

_peaks: dict[int, list[int]] = {}  # by GPU: the most bytes in use, and the most reserved, that were seen


def _pool() -> Any:
    return library.cupy().get_default_memory_pool()


def _read(device: Any) -> tuple[int, int]:
    """(bytes in use, bytes reserved) on a GPU; noted for the peaks."""
    if not is_initialized():
        return 0, 0
    index = _index(device)
    with library.on_device(index):
        used, reserved = _pool().used_bytes(), _pool().total_bytes()
    peaks = _peaks.setdefault(index, [0, 0])
    peaks[:] = max(peaks[0], used), max(peaks[1], reserved)
    return used, reserved


def memory_allocated(device: Any = None) -> int:
    """How many bytes arrays take on a GPU.

    >>> import cygrad
    >>> cygrad.cuda.memory_allocated() >= 0
    True
    """
    return _read(device)[0]


def memory_reserved(device: Any = None) -> int:
    """How many bytes the pool holds on a GPU: for arrays, and for later ones."""
    return _read(device)[1]


def max_memory_reserved(device: Any = None) -> int:
    """How many bytes the pool held at most on a GPU, since the start or `reset_peak_memory_stats`."""
    _read(device)
    return _peaks[_index(device)][1] if is_initialized() else 0


def max_memory_allocated(device: Any = None) -> int:
    """How many bytes arrays took at most on a GPU: what the pool had to reserve, which is that or a little more.

    The pool asks the driver for memory only when it has none left, so that what it has reserved is the largest need so
    far; `empty_cache` followed by `reset_peak_memory_stats` begins a new measurement.
    """
    return max_memory_reserved(device)


def reset_peak_memory_stats(device: Any = None) -> None:
    """Let the peaks begin anew, at what is reserved."""
    if is_initialized():
        _peaks.pop(_index(device), None)
        _read(device)


def memory_stats(device: Any = None) -> dict[str, int]:
    """The figures as a flat dictionary, with PyTorch's names."""
    used, reserved = _read(device)
    peak = max_memory_reserved(device)
    return {
        "allocated_bytes.all.current": used,
        "allocated_bytes.all.peak": peak,
        "reserved_bytes.all.current": reserved,
        "reserved_bytes.all.peak": peak,
    }


def memory_summary(device: Any = None, abbreviated: bool = False) -> str:
    """The figures as a text."""
    used, reserved = _read(device)
    rows = (("in use", used), ("reserved", reserved), ("reserved at most", max_memory_reserved(device)))
    return "\n".join(["Memory of the GPU", *(f"{title:18}{size_text(size):>12}" for title, size in rows)])


def empty_cache() -> None:
    """Give back to the system what pools hold for later arrays, on the CPU and on GPUs."""
    _empty_cpu_cache()
    if is_initialized():
        _pool().free_all_blocks()
        library.cupy().get_default_pinned_memory_pool().free_all_blocks()


def mem_get_info(device: Any = None) -> tuple[int, int]:
    """(free, total) bytes of a GPU, as its driver tells."""
    with library.on_device(_index(device)):
        return library.cupy().cuda.runtime.memGetInfo()


def set_per_process_memory_fraction(fraction: float, device: Any = None) -> None:
    """Let arrays take at most this part of a GPU's memory. Raises ValueError unless 0 <= fraction <= 1."""
    if not isinstance(fraction, (int, float)):
        raise TypeError("Invalid type for fraction argument, must be `float`")
    if not 0 <= fraction <= 1:
        raise ValueError(f"Invalid fraction value: {fraction}. Allowed range: 0~1")
    with library.on_device(_index(device)):
        _pool().set_limit(fraction=fraction)
