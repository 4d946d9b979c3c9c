"""Memory and processors available to this process: its container may have less than the machine."""

import math
import os

FRACTION = 0.9  # of the memory; the rest is for the interpreter, small arrays and other programs
_UNITS = {"K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}
_ROOT = "/sys/fs/cgroup"


def memory_limit(environment=None):
    """Limit in bytes for large arrays: CYGRAD_MEMORY_LIMIT (such as 512M or 3.5G), or a fraction of the memory.

    0 means no limit. Raises ValueError for text that is not a size.
    """
    text = (os.environ if environment is None else environment).get("CYGRAD_MEMORY_LIMIT", "")
    return parsed_size(text) if text else int(FRACTION * usable_memory())


def parsed_size(text):
    """Parse a number of bytes from a text like 4096, 512M or 3.5G."""
    number, unit = text.strip().upper().removesuffix("B"), 1
    if number[-1:] in _UNITS:
        number, unit = number[:-1], _UNITS[number[-1]]
    try:
        size = float(number) * unit
        if not 0 <= size < 2**62:
            raise ValueError
    except ValueError:
        raise ValueError(f"CYGRAD_MEMORY_LIMIT is {text!r}, not a number of bytes such as 512M or 3.5G") from None
    return int(size)


def usable_memory():
    """Bytes of memory that this process may use at most; 0 if the system does not report it."""
    try:
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):  # Windows
        return 0
    limits = [int(text) for text in _cgroup_files("memory", "memory.max", "memory.limit_in_bytes") if text.isdigit()]
    return min([memory, *limits])


def usable_cpus():
    """The number of processors in this process's affinity mask, limited by its container's CPU quota."""
    try:
        cpus = len(os.sched_getaffinity(0))
    except AttributeError:  # macOS, Windows
        cpus = os.cpu_count() or 1
    quotas = [text.split() for text in _cgroup_files("cpu", "cpu.max", None)]
    periods = _cgroup_files("cpu", None, "cpu.cfs_period_us")
    quotas += [[quota, period] for quota, period in zip(_cgroup_files("cpu", None, "cpu.cfs_quota_us"), periods)]
    for quota, period in quotas:
        if quota.isdigit() and int(quota) > 0:
            cpus = min(cpus, math.ceil(int(quota) / int(period)))
    return max(cpus, 1)


def num_threads(environment=None):
    """The initial number of threads: CYGRAD_NUM_THREADS, or one per processor.

    The default is at most 16, because large arrays are memory-bound. Raises ValueError if the variable is not a
    positive number.
    """
    text = (os.environ if environment is None else environment).get("CYGRAD_NUM_THREADS", "")
    if not text:
        return min(usable_cpus(), 16)
    if not text.strip().isdigit() or int(text) == 0:
        raise ValueError(f"CYGRAD_NUM_THREADS is {text!r}, not a positive number")
    return int(text)


def _cgroup_files(controller, version2, version1):
    """Read a file of this process's control group and of all its ancestors, for either cgroup version."""
    found = []
    for line in _read("/proc/self/cgroup").splitlines():
        _, controllers, path = line.split(":", 2)
        if not controllers and version2:
            folder, name = _ROOT, version2
        elif controller in controllers.split(",") and version1:
            folder, name = f"{_ROOT}/{controllers}", version1
        else:
            continue
        parts = [part for part in path.split("/") if part]
        for n in range(len(parts), -1, -1):  # in a container the path may be the host's: then only the root exists
            found.append(_read("/".join([folder, *parts[:n], name])))
    return [text for text in found if text]


def _read(path):
    try:
        with open(path, encoding="utf-8") as file:
            return file.read().strip()
    except OSError:
        return ""


def size_text(n):
    """Format a number of bytes for people."""
    unit = "B"
    for larger in ("KB", "MB", "GB", "TB"):
        if n < 1024:
            break
        n, unit = n / 1024, larger
    return f"{n:.4g} {unit}"
