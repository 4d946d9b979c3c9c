"""Making, asking and leaving process groups."""

import pickle
import sys
from datetime import timedelta
from importlib.util import find_spec

import pytest

import cygrad as torch
import cygrad.distributed as dist

NO_GROUP = "^Default process group has not been initialized, please make sure to call init_process_group."


def test_without_a_group():
    assert dist.is_available() and not dist.is_initialized() and not dist.is_torchelastic_launched()
    assert dist.group.WORLD is None and dist.GroupMember.WORLD is None and dist.get_pg_count() == 0
    x = torch.ones(2)
    for call in (
        dist.get_rank,
        dist.get_world_size,
        dist.get_backend,
        dist.barrier,
        dist.new_group,
        lambda: dist.all_reduce(x),
        lambda: dist.all_gather_object([None], 1),
        lambda: torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(1, 1)),
        lambda: torch.utils.data.DistributedSampler(range(4)),
    ):
        with pytest.raises(ValueError, match=NO_GROUP):
            call()
    with pytest.raises(AssertionError, match="^Process group cannot be None"):
        dist.destroy_process_group()
    assert dist.get_rank(dist.GroupMember.NON_GROUP_MEMBER) == -1


def test_the_group_of_one_process(group):
    assert dist.is_initialized() and dist.group.WORLD is dist.GroupMember.WORLD is group
    assert (dist.get_rank(), dist.get_world_size(), dist.get_backend()) == (0, 1, "gloo")
    assert (group.rank(), group.size(), group.name(), group.group_desc) == (0, 1, "gloo", "default_pg")
    assert dist.get_process_group_ranks(None) == [0]
    with pytest.raises(ValueError, match="^trying to initialize the default process group twice!"):
        dist.init_process_group("gloo")


@pytest.mark.parametrize("way", ["env", "file", "tcp", "store"])
def test_ways_to_meet(way, tmp_path, monkeypatch):
    options = {}
    if way == "env":
        for name, value in (("RANK", 0), ("WORLD_SIZE", 1), ("MASTER_ADDR", "localhost"), ("MASTER_PORT", 29511)):
            monkeypatch.setenv(name, str(value))
    elif way == "file":
        options = {"init_method": f"file://{tmp_path}/meet", "rank": 0, "world_size": 1}
    elif way == "tcp":
        options = {"init_method": "tcp://127.0.0.1:29512", "rank": 0, "world_size": 1}
    else:
        options = {"store": dist.FileStore(str(tmp_path / "store"), 1), "rank": 0, "world_size": 1}
    dist.init_process_group("cpu:gloo", timeout=timedelta(seconds=5), **options)
    assert (dist.get_backend(), dist.get_backend_config()) == ("cpu:gloo", "cpu:gloo")
    dist.destroy_process_group()


def test_what_cannot_be_made_changes_nothing(monkeypatch):
    for name in ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"):
        monkeypatch.delenv(name, raising=False)
    store = dist.HashStore()
    with pytest.raises(ValueError, match="environment variable RANK expected, but not set"):
        dist.init_process_group("gloo")
    with pytest.raises(RuntimeError, match="no launcher that MPI knows has started this one(.|\n)*--nproc-per-node 2"):
        dist.init_process_group("gloo", store=store, rank=0, world_size=2)
    with pytest.raises(AssertionError, match="^Unknown backend type foo"):
        dist.init_process_group("foo", store=store, rank=0, world_size=1)
    with pytest.raises(RuntimeError, match="^rank < size. 3 vs 1"):
        dist.init_process_group("gloo", store=store, rank=3, world_size=1)
    with pytest.raises(TypeError, match="^Expected timeout argument to be of type datetime.timedelta"):
        dist.init_process_group("gloo", store=store, rank=0, world_size=1, timeout=3)
    with pytest.raises(RuntimeError, match="^No rendezvous handler for foo://"):
        dist.init_process_group("gloo", init_method="foo://")
    with pytest.raises(ValueError, match="file:// rendezvous: rank parameter missing"):
        dist.init_process_group("gloo", init_method="file:///tmp/never")
    if not torch.cuda.is_available():
        with pytest.raises(RuntimeError, match="^Distributed package doesn't have NCCL built in"):
            dist.init_process_group("nccl", store=store, rank=0, world_size=1)
    assert not dist.is_initialized()


def test_a_world_of_several_processes_from_the_environment(monkeypatch):
    for name, value in (("RANK", 1), ("WORLD_SIZE", 4), ("MASTER_ADDR", "localhost"), ("MASTER_PORT", 29513)):
        monkeypatch.setenv(name, str(value))
    with pytest.raises(RuntimeError, match="a world of 4 processes, and no launcher(.|\n)*mpiexec -n 4 python"):
        dist.init_process_group()
    assert not dist.is_initialized()


def test_further_groups(group):
    mine = dist.new_group([0], group_desc="mine")
    assert (mine.size(), mine.group_desc, dist.get_rank(mine), dist.get_world_size(mine)) == (1, "mine", 0, 1)
    assert dist.get_group_rank(mine, 0) == dist.get_global_rank(mine, 0) == 0
    one, every = dist.new_subgroups(1)
    assert every == [one]
    for ranks, message in (([1], "^Rank 1 is out of range"), ([0, 0], "must not contain duplicate entries")):
        with pytest.raises(ValueError, match=message):
            dist.new_group(ranks)
    with pytest.raises(ValueError, match=r"must not exceed the world size \(1\)"):
        dist.new_subgroups(2)
    dist.destroy_process_group(mine)
    with pytest.raises(ValueError, match="is not registered"):
        dist.get_rank(mine)
    assert dist.is_initialized()


def test_reductions():
    from cygrad.distributed import ReduceOp

    assert isinstance(ReduceOp.SUM, ReduceOp) and ReduceOp(ReduceOp.MAX) == ReduceOp.MAX != ReduceOp.SUM
    assert repr(ReduceOp.SUM) == "<RedOpType.SUM: 0>" and int(ReduceOp.BXOR) == 7
    assert pickle.loads(pickle.dumps(ReduceOp.MIN)) is ReduceOp.MIN
    assert dist.supports_complex(ReduceOp.SUM) and not dist.supports_complex(ReduceOp.MAX)
    with pytest.warns(FutureWarning, match="reduce_op` is deprecated"):
        assert dist.reduce_op.SUM is ReduceOp.SUM


def test_names_of_back_ends():
    assert dist.Backend("GLOO") == dist.Backend.GLOO == "gloo" and dist.Backend("Other") == "other"
    assert dist.get_default_backend_for_device(torch.device("cpu")) == "gloo"
    assert dist.is_backend_available("gloo") and not dist.is_backend_available("ucc")
    assert dist.is_mpi_available() == dist.is_backend_available("mpi") == (find_spec("mpi4py") is not None)
    assert repr(dist.BackendConfig("cpu:gloo,cuda:nccl")) == "cpu:gloo,cuda:nccl"
    with pytest.raises(ValueError, match="^Backend constructor parameter must be string-ish"):
        dist.Backend(3)


def test_a_back_end_of_ones_own(monkeypatch):
    from cygrad.distributed._c10d.engines.single import Single

    for name in ("registered", "backend_capability"):
        monkeypatch.setattr(dist.Backend, name, dict(getattr(dist.Backend, name)))
    monkeypatch.setattr(dist.Backend, "backend_list", list(dist.Backend.backend_list))
    made = []

    class Doubling(Single):
        def all_reduce(self, buffer, op):
            buffer *= 2
            return super().all_reduce(buffer, op)

    def engine(*args):
        made.append(args[1:])
        return Doubling()

    dist.Backend.register_backend("own", engine, devices=["cpu"])
    with pytest.raises(RuntimeError, match="^OWN c10d backend creator function already exist"):
        dist.Backend.register_backend("own", engine)
    dist.init_process_group("own", store=dist.HashStore(), rank=0, world_size=1, timeout=timedelta(seconds=9))
    x = torch.ones(2)
    dist.all_reduce(x)
    dist.destroy_process_group()
    assert made == [(0, 1, timedelta(seconds=9))] and x.tolist() == [2, 2] and dist.is_backend_available("own")


def test_local_rank(monkeypatch):
    monkeypatch.delenv("LOCAL_RANK", raising=False)
    assert dist.get_node_local_rank(fallback_rank=2) == 2
    with pytest.raises(RuntimeError, match="^LOCAL_RANK is not in the environment"):
        dist.get_node_local_rank()
    monkeypatch.setenv("LOCAL_RANK", "1")
    assert dist.get_node_local_rank() == 1


def test_the_sampler_asks_the_group(group):
    assert list(torch.utils.data.DistributedSampler(range(5), shuffle=False)) == [0, 1, 2, 3, 4]


def test_an_error_of_the_engine_is_at_a_line_of_the_program():
    from cygrad.distributed._c10d.supervision.guard import _failure_line

    here = sys._getframe().f_lineno
    with pytest.raises(RuntimeError) as caught:
        torch.ones(2, requires_grad=True).backward()
    assert _failure_line(caught.tb) == f"test_groups.py:{here + 2}"
