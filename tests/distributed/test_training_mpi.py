"""Training by processes of MPI: the checks of `test_ranks.py`, equal bits, and checkpoints."""

import pytest
from mpi_runs import mpiexec, needs_mpi
from support import data_parallel_checks, sharding_checks

pytestmark = needs_mpi


# More processes than there may be processors, which wait for each other: ten seconds and more.
crowded = pytest.mark.slow


@pytest.mark.parametrize("size", [2, pytest.param(4, marks=crowded)])
def test_training(size):
    code, output = mpiexec(size, "training.py", timeout=180)
    assert code == 0, output
    assert output.split() == [*data_parallel_checks.CHECKS, *sharding_checks.CHECKS]


@pytest.mark.parametrize("sizes", [(1, 2), pytest.param((1, 3, 4), marks=crowded)])
def test_the_same_bits_for_any_number_of_processes(sizes):
    results = [mpiexec(size, "in_order.py") for size in sizes]
    assert results[0][0] == 0 and len(results[0][1].splitlines()) == 3, results[0][1]
    assert all(result == results[0] for result in results), results


@crowded
@pytest.mark.parametrize("kind", ["sharded", "zero"])
def test_four_processes_save_and_three_load(kind, tmp_path):
    for size, what in ((4, "save"), (2, "kill")):  # the second dies before it has replaced what the first has written
        code, output = mpiexec(size, "saves.py", kind, what, tmp_path, timeout=120)
        assert (code == 0) == (what == "save"), output
    loaded = [mpiexec(size, "saves.py", kind, "load", tmp_path, timeout=120) for size in (3, 1)]
    assert loaded[0][0] == 0 and loaded[0] == loaded[1], loaded


def test_saving_in_another_thread(tmp_path):
    code, output = mpiexec(3, "saves.py", "sharded", "async", tmp_path, timeout=120)
    assert code == 0, output
    code, output = mpiexec(2, "saves.py", "sharded", "load", tmp_path, timeout=120)
    assert code == 0 and "words.weight" in output, output
