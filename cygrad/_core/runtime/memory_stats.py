"""Statistics and limits of the memory pool for large arrays (Note [The pool] in memory_pool.pyx)."""

import cygrad._kernels.cpu.base.arrays as arrays
import cygrad._kernels.platform.memory_pool as memory_pool
from cygrad._core.errors.classes import OutOfMemoryError
from cygrad._core.errors.sites import at
from cygrad._kernels.device import cupy_library
from cygrad._kernels.gpu.runtime import allocator
from cygrad._kernels.platform.machine import size_text as _size

_LISTED = 5  # lines listed by an error or a summary
_ROWS = {
    "Allocated memory": "allocated_bytes",
    "Requested memory": "requested_bytes",
    "Reserved memory": "reserved_bytes",
    "Allocations": "allocation",
    "Reserved blocks": "segment",
}


def memory_stats() -> dict[str, int]:
    """Return the counters of the pool as a flat dictionary, with the names that PyTorch uses for GPU memory.

    Arrays of 32 KB or more get their memory from the pool; others are not counted. For each of
    ``allocated_bytes`` (in use, rounded up to the pool's sizes), ``requested_bytes`` (not rounded), ``allocation``
    (number of allocations), ``reserved_bytes`` (in use or cached) and ``segment`` (number of reserved blocks) there are
    ``.all.current``, ``.all.peak``, ``.all.allocated`` and ``.all.freed``. ``num_alloc_retries`` counts how often
    cached memory had to be released because the system had no more, ``num_ooms`` the out-of-memory errors.

    >>> import cygrad
    >>> before = cygrad.memory_stats()["requested_bytes.all.current"]
    >>> x = cygrad.ones(100_000)
    >>> cygrad.memory_stats()["requested_bytes.all.current"] - before
    400000
    """
    counters, retries, failures = memory_pool.counters()
    stats: dict[str, int] = {}
    for name, values in counters.items():
        stats.update(zip((f"{name}.all.{part}" for part in ("current", "peak", "allocated", "freed")), values))
    return stats | {"num_alloc_retries": retries, "num_ooms": failures}


def memory_summary() -> str:
    """Return the counters of `memory_stats` as a table, with the lines of the program that hold the most memory.

    >>> import cygrad
    >>> print(cygrad.memory_summary().splitlines()[0])
    Memory of arrays of 32 KB and more
    """
    counters, retries, failures = memory_pool.counters()
    lines = [
        "Memory of arrays of 32 KB and more",
        f"limit {_limit_text()}, retries {retries}, out of memory {failures}",
        "",
        f"{'':18}{'Current':>12}{'Peak':>12}{'Total':>12}{'Freed':>12}",
    ]
    for title, name in _ROWS.items():
        show = _size if name.endswith("bytes") else str
        lines.append(f"{title:18}" + "".join(f"{show(value):>12}" for value in counters[name]))
    return "\n".join(lines + _largest_holders())


def reset_peak_memory_stats() -> None:
    """Reset the peaks in `memory_stats` to the current values.

    >>> import cygrad
    >>> cygrad.reset_peak_memory_stats()
    >>> stats = cygrad.memory_stats()
    >>> stats["allocated_bytes.all.peak"] == stats["allocated_bytes.all.current"]
    True
    """
    memory_pool.reset_peaks()


def empty_cache() -> None:
    """Return to the system the memory that the pool and the freelist keep for later arrays.

    >>> import cygrad
    >>> cygrad.empty_cache()
    >>> stats = cygrad.memory_stats()
    >>> stats["reserved_bytes.all.current"] == stats["allocated_bytes.all.current"]
    True
    """
    arrays.drop_spares()
    memory_pool.empty_cache()


def get_memory_limit() -> int:
    """Return the maximal number of bytes for all arrays of 32 KB and more together; 0 if there is no limit.

    The initial value is the environment variable ``CYGRAD_MEMORY_LIMIT`` (such as ``512M`` or ``3.5G``), or else 0.9 of
    the memory of the machine or container.

    >>> import cygrad
    >>> cygrad.get_memory_limit() >= 0
    True
    """
    return memory_pool.memory_limit()


def set_memory_limit(limit: int | None) -> int:
    """Set the maximal number of bytes for all arrays of 32 KB and more together; 0 or None means no limit.

    An operation that needs more raises a MemoryError that names the lines of the program that hold the most memory.
    Returns the former limit. Raises TypeError for non-ints, and ValueError for negative values.

    >>> import cygrad
    >>> former = cygrad.set_memory_limit(2**30)
    >>> cygrad.set_memory_limit(former)
    1073741824
    """
    if limit is not None and (not isinstance(limit, int) or isinstance(limit, bool)):
        raise TypeError(f"set_memory_limit(): limit must be int or None, not {type(limit).__name__}")
    if limit is not None and not 0 <= limit < 2**62:
        raise ValueError(f"set_memory_limit(): {limit} is not a number of bytes")
    former = memory_pool.memory_limit()
    memory_pool.set_memory_limit(limit or 0)
    return former


def explained(text):
    """Return the text of a MemoryError, with the memory in use and the lines that hold it."""
    used = memory_pool.counters()[0]["allocated_bytes"][0]
    head = f"{text}\nLarge arrays take up {_size(used)}; the limit is {_limit_text()} (cygrad.set_memory_limit)."
    return "\n".join([head, *_largest_holders()])


def gpu_is_full(size, device, text):
    """Return the error for `size` bytes that a GPU cannot provide; `text` is CuPy's."""
    with cupy_library.on_device(device):
        free, total = cupy_library.cupy().cuda.runtime.memGetInfo()
    used, reserved = allocator.measured(device)
    limit = gpu_limit(device)
    lines = [
        f"CUDA out of memory. Tried to allocate {_binary(size)}. GPU {device} has a total capacity of {_binary(total)} "
        f"of which {_binary(free)} is free. Of the allocated memory {_binary(used)} is in use by tensors, and "
        f"{_binary(reserved - used)} is reserved but unallocated.",
        "  all memory that could be released was, and the allocation was retried"
        + (f"; the limit is {_binary(limit)} (torch.cuda.set_memory_limit)" if limit else ""),
        *(f"  {line}" for line in holders_on_gpu(device)),
    ]
    return OutOfMemoryError("\n".join(lines))


def gpu_limit(device):
    """Return the maximal number of bytes of the pool on a GPU; 0 if there is no limit."""
    with cupy_library.on_device(device):
        return allocator.pool().get_limit()


def holders_on_gpu(device):
    """Return text lines about the program lines whose arrays of 1 MB and more hold the most memory on a GPU."""
    return _largest_holders(allocator.holders(device))


def _binary(size):
    """Format a number of bytes as PyTorch does."""
    if size < 1024:
        return f"{size} bytes"
    powers = {"GiB": 30, "MiB": 20, "KiB": 10}
    unit = next(name for name, power in powers.items() if size >= 1 << power)
    return f"{size / (1 << powers[unit]):.2f} {unit}"


def _limit_text():
    return _size(memory_pool.memory_limit()) if memory_pool.memory_limit() else "none"


def _largest_holders(held=None):
    """Return text lines about the program lines whose arrays hold the most memory."""
    if held is None:
        held = [((code, offset), 1, size) for code, offset, size in memory_pool.holders()]
    by_place = _totals(held)
    by_line = _totals((at(*place), count, total) for place, (count, total) in by_place.items())
    largest = sorted(by_line.items(), key=lambda item: -item[1][1])[:_LISTED]
    lines = [
        f"  {_size(total)} in {count} array{'s' if count > 1 else ''} made at {line}"
        for line, (count, total) in largest
    ]
    return ["The largest holders are", *lines] if lines else []


def _totals(items):
    """Aggregate (key, count, size) items to {key: (sum of counts, sum of sizes)}."""
    totals: dict[object, tuple[int, int]] = {}
    for key, count, size in items:
        counted, total = totals.get(key, (0, 0))
        totals[key] = counted + count, total + size
    return totals
