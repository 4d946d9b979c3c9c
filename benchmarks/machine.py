"""Description of the machine, and thread limits for all libraries."""

from __future__ import annotations

import os
import platform
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
from threadpoolctl import threadpool_info, threadpool_limits

import cygrad


def usable_cpus() -> int:
    """Return the number of CPUs that this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # macOS, Windows
        return os.cpu_count() or 1


def limit_threads(count: int, torch: ModuleType | None) -> None:
    """Limit cygrad, PyTorch and the BLAS libraries to the same number of threads."""
    threadpool_limits(count)
    cygrad.set_num_threads(count)
    if torch is not None:
        torch.set_num_threads(count)


def describe(threads: int, torch: ModuleType | None) -> dict[str, str]:
    """Return processor, thread count and versions, by name."""
    blas = {f"{lib['internal_api']} {lib['version']}" for lib in threadpool_info()}
    return {
        "processor": f"{_processor()}, {usable_cpus()} usable of {os.cpu_count()}",
        "threads": f"{threads} for cygrad, for PyTorch and for BLAS",
        "system": f"{platform.system()} {platform.machine()}",
        "Python": platform.python_version() + ("" if _has_gil() else ", free-threaded"),
        "cygrad": cygrad.__version__,
        "NumPy": f"{np.__version__}, {', '.join(sorted(blas)) or 'unknown BLAS'}",
        "PyTorch": torch.__version__ if torch is not None else "not installed",
    }


def _processor() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def _has_gil() -> bool:
    return getattr(sys, "_is_gil_enabled", lambda: True)()
