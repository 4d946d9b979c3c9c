"""GPU memory, which is managed by CuPy's memory pool."""

from typing import Any

from cygrad._core.errors.sites import warn
from cygrad._core.runtime.memory_stats import empty_cache as _empty_cpu_cache
from cygrad._core.runtime.memory_stats import gpu_limit, holders_on_gpu
from cygrad._kernels.device import cupy_library
from cygrad._kernels.gpu.runtime import allocator
from cygrad._kernels.platform.machine import size_text as _size
from cygrad.cuda._memory_history import _dump_snapshot as _dump_snapshot
from cygrad.cuda._memory_history import _record_memory_history as _record_memory_history
from cygrad.cuda._memory_history import _snapshot as _snapshot
from cygrad.cuda._memory_history import memory_snapshot as memory_snapshot
from cygrad.cuda.devices import _index, is_initialized

__all__ = [
    "empty_cache",
    "get_memory_limit",
    "get_per_process_memory_fraction",
    "ipc_collect",
    "max_memory_allocated",
    "max_memory_cached",
    "max_memory_reserved",
    "mem_get_info",
    "memory_allocated",
    "memory_cached",
    "memory_reserved",
    "memory_snapshot",
    "memory_stats",
    "memory_summary",
    "reset_max_memory_allocated",
    "reset_max_memory_cached",
    "reset_peak_memory_stats",
    "set_memory_limit",
    "set_per_process_memory_fraction",
]


def _pool() -> Any:
    return allocator.pool()


def _read(device: Any) -> tuple[int, int]:
    """Return (bytes in use, bytes reserved) on a GPU, updating the peaks."""
    return allocator.measured(_index(device)) if is_initialized() else (0, 0)


def _figures(device: Any) -> Any:
    """Return the current memory figures of a GPU."""
    if not is_initialized():
        return allocator.Ledger()
    _read(device)
    return allocator.ledger(_index(device))


def memory_allocated(device: Any = None) -> int:
    """Return the number of bytes occupied by arrays on a GPU, each rounded up to 512.

    >>> import cygrad
    >>> cygrad.cuda.memory_allocated() >= 0
    True
    """
    return _read(device)[0]


def memory_reserved(device: Any = None) -> int:
    """Return the number of bytes held by a GPU's pool, for existing and future arrays.

    >>> import cygrad  # on a machine with a GPU
    >>> x = cygrad.ones(2, device="cuda")
    >>> cygrad.cuda.memory_reserved() >= cygrad.cuda.memory_allocated()
    True
    """
    return _read(device)[1]


def max_memory_reserved(device: Any = None) -> int:
    """Return the peak of bytes held by a GPU's pool, since the start or `reset_peak_memory_stats`.

    >>> import cygrad  # on a machine with a GPU
    >>> x = cygrad.ones(2, device="cuda")
    >>> cygrad.cuda.max_memory_reserved() >= 512
    True
    """
    return int(_figures(device).reserved_peak)


def max_memory_allocated(device: Any = None) -> int:
    """Return the peak of bytes occupied by arrays on a GPU, since the start or `reset_peak_memory_stats`.

    >>> import cygrad  # on a machine with a GPU
    >>> x = cygrad.ones(1024, device="cuda")
    >>> cygrad.cuda.max_memory_allocated() >= 4096
    True
    """
    return int(_figures(device).peak)


def reset_peak_memory_stats(device: Any = None) -> None:
    """Reset the peaks to the current figures.

    >>> import cygrad  # on a machine with a GPU
    >>> x = cygrad.ones(1024, device="cuda")
    >>> del x
    >>> cygrad.cuda.reset_peak_memory_stats()
    >>> cygrad.cuda.max_memory_allocated() == cygrad.cuda.memory_allocated()
    True
    """
    if is_initialized():
        with cupy_library.on_device(_index(device)):
            allocator.ledger(_index(device)).reset()


def memory_stats(device: Any = None) -> dict[str, int]:
    """Return the figures as a flat dictionary, with PyTorch's names.

    >>> import cygrad  # on a machine with a GPU
    >>> x = cygrad.ones(2, device="cuda")
    >>> cygrad.cuda.memory_stats()["allocated_bytes.all.current"] > 0
    True
    """
    figures, (used, reserved) = _figures(device), _read(device)
    return {
        "allocated_bytes.all.current": used,
        "allocated_bytes.all.peak": figures.peak,
        "reserved_bytes.all.current": reserved,
        "reserved_bytes.all.peak": figures.reserved_peak,
        "num_alloc_retries": figures.retries,
        "num_ooms": figures.failures,
    }


def memory_summary(device: Any = None, abbreviated: bool = False) -> str:
    """Return the figures as text; unless `abbreviated`, with the source lines that hold the most memory.

    >>> import cygrad  # on a machine with a GPU
    >>> x = cygrad.ones(2, device="cuda")
    >>> isinstance(cygrad.cuda.memory_summary(abbreviated=True), str)
    True
    """
    figures, (used, reserved) = _figures(device), _read(device)
    rows = {
        "in use": _size(used),
        "in use at most": _size(figures.peak),
        "reserved": _size(reserved),
        "reserved at most": _size(figures.reserved_peak),
        "retries": str(figures.retries),
        "out of memory": str(figures.failures),
    }
    lines = ["Memory of the GPU", *(f"{title:18}{value:>12}" for title, value in rows.items())]
    if is_initialized() and not abbreviated:
        lines += holders_on_gpu(_index(device))
    return "\n".join(lines)


def empty_cache() -> None:
    """Release unused memory held by the pools, on the CPU and on GPUs, to the system.

    >>> import cygrad
    >>> cygrad.cuda.empty_cache()
    """
    _empty_cpu_cache()
    if is_initialized():
        _pool().free_all_blocks()
        cupy_library.cupy().get_default_pinned_memory_pool().free_all_blocks()


def ipc_collect() -> None:
    """Do nothing: cygrad keeps no memory alive for other processes.

    >>> import cygrad
    >>> cygrad.cuda.ipc_collect()
    """


def mem_get_info(device: Any = None) -> tuple[int, int]:
    """Return (free, total) bytes of a GPU, as reported by its driver.

    >>> import cygrad  # on a machine with a GPU
    >>> free, total = cygrad.cuda.mem_get_info()
    >>> 0 < free <= total
    True
    """
    with cupy_library.on_device(_index(device)):
        return cupy_library.cupy().cuda.runtime.memGetInfo()


def set_per_process_memory_fraction(fraction: float, device: Any = None) -> None:
    """Limit arrays to this fraction of a GPU's memory. Raises ValueError unless 0 <= fraction <= 1.

    >>> import cygrad  # on a machine with a GPU
    >>> cygrad.cuda.set_per_process_memory_fraction(0.5)
    >>> cygrad.cuda.get_memory_limit() > 0
    True
    >>> before = cygrad.cuda.set_memory_limit(None)
    """
    if not isinstance(fraction, (int, float)):
        raise TypeError("Invalid type for fraction argument, must be `float`")
    if not 0 <= fraction <= 1:
        raise ValueError(f"Invalid fraction value: {fraction}. Allowed range: 0~1")
    with cupy_library.on_device(_index(device)):
        _pool().set_limit(fraction=fraction)


def get_per_process_memory_fraction(device: Any = None) -> float:
    """Return the fraction of a GPU's memory that arrays may take; 1 if there is no limit.

    >>> import cygrad  # on a machine with a GPU
    >>> cygrad.cuda.get_per_process_memory_fraction()
    1.0
    """
    limit = get_memory_limit(device)
    return limit / mem_get_info(device)[1] if limit else 1.0


def get_memory_limit(device: Any = None) -> int:
    """Return the limit in bytes for arrays on a GPU; 0 if there is none.

    >>> import cygrad  # on a machine with a GPU
    >>> cygrad.cuda.get_memory_limit()
    0
    """
    return int(gpu_limit(_index(device))) if is_initialized() else 0


def set_memory_limit(limit: int | None, device: Any = None) -> int:
    """Set the limit in bytes for arrays on a GPU; 0 or None removes it. Returns the previous limit.

    Allocations beyond it raise OutOfMemoryError. Raises TypeError for non-integers, ValueError for negative values.

    >>> import cygrad  # on a machine with a GPU
    >>> cygrad.cuda.set_memory_limit(2**30)
    0
    >>> cygrad.cuda.get_memory_limit() == 2**30
    True
    >>> before = cygrad.cuda.set_memory_limit(None)
    """
    if limit is not None and (not isinstance(limit, int) or isinstance(limit, bool)):
        raise TypeError(f"set_memory_limit(): limit must be int or None, not {type(limit).__name__}")
    if limit is not None and limit < 0:
        raise ValueError(f"set_memory_limit(): {limit} is not a number of bytes")
    index = _index(device)
    former = int(gpu_limit(index))
    with cupy_library.on_device(index):
        _pool().set_limit(size=limit or 0)
    return former


# -- old names --


def _renamed(old, new):
    warn(f"`torch.cuda.{old}` has been renamed to `torch.cuda.{new}`", FutureWarning)


def memory_cached(device: Any = None) -> int:
    """Deprecated alias of `memory_reserved`.

    >>> import cygrad  # on a machine with a GPU
    >>> import warnings
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore")
    ...     cygrad.cuda.memory_cached() == cygrad.cuda.memory_reserved()
    True
    """
    _renamed("memory_cached", "memory_reserved")
    return memory_reserved(device)


def max_memory_cached(device: Any = None) -> int:
    """Deprecated alias of `max_memory_reserved`.

    >>> import cygrad  # on a machine with a GPU
    >>> import warnings
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore")
    ...     cygrad.cuda.max_memory_cached() == cygrad.cuda.max_memory_reserved()
    True
    """
    _renamed("max_memory_cached", "max_memory_reserved")
    return max_memory_reserved(device)


def _resets_all(old):
    warn(
        f"torch.cuda.{old} now calls torch.cuda.reset_peak_memory_stats, which resets /all/ peak memory stats.",
        FutureWarning,
    )


def reset_max_memory_allocated(device: Any = None) -> None:
    """Deprecated alias of `reset_peak_memory_stats`.

    >>> import cygrad  # on a machine with a GPU
    >>> import warnings
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore")
    ...     cygrad.cuda.reset_max_memory_allocated()
    """
    _resets_all("reset_max_memory_allocated")
    reset_peak_memory_stats(device)


def reset_max_memory_cached(device: Any = None) -> None:
    """Deprecated alias of `reset_peak_memory_stats`.

    >>> import cygrad  # on a machine with a GPU
    >>> import warnings
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore")
    ...     cygrad.cuda.reset_max_memory_cached()
    """
    _resets_all("reset_max_memory_cached")
    reset_peak_memory_stats(device)
