"""A rank that is killed, raises, is interrupted or leaves, in each phase of a training: all end, and say where."""

import re
import subprocess
import sys
import time
from pathlib import Path

import pytest
from mpi_runs import ended, mpiexec, needs_mpi

from cygrad.distributed._c10d.supervision import reporter
from cygrad.distributed._c10d.supervision.board import Board, is_alive

pytestmark = needs_mpi
PHASES = "forward", "backward", "hook", "collective", "checkpoint"
WAYS = "kill", "raise", "interrupt", "leave"


def nothing_is_left(output):
    """None of the processes, and no file that they have shared, is left."""
    pids = re.findall(r"^pid (\d+)", output, re.M)
    files = [Path(each) for each in re.findall(r"^file (\S+)", output, re.M)]
    end = time.monotonic() + 30
    while any(is_alive(int(pid)) for pid in pids) or any(file.exists() for file in files):
        assert time.monotonic() < end, (pids, files)
        time.sleep(0.05)


CASES = [
    pytest.param(phase, rank, how, marks=() if (phase, rank, how) == ("hook", 1, "raise") else pytest.mark.slow)
    for phase in PHASES
    for rank in (0, 1)
    for how in WAYS
]


@pytest.mark.parametrize(("phase", "rank", "how"), CASES)
def test_training(phase, rank, how, tmp_path):
    code, output = mpiexec(2, "phases.py", phase, rank, how, tmp_path, timeout=90)
    assert code != 0 and "through" not in output, output
    place = r"#\d+ .* at phases.py:\d+"
    other = rf"rank {1 - rank} \(pid \d+\) ((waited in|after) {place}|failed: RankFailure: .*\n *after {place})"
    assert re.search(other, output), output
    if how in ("raise", "interrupt"):
        error = "KeyboardInterrupt" if how == "interrupt" else f"ValueError: wrong in {phase}"
        assert re.search(rf"rank {rank} (\(pid \d+\) failed|has failed): {error} at phases.py:\d+", output), output
    nothing_is_left(output)


@pytest.mark.slow
@pytest.mark.parametrize("phase", ["init", "exit"])
@pytest.mark.parametrize("how", ["kill", "raise", "interrupt", "leave"])
def test_before_and_behind(phase, how, tmp_path):
    """What fails before MPI has started would leave the others waiting in its start; what fails at exit may pass."""
    code, output = mpiexec(2, "phases.py", phase, 1, how, tmp_path, timeout=90)
    assert code != 0 or (phase == "exit" and how != "kill"), output
    assert phase == "exit" or how != "leave" or "rank 1 has ended, and MPI cannot start without" in output, output
    assert phase == "exit" or "through" not in output
    if how == "raise":
        assert f"ValueError: wrong in {phase}" in output


MPIEXEC = Path(sys.executable).parent / "mpiexec"
MISSING = """
import os, sys, time
how = sys.argv[1] if os.environ["PMI_RANK"] == "1" else ""
if how == "leaves at once":
    os._exit(0)
import cygrad.distributed as dist
from datetime import timedelta
if how == "leaves":
    sys.exit(0)
if how == "is late":
    time.sleep(100)
dist.init_process_group(timeout=timedelta(seconds=60 if "leaves" in sys.argv[1] else 2))
print("through")
"""


@pytest.mark.parametrize(
    ("how", "why", "where"),
    [
        pytest.param("leaves at once", "rank 1 has ended, and MPI cannot start without", "", marks=pytest.mark.slow),
        ("leaves", "rank 1 has ended, and MPI cannot start without", r"(\n  rank 1 \(pid \d+\) has ended)?"),
        (
            "is late",
            "timed out after 2 s, in which not all ranks have come",
            r"\n  rank 1 \(pid \d+\) has not called init_process_group",
        ),
    ],
)
def test_a_rank_that_does_not_begin(how, why, where, tmp_path):
    """MPI's start waits for it without end, and keeps Python from running."""
    script = tmp_path / "missing.py"
    script.write_text(MISSING)
    code, output = ended([MPIEXEC, "-n", "2", sys.executable, script, how], timeout=90)
    assert code != 0 and "through" not in output
    waits = r"\n  rank 0 \(pid \d+\) waits in init_process_group"
    error = r"\[rank 0\] ends the job: RuntimeError: init_process_group\(\) at missing.py:12"
    assert re.search(f"^{error}: {why}{waits}{where}\n", output, re.M), output


@pytest.mark.slow
@pytest.mark.parametrize("code", ["sys.exit()", "sys.exit('no data')", "sys.exit(3)", "1 / 0"])
def test_run_ends_a_job_that_fails_before_it_begins(code, tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        "import os, sys, cygrad.distributed as dist\n"
        f"if os.environ['RANK'] == '1':\n    {code}\n"
        "dist.init_process_group()\nprint('through')\n"
    )
    line = [sys.executable, "-m", "cygrad.distributed.run", "--nproc-per-node", "2", str(script)]
    status, output = ended(line, timeout=90)
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
    code, output = ended([MPIEXEC, "-n", "2", sys.executable, str(script)], timeout=90)
    assert code != 0
    assert "Timed out waiting 1500ms for all ranks of new_group([0, 1]) at script.py:5" in output, output
    assert re.search(r"rank 1 \(pid \d+\) before its first collective, its program is at script.py:6", output), output


def test_what_was_shared_is_removed_though_all_have_ended_before_the_reporter_began(tmp_path):
    """On a busy machine a rank may be killed while the reporter still starts."""
    shared = tmp_path / "mpich_shm_0"
    shared.write_bytes(b"memory")
    gone = subprocess.run([sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True, check=True)
    with open(tmp_path / "board", "w+b") as file:
        Board(file.fileno(), 1, 1).enter(0, 0, int(gone.stdout))
        line = [sys.executable, "-I", reporter.__file__, str(file.fileno()), str(shared)]
        run = subprocess.run(line, pass_fds=[file.fileno()], capture_output=True, text=True, check=True)
    assert not shared.exists()
    assert f"rank 0 (pid {int(gone.stdout)}) was the first to end (killed?)" in run.stderr
