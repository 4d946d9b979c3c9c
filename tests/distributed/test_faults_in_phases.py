"""A rank that is killed, raises, is interrupted or leaves, in each phase of a training: all end, and say where."""

import os
import re
import sys
import time
from pathlib import Path

import pytest
from mpi_runs import ended, mpiexec, needs_mpi

from cygrad.distributed._c10d.board import is_alive

pytestmark = needs_mpi
PHASES = "forward", "backward", "hook", "collective", "checkpoint"
WAYS = "kill", "raise", "interrupt", "leave"


def files():
    """Those in shared memory that MPI, or we, may leave. Tests that run beside these have jobs of their own."""
    if os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1") != "1":
        return set()
    return {each.name for each in Path("/dev/shm").glob("*") if each.name.startswith(("mpich", "cygrad"))}


def nothing_is_left(output, before):
    """No process, and no file that was not there before."""
    pids = re.findall(r"^pid (\d+)", output, re.M)
    end = time.monotonic() + 10
    while any(is_alive(int(pid)) for pid in pids) or files() - before:
        assert time.monotonic() < end, (pids, files() - before)
        time.sleep(0.05)


CASES = [
    pytest.param(phase, rank, how, marks=() if (phase, rank, how) == ("hook", 1, "raise") else pytest.mark.slow)
    for phase in PHASES
    for rank in (0, 1)
    for how in WAYS
]


@pytest.mark.parametrize(("phase", "rank", "how"), CASES)
def test_training(phase, rank, how, tmp_path):
    before = files()
    code, output = mpiexec(2, "phases.py", phase, rank, how, tmp_path, timeout=30)
    assert code != 0 and "through" not in output, output
    place = r"#\d+ .* at phases.py:\d+"
    other = rf"rank {1 - rank} \(pid \d+\) ((waited in|after) {place}|failed: RankFailure: .*\n *after {place})"
    assert re.search(other, output), output
    if how in ("raise", "interrupt"):
        error = "KeyboardInterrupt" if how == "interrupt" else f"ValueError: wrong in {phase}"
        assert re.search(rf"rank {rank} (\(pid \d+\) failed|has failed): {error} at phases.py:\d+", output), output
    nothing_is_left(output, before)


@pytest.mark.slow
@pytest.mark.parametrize("phase", ["init", "exit"])
@pytest.mark.parametrize("how", ["kill", "raise", "interrupt"])
def test_before_and_behind(phase, how, tmp_path):
    """What fails before MPI has started would leave the others waiting in its start; what fails at exit may pass."""
    code, output = mpiexec(2, "phases.py", phase, 1, how, tmp_path, timeout=30)
    assert code != 0 or (phase == "exit" and how != "kill"), output
    assert phase == "exit" or "through" not in output
    if how == "raise":
        assert f"ValueError: wrong in {phase}" in output


@pytest.mark.slow
@pytest.mark.parametrize("code", ["sys.exit('no data')", "sys.exit(3)", "1 / 0"])
def test_run_ends_a_job_that_fails_before_it_begins(code, tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        "import os, sys, cygrad.distributed as dist\n"
        f"if os.environ['RANK'] == '1':\n    {code}\n"
        "dist.init_process_group()\nprint('through')\n"
    )
    line = [sys.executable, "-m", "cygrad.distributed.run", "--nproc-per-node", "2", str(script)]
    status, output = ended(line, timeout=30)
    assert status != 0 and "through" not in output, output
    assert "no data" not in code or "no data" in output


@pytest.mark.slow
def test_a_group_that_one_rank_does_not_make(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        "import sys, time, cygrad.distributed as dist\nfrom datetime import timedelta\n"
        "dist.init_process_group(timeout=timedelta(seconds=1.5))\n"
        "if dist.get_rank() == 0:\n    dist.new_group([0, 1])\n"
        "time.sleep(60)\n"
    )
    code, output = ended(
        [os.path.join(os.path.dirname(sys.executable), "mpiexec"), "-n", "2", sys.executable, str(script)], timeout=30
    )
    assert code != 0
    assert "Timed out waiting 1500ms for all ranks of new_group([0, 1]) at script.py:5" in output, output
    assert re.search(r"rank 1 \(pid \d+\) before its first collective, its program is at script.py:6", output), output
