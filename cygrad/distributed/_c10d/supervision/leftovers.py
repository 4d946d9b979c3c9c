"""The files that MPI leaves in /dev/shm when its processes are killed.

This file has no imports of cygrad: `reporter.py` and `starting.py` read it alone.
"""

import os
import time

__all__ = ["files_of_mpi", "remove"]

_PATIENCE = 30  # seconds for all processes to end, before their files are left where they are


def files_of_mpi(pids):
    """The files in /dev/shm that MPICH shares between these processes; others end with the last one by themselves."""
    found = set()
    for pid in pids:
        try:
            with open(f"/proc/{pid}/maps", encoding="utf-8", errors="replace") as maps:
                found |= {line.split()[-1] for line in maps if "/dev/shm/mpich_shm_" in line and "(del" not in line}
        except OSError:  # it has ended, or this is no Linux
            continue
    return found


def remove(files, pids, is_alive):
    """Remove files once none of the processes that share them is left."""
    end = time.monotonic() + _PATIENCE
    while any(is_alive(pid) for pid in pids):
        if time.monotonic() > end:
            return
        time.sleep(0.05)
    for path in files:
        try:
            os.unlink(path)
        except OSError:  # MPI has removed it
            continue
