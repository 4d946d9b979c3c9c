"""The engine on NCCL, with a stand-in for NCCL whose ranks are threads."""

import re
import sys
import threading
import time
import types
from datetime import timedelta

import nccl_standin
import numpy as np
import pytest

import cygrad as torch
import cygrad.distributed as dist
from cygrad.distributed import ReduceOp
from cygrad.distributed._c10d.engines.fake import FakeWorld
from cygrad.distributed._c10d.groups import _made
from cygrad.distributed._c10d.supervision.guard import RankFailure
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
    return _made(dist.Backend(name), list(range(SIZE)), engine, "on GPUs", None, None, pg._timeout_given)


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


def test_reductions_of_several_tensors_are_one_group_of_calls(nccl):
    def reduces():
        pg, rank = group(), dist.get_rank()
        me = threading.current_thread().name
        tensors = [on_gpu([rank + 1.0]), on_gpu([rank, 1], torch.int16), on_gpu(numbers(rank))[::2]]
        pg.allreduce_coalesced(tensors).wait()
        assert nccl_standin.groups.count(me) == 1
        y = torch.zeros(SIZE, device="cuda")
        with dist._coalescing_manager(pg) as manager:
            dist.all_reduce(tensors[0], group=pg)
            dist.all_gather_into_tensor(y, on_gpu([rank + 0.5]), group=pg)
            assert y.tolist() == [0] * SIZE and tensors[0].item() == 6
            with pytest.raises(RuntimeError, match="wait for it behind the block"):
                manager.works[0]._handles[0].wait()
        assert nccl_standin.groups.count(me) == 2
        return [each.tolist() for each in [*tensors, y]]

    odd = np.sum([numbers(rank) for rank in range(SIZE)], 0)[::2].tolist()
    assert simulate(reduces, SIZE) == [[[18.0], [3, 3], odd, [0.5, 1.5, 2.5]]] * SIZE


def test_the_coalescing_manager_on_the_cpu():
    def reduces():
        x, y = torch.ones(2), torch.tensor([dist.get_rank()])
        with dist._coalescing_manager(async_ops=True) as manager:
            dist.all_reduce(x)
            dist.all_reduce(y)
        manager.wait()
        dist.all_reduce(x)
        return x.tolist(), y.item()

    assert simulate(reduces, SIZE) == [([9.0, 9.0], 3)] * SIZE


def test_sends_and_receipts_in_a_ring_do_not_wait_for_each_other(nccl):
    def passes_on():
        pg, rank = group(), dist.get_rank()
        x, y = on_gpu([rank + 0.0]), on_gpu([0.0])
        calls = [
            dist.P2POp(dist.isend, x, (rank + 1) % SIZE, pg),
            dist.P2POp(dist.irecv, y, (rank - 1) % SIZE, pg),
        ]
        for work in dist.batch_isend_irecv(calls):
            work.wait()
        return y.item()

    assert simulate(passes_on, SIZE) == [2.0, 0.0, 1.0]


class Hanging:
    """Events of the GPU that do not come until the communicator is aborted."""

    def __init__(self, monkeypatch):
        self.is_on = False
        real = torch.cuda.Event.query
        monkeypatch.setattr(torch.cuda.Event, "query", lambda event: not self.is_on and real(event))


def through(pg):
    """Wait until the watchdog has seen that all is through."""
    engine, end = pg._engines["cuda"], time.monotonic() + 30
    while engine._under_way:
        assert time.monotonic() < end
        time.sleep(0.01)


def failure_of(engine):
    """The error that the watchdog has found."""
    end = time.monotonic() + 30
    while engine.error is None:
        assert time.monotonic() < end
        time.sleep(0.01)
    assert not engine._communicator.is_open and engine._communicator.aborted_by == "cygrad.distributed NCCL"
    return str(engine.error)


LINE = r"at test_nccl.py:\d+"


def test_a_transfer_that_lasts_too_long_is_aborted(nccl, monkeypatch):
    hanging = Hanging(monkeypatch)

    def waits():
        pg, x = group(), on_gpu([1.0])
        dist.all_reduce(x, group=pg)
        through(pg)
        dist.barrier()
        hanging.is_on = True
        work = dist.all_reduce(x, group=pg, async_op=True)
        work.wait(timedelta(seconds=0.3))  # lets the stream wait, and returns
        text = failure_of(pg._engines["cuda"])
        for call in (lambda: dist.all_reduce(x, group=pg), lambda: dist.broadcast(x, 0, group=pg)):
            with pytest.raises(dist.DistBackendError) as found:
                call()
            assert str(found.value) == text
        return text

    for rank, text in enumerate(simulate(waits, SIZE)):
        assert re.fullmatch(rf"\[rank {rank}\] all_reduce of 4 bytes {LINE}: timed out after \d\.\d s", text), text


def test_an_error_of_nccl_names_rank_collective_and_line(nccl, monkeypatch):
    hanging = Hanging(monkeypatch)

    def fails():
        pg, x = group(), on_gpu([1.0, 2.0])
        dist.all_reduce(x, group=pg)
        through(pg)
        dist.barrier()
        hanging.is_on = True
        work = dist.broadcast(x, 1, group=pg, async_op=True)
        pg._engines["cuda"]._communicator.failure = "NCCL_ERROR_REMOTE_ERROR: remote process exited"
        text = failure_of(pg._engines["cuda"])
        with pytest.raises(dist.DistBackendError, match="REMOTE_ERROR"):
            work.wait()
        return text

    for rank, text in enumerate(simulate(fails, SIZE)):
        assert re.fullmatch(rf"\[rank {rank}\] broadcast of 8 bytes {LINE}: NCCL: NCCL_ERROR_REMOTE.* exited", text)


def test_a_failure_of_another_rank_aborts_and_ends_the_job(nccl, monkeypatch):
    hanging = Hanging(monkeypatch)
    ended = []

    def waits():
        pg, x = group(), on_gpu([1.0])
        engine = pg._engines["cuda"]
        engine._guard = types.SimpleNamespace(end_later=ended.append)
        dist.all_reduce(x, group=pg)
        through(pg)
        dist.barrier()
        hanging.is_on = True
        work = dist.all_reduce(x, group=pg, async_op=True)

        def watch(waited):
            raise RankFailure("rank 2 has failed: ValueError: bad batch")

        (handle,) = work._handles
        handle.wait(None, watch)
        return failure_of(engine)

    texts = simulate(waits, SIZE)
    assert all("all_reduce of 4 bytes" in text and "rank 2 has failed: ValueError: bad batch" in text for text in texts)
    assert sorted(map(str, ended)) == texts


def test_buckets_are_reduced_on_a_stream_beside_backward(nccl):
    def trains():
        pg, rank, order = group("nccl"), dist.get_rank(), []
        torch.manual_seed(0)
        inner = torch.nn.Sequential(*(torch.nn.Linear(4, 4) for _ in range(3))).cuda()
        model = torch.nn.parallel.DistributedDataParallel(inner, process_group=pg, bucket_cap_mb_list=[1e-6])
        engine = pg._engines["cuda"]
        real = engine._communicator.allReduce

        def all_reduce(*args):
            order.append("reduce")
            assert args[-1] == engine._stream.cuda_stream != torch.cuda.current_stream().cuda_stream
            real(*args)

        engine._communicator.allReduce = all_reduce
        for layer in inner:
            layer.weight.register_hook(lambda gradient: order.append("gradient"))
        model(torch.full((2, 4), rank + 1.0, device="cuda")).sum().backward()
        plain = torch.nn.Sequential(*(torch.nn.Linear(4, 4) for _ in range(3))).cuda()
        plain.load_state_dict(inner.state_dict())
        for each in range(SIZE):
            (plain(torch.full((2, 4), each + 1.0, device="cuda")).sum() / SIZE).backward()
        for a, b in zip(inner.parameters(), plain.parameters()):
            torch.testing.assert_close(a.grad, b.grad)
        return order

    for order in simulate(trains, SIZE):
        assert order.count("reduce") == 6 and order.index("reduce") < len(order) - 1 - order[::-1].index("gradient")


def test_sharded_training_on_gpus(nccl):
    """Everything that is made of collectives gives them tensors on the GPU: a group for NCCL alone has no other."""
    from cygrad.distributed.fsdp import fully_shard

    def made():
        with lock:
            torch.manual_seed(0)
            layers = torch.nn.Linear(4, 6), torch.nn.SyncBatchNorm(6), torch.nn.Linear(6, 2)
            return torch.nn.Sequential(*layers).cuda()

    def steps(model, optimizer, inputs):
        for x in inputs:
            optimizer.zero_grad()
            model(x).square().sum().backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 0.5)
            optimizer.step()

    lock = threading.Lock()
    batches = np.random.default_rng(0).standard_normal((3, SIZE, 2, 4)).astype(np.float32)

    def trains(kind):
        world = current()
        world.default = pg = group("nccl")
        pg.group_desc = "default_pg"
        x = [torch.from_numpy(each[dist.get_rank()]).cuda() for each in batches]
        model = made()
        if kind == "sharded":
            for layer in (model[0], model[2]):
                fully_shard(layer, mesh=dist.DeviceMesh.from_group(pg, "cuda"))
            fully_shard(model, mesh=dist.DeviceMesh.from_group(pg, "cuda"))
            steps(model, torch.optim.SGD(model.parameters(), lr=0.1), x)
            return [p.full_tensor().cpu() for p in model.parameters()]
        wrapped = torch.nn.parallel.DistributedDataParallel(model, bucket_cap_mb_list=[1e-4])
        optimizer = dist.optim.ZeroRedundancyOptimizer(model.parameters(), torch.optim.SGD, lr=0.1)
        steps(wrapped, optimizer, x)
        with wrapped.join():
            wrapped(x[0]).sum().backward()
        assert not dist.should_stop()
        dist.mean_loss(wrapped(x[0]).sum(), 3).backward()
        return [p.detach().cpu() for p in model.parameters()]

    def alone():
        model = made()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for each in batches:
            optimizer.zero_grad()
            (model(torch.from_numpy(each.reshape(-1, 4)).cuda()).square().sum() / SIZE).backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 0.5)
            optimizer.step()
        return [p.detach().cpu() for p in model.parameters()]

    expected = alone()
    for kind in ("sharded", "zero"):
        for found in simulate(trains, SIZE, kind):
            torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)


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
