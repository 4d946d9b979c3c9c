"""Worlds of processes on MPI: collectives, and what happens when a rank fails, is killed, or calls something else."""

import re
import sys
import time
from pathlib import Path

import pytest
from collective_checks import CHECKS
from mpi_runs import PROGRAMS, ended, mpiexec, needs_mpi

from cygrad.distributed._c10d.supervision.board import is_alive

pytestmark = needs_mpi

FAULTS = (PROGRAMS / "faults.py").read_text().splitlines()


def line_of(text):
    """Where the program of faults has a text, as "faults.py:12"."""
    return next(f"faults.py:{number}" for number, line in enumerate(FAULTS, 1) if text in line)


WAITS_AT = line_of("# the call that the others wait in")


@pytest.mark.parametrize("size", [2, pytest.param(4, marks=pytest.mark.slow)])
def test_collectives(size):
    code, output = mpiexec(size, "collectives.py")
    assert code == 0, output
    assert output.split() == list(CHECKS)


def failed(how, size=3, limit=60, **variables):
    """The output of a world in which rank 1 goes wrong; none of its processes is left."""
    code, output = mpiexec(size, "faults.py", how, limit, timeout=90, **variables)
    assert code != 0 and "all through" not in output, output
    pids = set(re.findall(r"rank \d \(pid (\d+)\)", output))
    assert len(pids) == size, output
    end = time.monotonic() + 30
    while any(is_alive(int(pid)) for pid in pids):  # those that were killed last may still be on their way out
        assert time.monotonic() < end, f"of {pids}, some are left"
        time.sleep(0.05)
    return output


def others_waited(output, ranks=(0, 2)):
    for rank in ranks:
        assert re.search(
            rf"^  rank {rank} \(pid \d+\) waited in #4 all_reduce of \(1000,\) float32 at {WAITS_AT}$", output, re.M
        ), output


def test_a_rank_that_raises():
    output = failed("raises")
    where = line_of('ValueError("bad batch")')
    assert f"  rank 1 has failed: ValueError: bad batch at {where}" not in output
    for rank in (0, 2):
        assert (
            f"[rank {rank}] cygrad.distributed.RankFailure: rank 1 has failed: ValueError: bad batch at {where}"
            in output
        )
    assert "[rank 1] ends the job: ValueError: bad batch" in output
    others_waited(output)


def test_a_rank_that_raises_in_backward():
    output = failed("raises in backward")
    assert f"rank 1 has failed: ZeroDivisionError: division by zero at {line_of('1 / 0')}" in output
    others_waited(output)


def test_a_rank_that_is_killed():
    output = failed("is killed")
    assert re.search(r"on this machine rank 1 \(pid \d+\) was the first to end \(killed\?\)", output), output
    assert re.search(rf"^  rank 1 \(pid \d+\) after #3 all_reduce of \(1000,\) float32 at {WAITS_AT}", output, re.M)
    others_waited(output)


def test_a_rank_that_leaves():
    output = failed("leaves")
    assert "RankFailure: rank 1 has left its program or the group, and does not come any more" in output
    assert re.search(r"rank 1 \(pid \d+\) has left its program, after #3 all_reduce", output), output


DONE = """
import sys, time
import cygrad as torch, cygrad.distributed as dist
from cygrad.distributed._c10d.supervision import guard
guard._LEFT_FOR = guard._ON_THE_WAY_FOR = 0.2
dist.init_process_group()
x = torch.ones(10)
dist.all_reduce(x)
if dist.get_rank() == 1:
    time.sleep(1.5)  # the others wait for this one, and not for rank 2, which leaves
for _ in range(2):
    dist.reduce(x, 0)
if dist.get_rank() == 2:
    sys.exit(0)
if dist.get_rank() == 1:
    time.sleep(1)
    dist.send(x, 0)
else:
    dist.recv(x, 1)
    print("met", x[0].item())
"""


def test_ranks_that_have_done_their_part_may_leave(tmp_path):
    script = tmp_path / "done.py"
    script.write_text(DONE)
    code, output = ended([Path(sys.executable).parent / "mpiexec", "-n", "3", sys.executable, script])
    assert code == 0 and output == "met 3.0\n", output


def test_a_rank_that_fails_on_another_machine():
    code, output = mpiexec(3, "faults.py", "fails elsewhere", 60, timeout=90)
    assert code != 0 and "all through" not in output
    assert re.search(r"\[rank 1\] ends the job: ValueError: bad batch\n  rank 1 \(pid \d+\) failed: ", output), output
    text = f"rank 1 has failed: ValueError: bad batch at {line_of('ValueError(')}\n"
    for rank in (0, 2):
        assert f"[rank {rank}] cygrad.distributed.RankFailure: {text}  this rank waited in #4 all_reduce" in output, (
            output
        )


def test_a_rank_that_is_slow_is_named_while_others_wait():
    code, output = mpiexec(2, "faults.py", "is slow", 60)
    assert code == 0 and output.count("all through") == 2, output
    assert re.search(rf"\[rank 0\] #4 all_reduce of \(1000,\) float32 at {WAITS_AT} has waited \d+ s for", output), (
        output
    )
    place = line_of("time.sleep(2)")
    assert re.search(rf"  rank 1 \(pid \d+\) after #3 all_reduce .*, its program is at {place}\n", output), output


def test_a_forked_process_is_not_a_rank():
    code, output = mpiexec(2, "faults.py", "forks", 60)
    assert code == 0 and output.count("all through") == 2, output
    assert "child: barrier: this process was forked after init_process_group, and is not one of the ranks" in output


def test_a_monitored_barrier_names_who_is_missing():
    output = failed("skips a monitored barrier")
    assert "RuntimeError: [Rank 0]: Ranks 1 failed to pass monitoredBarrier in 500 ms" in output
    assert "Rank 2 successfully reached monitoredBarrier, but received errors while waiting" in output


@pytest.mark.parametrize("how", ["is late", "is stopped"])
def test_a_rank_that_does_not_come(how):
    output = failed(how, limit=1.5)
    assert "Timed out waiting 1500ms for the collective to complete" in output
    others_waited(output)
    shown = (
        f"after #3 .*, its program is at {line_of('time.sleep(100)')}" if how == "is late" else "is stopped: after #3"
    )
    assert re.search(rf"rank 1 \(pid \d+\) {shown}", output), output


@pytest.mark.parametrize(
    ("how", "call", "text"),
    [
        ("calls another", "dist.broadcast", "broadcast of (1000,) float32, root 0"),
        ("has another shape", "x[:10]", "all_reduce of (10,) float32, RedOpType.SUM"),
        ("has another dtype", "x.double()", "all_reduce of (1000,) float64, RedOpType.SUM"),
        ("has another op", "ReduceOp.MAX", "all_reduce of (1000,) float32, RedOpType.MAX"),
    ],
)
def test_calls_that_differ_are_found_before_data_moves(how, call, text):
    output = failed(how, size=2, CYGRAD_DISTRIBUTED_DEBUG="1")
    assert "Detected mismatch between collectives on ranks, in #4; no data has moved:\n" in output
    assert f"  rank 0: all_reduce of (1000,) float32, RedOpType.SUM at {WAITS_AT}\n" in output
    assert f"  rank 1: {text} at {line_of(call)}\n" in output


UNEQUAL = """
import cygrad, cygrad.distributed as dist
dist.init_process_group("mpi")
rank = dist.get_rank()
for x in (cygrad.ones(50_000), cygrad.ones(20_000 + 1000 * rank)):
    try:
        dist.all_reduce(x)
    except dist.DistBackendError as error:
        print(f"{rank}: {error}", flush=True)
"""


def test_large_reductions_that_differ_are_found_without_comparing_calls():
    _, output = ended([Path(sys.executable).parent / "mpiexec", "-n", "2", sys.executable, "-c", UNEQUAL])
    for rank, other in ((0, 1), (1, 0)):
        text = f"{rank}: all_reduce: rank {other} of the group calls it with another size, dtype or operation than rank"
        assert f"{text} {rank}\n  to fix it: set CYGRAD_DISTRIBUTED_DEBUG=1" in output


def test_nothing_differs():
    code, output = mpiexec(2, "collectives.py", CYGRAD_DISTRIBUTED_DEBUG="1")
    assert code == 0 and output.split() == list(CHECKS), output


SINGLETONS = """
import os, sys
os.environ.update({"PMI_RANK": "1", "PMI_SIZE": "4"}) if sys.argv[1] == "later" else None
from mpi4py import MPI
os.environ.update({"PMI_RANK": "1", "PMI_SIZE": "4"})
import cygrad.distributed as dist
dist.init_process_group("gloo")
"""


def test_processes_that_do_not_find_each_other():
    code, output = ended([sys.executable, "-c", SINGLETONS, "now"])
    assert code == 1
    assert "mpiexec has started 4 processes, and MPI sees 1: each would train alone" in output
    assert "python -m cygrad.distributed.run --nproc-per-node 4" in output
