"""What a launcher (`mpiexec`, `srun`, `cygrad.distributed.run`) tells a process in its environment."""

import os
import sys
from typing import NamedTuple

__all__ = ["Launch", "command", "fill_environment", "launched"]


class Launch(NamedTuple):
    """Who started this process, and which of how many it is: of all, and of those on this machine (-1: not told)."""

    launcher: str
    rank: int
    size: int
    local_rank: int = -1
    local_size: int = -1


# Launcher, and its variables for rank, size, local rank and local size; the first that has set rank and size counts.
_VARIABLES = [
    ("Open MPI's mpiexec", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK",
     "OMPI_COMM_WORLD_LOCAL_SIZE"),
    ("mpiexec", "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS"),
    ("srun", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID", ""),
]  # fmt: skip


def launched():
    """What the launcher has told, or None if there was none."""
    for launcher, *names in _VARIABLES:
        rank, size, local_rank, local_size = (_number(name) for name in names)
        if rank >= 0 and size > 0:
            if launcher == "srun" and local_size < 0:
                local_size = _slurm_local_size()
            return Launch(launcher, rank, size, local_rank, local_size)
    return None


def _number(name):
    value = os.environ.get(name, "")
    return int(value) if value.isdecimal() else -1


def _slurm_local_size():
    """The number of tasks on this node, from e.g. "4(x2),3": 4 on each of the first two, 3 on the third."""
    node = _number("SLURM_NODEID")
    for part in os.environ.get("SLURM_STEP_TASKS_PER_NODE", "").split(","):
        tasks, _, times = part.partition("(x")
        node -= int(times.rstrip(")")) if times else 1
        if node < 0 and tasks.isdecimal():
            return int(tasks)
    return -1


def fill_environment():
    """Set the variables that torchrun sets, `RANK` and the like, where a launcher of MPI has not."""
    launch = launched()
    if launch is None or launch.size == 1 and "SLURM_PROCID" in os.environ:
        return  # srun sets its variables for programs of one process too, e.g. in `salloc`
    values = {
        "RANK": launch.rank,
        "WORLD_SIZE": launch.size,
        "LOCAL_RANK": launch.local_rank,
        "LOCAL_WORLD_SIZE": launch.local_size,
    }
    for name, value in values.items():
        if value >= 0:
            os.environ.setdefault(name, str(value))
    os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
    os.environ.setdefault("MASTER_PORT", "29500")


def command(size):
    """The line that starts this program as `size` processes."""
    program = " ".join(sys.argv) if sys.argv and sys.argv[0] not in ("", "-c") else "train.py"
    return f"mpiexec -n {size} python {program}"
