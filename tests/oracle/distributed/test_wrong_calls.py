"""More than 350 wrong calls in two processes: the same errors as PyTorch's with gloo."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from mpi_runs import environment, needs_mpi

pytestmark = [pytest.mark.oracle, needs_mpi]

PROGRAM = Path(__file__).with_name("wrong_calls.py")
NOT_A_GROUP = "PyTorch uses as a group, or looks up, whatever it is given"
NOT_A_MEMBER = "PyTorch has the number that stands for a group without this process in its list of groups"
# What is answered otherwise, and why.
OTHERWISE = {
    "all_to_all_single of three": "PyTorch leaves out the element that cannot be divided",
    "all_reduce in a destroyed group": "PyTorch's group goes on",
    "split_group": "PyTorch splits groups of NCCL alone",
    "new_group with an unknown backend": "PyTorch looks at the name in members only",
    "destroy group [0, 1]": NOT_A_GROUP,
    **{f"{name} in group [0, 1]": NOT_A_GROUP for name in ("all_reduce", "broadcast", "get_rank")},
    **{f"barrier in group {group}": NOT_A_GROUP for group in ("here", 3, [0, 1])},
    **{f"get_world_size in group {group}": NOT_A_GROUP for group in ("here", 3, [0, 1])},
    **{
        f"{name} in the group of 0": NOT_A_MEMBER
        for name in ("isend", "send", "get_process_group_ranks", "get_group_rank", "get_global_rank", "coalescing")
    },
}  # fmt: skip


def run(*lines):
    """Run these commands at the same time; fails with their output if one does."""
    processes = [
        subprocess.Popen(
            [*map(str, line)],
            env=environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for line in lines
    ]
    try:
        for process in processes:
            output, _ = process.communicate(timeout=200)
            assert process.returncode == 0, output
    finally:
        for process in processes:
            process.terminate()
            process.wait()


def test_wrong_calls(tmp_path):
    run(*([sys.executable, PROGRAM, "torch", tmp_path, rank] for rank in range(2)))
    mpiexec = Path(sys.executable).parent / "mpiexec"
    run([mpiexec, "-n", "2", sys.executable, PROGRAM, "cygrad", tmp_path])
    different = set()
    for rank in range(2):
        ours, theirs = (json.loads((tmp_path / f"{name}-{rank}.json").read_text()) for name in ("cygrad", "torch"))
        assert len(theirs) > 350 and ours.keys() == theirs.keys()
        for name, expected in theirs.items():
            if name in OTHERWISE:
                different |= {name} if ours[name] != expected else set()
            else:
                assert ours[name] == expected, f"rank {rank}: {name}"
    assert different == OTHERWISE.keys()  # none of them is out of date
