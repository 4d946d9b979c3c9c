"""What a launcher (`mpiexec`, `srun`, `cygrad.distributed.run`) tells a process in its environment.

This file has no imports of cygrad: `starting.py` runs it alone.
"""

import os
import signal
import sys
import time
from typing import NamedTuple

__all__ = [
    "Launch", "command", "end_job_on_failure", "end_killed", "fill_environment", "is_initialized", "launched",
]  # fmt: skip


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


def launched(variables=os.environ):
    """What the launcher has told a process with these variables, or None if there was none."""
    for launcher, *names in _VARIABLES:
        rank, size, local_rank, local_size = (_number(variables, name) for name in names)
        if rank >= 0 and size > 0:
            if launcher == "mpiexec" and local_rank < 0 and _is_task_of_slurm(variables, rank, size):
                launcher, local_rank = "srun", _number(variables, "SLURM_LOCALID")
            if launcher == "srun":
                local_size = _slurm_local_size(variables)
            return Launch(launcher, rank, size, local_rank, local_size)
    return None


def _is_task_of_slurm(variables, rank, size):
    """Whether `srun --mpi=pmi2` has set `PMI_RANK`, rather than an mpiexec that runs within a Slurm job."""
    told = _number(variables, "SLURM_PROCID"), _number(variables, "SLURM_STEP_NUM_TASKS")
    return told == (rank, size) and _number(variables, "SLURM_LOCALID") >= 0


def _number(variables, name):
    value = variables.get(name, "")
    return int(value) if value.isdecimal() else -1


def _slurm_local_size(variables):
    """The number of tasks on this node, from e.g. "4(x2),3": 4 on each of the first two, 3 on the third."""
    node = _number(variables, "SLURM_NODEID")
    for part in variables.get("SLURM_STEP_TASKS_PER_NODE", "").split(","):
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


def end_job_on_failure():
    """Let an exception that ends this program end the others of the job too, also before `init_process_group`.

    Launchers end a job of which a process is killed, but let those that wait for it in MPI's start hang if it has left.
    """
    launch = launched()
    if launch is None or launch.size == 1 or launch.launcher == "srun":
        return
    last = sys.excepthook

    def failed(kind, error, trace):
        last(kind, error, trace)
        if not is_initialized():
            end_killed()

    sys.excepthook = failed


def is_initialized():
    """Whether MPI has started in this process; then whoever fails ends the job by it."""
    module = sys.modules.get("mpi4py.MPI")
    return module is not None and module.Is_initialized()


def end_killed():
    """End this process by a signal, which the launcher takes for the end of the job."""
    sys.stdout.flush()
    sys.stderr.flush()
    time.sleep(0.5)  # for the launcher to pass on what was printed
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    os.kill(os.getpid(), signal.SIGTERM)


def command(size):
    """The line that starts this program as `size` processes."""
    program = " ".join(sys.argv) if sys.argv and sys.argv[0] not in ("", "-c") else "train.py"
    return f"mpiexec -n {size} python {program}"
