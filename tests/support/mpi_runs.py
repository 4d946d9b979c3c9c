"""Running programs as several processes of MPI."""

import os
import signal
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

import cygrad

SUPPORT = Path(__file__).resolve().parent
PROGRAMS = SUPPORT / "mpi_programs"

needs_mpi = pytest.mark.skipif(
    find_spec("mpi4py") is None or not (Path(sys.executable).parent / "mpiexec").exists(),
    reason="needs mpi4py and the mpiexec of the package mpich in this environment",
)


def environment(**variables):
    """This environment without what pytest or another launcher has put there; ranks use one thread each."""
    kept = {name: value for name, value in os.environ.items() if name not in ("RANK", "WORLD_SIZE", "LOCAL_RANK")}
    paths = [str(Path(cygrad.__file__).parents[1]), str(SUPPORT)]  # the package that is tested: often an installed one
    return (
        kept | {"PYTHONPATH": os.pathsep.join(paths), "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"} | variables
    )


def ended(command, timeout=120, **variables):
    """Run a command; returns its exit code and all that it has written. Fails if it is not through in time."""
    process = subprocess.Popen(
        command,
        env=environment(**variables),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        output, _ = process.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGTERM)  # mpiexec ends its processes then
        output, _ = process.communicate(timeout=20)
        pytest.fail(f"{command} was not through after {timeout} s; it wrote:\n{output}")
    return process.returncode, output


def mpiexec(size, program, *arguments, **options):
    """Run one of the programs in `mpi_programs` as `size` processes; returns exit code and output."""
    line = [str(Path(sys.executable).parent / "mpiexec"), "-n", str(size), sys.executable, str(PROGRAMS / program)]
    return ended([*line, *map(str, arguments)], **options)
