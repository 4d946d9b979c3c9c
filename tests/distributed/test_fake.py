"""Worlds of threads: every collective, worlds of 256 ranks, and what goes wrong."""

import threading
import time

import pytest
from collective_checks import CHECKS

import cygrad as torch
import cygrad.distributed as dist
from cygrad.distributed._c10d.engines.fake import FakeWorld
from cygrad.distributed._fake import simulate


@pytest.mark.parametrize("size", [2, 3, pytest.param(4, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", CHECKS)
def test_collectives(name, size):
    if name == "check_groups" and size == 3:
        pytest.skip("its pairs need an even number of ranks")
    simulate(CHECKS[name], size)


def test_a_large_world():
    def steps():
        x = torch.full((100,), float(dist.get_rank()))
        for _ in range(3):
            dist.all_reduce(x, dist.ReduceOp.AVG)
        half = dist.new_group(range(128))
        if dist.get_rank() < 128:
            dist.all_reduce(x, group=half)
        return x[0].item()

    world = FakeWorld(256)
    assert simulate(steps, 256, world=world) == [127.5 * 128] * 128 + [127.5] * 128
    assert [name for name, ranks, size in world.calls] == ["all_reduce"] * 4


def test_a_rank_that_fails_ends_all():
    seen = []

    def fails():
        try:
            if dist.get_rank() == 2:
                raise ZeroDivisionError("bad batch")
            dist.barrier()
        except dist.DistBackendError as error:
            seen.append(str(error))
            raise

    with pytest.raises(ZeroDivisionError, match="bad batch"):
        simulate(fails, 4)
    assert seen == ["rank 2 has failed: ZeroDivisionError: bad batch"] * 3


def test_ranks_that_do_not_come_are_named():
    def stays_away():
        if dist.get_rank() != 1:
            dist.barrier()

    begin = time.monotonic()
    with pytest.raises(dist.DistBackendError, match=r"Timed out waiting 200ms.*\n.*have not come: \[1\]"):
        simulate(stays_away, 3, timeout=0.2)
    assert time.monotonic() - begin < 20


@pytest.mark.parametrize("call", [lambda x: dist.broadcast(x, 0), lambda x: dist.all_reduce(x[:1])])
def test_calls_that_differ(call):
    def differs():
        x = torch.ones(2)
        call(x) if dist.get_rank() == 1 else dist.all_reduce(x)

    with pytest.raises(dist.DistBackendError, match="rank 1 calls broadcast|all_reduce of different arrays"):
        simulate(differs, 2)


def test_this_process_is_not_concerned(group):
    def who():
        return dist.get_rank(), dist.get_world_size()

    assert simulate(who, 3) == [(0, 3), (1, 3), (2, 3)]
    assert who() == (0, 1) and threading.active_count() < 50
