"""The engine on NCCL, with a stand-in for NCCL whose ranks are threads."""

import sys

import nccl_standin
import numpy as np
import pytest

import cygrad as torch
import cygrad.distributed as dist
from cygrad.distributed import ReduceOp
from cygrad.distributed._c10d.fake import FakeWorld
from cygrad.distributed._c10d.groups import _made
from cygrad.distributed._c10d.world import current
from cygrad.distributed._fake import simulate

pytestmark = pytest.mark.gpu
SIZE = 3


@pytest.fixture
def nccl(cupy, monkeypatch):
    import cupy_standin

    if not cupy_standin.is_installed():
        pytest.skip("one GPU cannot be several ranks of NCCL; two have not been tried")
    module = nccl_standin.module()
    monkeypatch.setitem(sys.modules, "cupy.cuda.nccl", module)
    monkeypatch.setattr(sys.modules["cupy.cuda"], "nccl", module, raising=False)
    return module


def group(name="cpu:gloo,cuda:nccl"):
    """A group of all ranks with NCCL for tensors on GPUs."""
    pg = dist.group.WORLD
    engine = current().connection.engine.split(list(range(SIZE)))
    return _made(dist.Backend(name), list(range(SIZE)), engine, "", None, None, pg._timeout_given)


def on_gpu(values, dtype=torch.float32):
    return torch.tensor(values, dtype=dtype, device="cuda")


def numbers(rank):
    return [rank + 1.0, rank * 2.0, 1.0, 0.0, rank + 0.0, 1.0]


@pytest.mark.parametrize(
    "dtype", [torch.float32, torch.float16, torch.float64, torch.int64, torch.int16, torch.uint8, torch.complex64]
)
def test_reductions(nccl, dtype):
    total = np.sum([numbers(rank) for rank in range(SIZE)], 0).tolist()

    def reduces():
        pg, rank = group(), dist.get_rank()
        x = on_gpu(numbers(rank)).to(dtype)
        dist.all_reduce(x, group=pg)
        y = on_gpu(numbers(rank)).to(dtype)[::2]
        dist.reduce(y, 1, group=pg)
        z = torch.zeros(2, device="cuda").to(dtype)
        work = dist.reduce_scatter_tensor(z, on_gpu(numbers(rank)).to(dtype), group=pg, async_op=True)
        assert work.wait() and work.is_completed()
        return [each.cpu().tolist() for each in (x, y, z)]

    for rank, (x, y, z) in enumerate(simulate(reduces, SIZE)):
        assert x == total and z == total[2 * rank : 2 * rank + 2]
        assert y == (total if rank == 1 else numbers(rank))[::2]


def test_other_reductions(nccl):
    def reduces():
        pg, rank = group(), dist.get_rank()
        results = []
        for op in (ReduceOp.AVG, ReduceOp.MAX, ReduceOp.MIN, ReduceOp.PRODUCT):
            x = on_gpu([rank + 1.0])
            dist.all_reduce(x, op, group=pg)
            results.append(x.item())
        x = on_gpu([rank == 1, False], torch.bool)
        dist.all_reduce(x, group=pg)
        with pytest.raises(ValueError, match="^Cannot use ReduceOp.BAND with NCCL"):
            dist.all_reduce(on_gpu([1], torch.int32), ReduceOp.BAND, group=pg)
        return [*results, *x.tolist()]

    assert simulate(reduces, SIZE) == [[2.0, 3.0, 1.0, 6.0, True, False]] * SIZE


def test_moves(nccl):
    def moves():
        pg, rank = group(), dist.get_rank()
        x = on_gpu(numbers(rank))
        dist.broadcast(x, 2, group=pg)
        assert x.tolist() == numbers(2)
        mine = on_gpu([rank + 0.5])
        outputs = [torch.zeros(1, device="cuda") for _ in range(SIZE)]
        dist.all_gather(outputs, mine, group=pg)
        assert [each.item() for each in outputs] == [0.5, 1.5, 2.5]
        gathered = [torch.zeros(1, device="cuda") for _ in range(SIZE)] if rank == 1 else None
        dist.gather(mine, gathered, 1, group=pg)
        assert rank != 1 or [each.item() for each in gathered] == [0.5, 1.5, 2.5]
        y = torch.zeros(1, device="cuda")
        dist.scatter(y, [on_gpu([10.0 + i]) for i in range(SIZE)] if rank == 0 else None, 0, group=pg)
        assert y.item() == 10 + rank
        z = torch.zeros(SIZE, device="cuda")
        dist.all_to_all_single(z, on_gpu([10.0 * rank + i for i in range(SIZE)]), group=pg)
        assert z.tolist() == [10.0 * i + rank for i in range(SIZE)]
        if rank == 0:
            dist.send(mine, 1, group=pg)
        if rank == 1:
            assert dist.recv(y, 0, group=pg) == 0 and y.item() == 0.5
            with pytest.raises(RuntimeError, match="does not support recvAnysource"):
                dist.recv(y, group=pg)
        dist.barrier(pg)
        objects = [None] * SIZE
        dist.all_gather_object(objects, rank, group=pg)
        assert objects == [0, 1, 2]

    simulate(moves, SIZE)


def test_calls_are_made_on_a_stream_of_the_group(nccl):
    def begins():
        pg = group()
        dist.all_reduce(on_gpu([1.0]), group=pg)
        engine = pg._engines["cuda"]
        assert engine._communicator.streams == {engine._stream.cuda_stream}
        assert engine._stream != torch.cuda.current_stream()
        dist.destroy_process_group(pg)
        assert engine._communicator is None

    simulate(begins, SIZE)


def test_tensors_of_the_cpu_are_refused(nccl):
    def refused():
        with pytest.raises(RuntimeError, match="^No backend type associated with device type cpu"):
            dist.all_reduce(torch.ones(1), group=group("nccl"))

    simulate(refused, SIZE)


def test_tensors_of_gpus_over_the_main_memory(nccl):
    def staged():
        x = on_gpu([1.0, dist.get_rank()])
        dist.all_reduce(x)
        return x.tolist()

    assert simulate(staged, SIZE, world=FakeWorld(SIZE)) == [[3.0, 3.0]] * SIZE
