"""A group of one process: the same results and errors as PyTorch's gloo."""

import pytest
from oracle.programs import compare

pytestmark = pytest.mark.oracle


@pytest.fixture(autouse=True)
def groups(monkeypatch):
    """A group in each library, or nothing that would make one."""
    import torch
    import torch.distributed

    import cygrad.distributed

    for name in ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT", "LOCAL_RANK"):
        monkeypatch.delenv(name, raising=False)
    yield
    for dist in (cygrad.distributed, torch.distributed):
        if dist.is_initialized():
            dist.destroy_process_group()


def started(lib):
    lib.distributed.init_process_group("gloo", store=lib.distributed.HashStore(), rank=0, world_size=1)
    return lib.distributed


def test_without_a_group():
    def program(lib, say):
        dist = lib.distributed
        say([dist.is_available(), dist.is_initialized(), dist.is_torchelastic_launched(), dist.is_gloo_available()])
        for name in ("get_rank", "get_world_size", "get_backend", "barrier", "new_group", "destroy_process_group"):
            say(getattr(dist, name))
        say(lambda: dist.all_reduce(lib.ones(1)))
        say(lambda: dist.broadcast_object_list([1], 0))
        say(lambda: lib.nn.parallel.DistributedDataParallel(lib.nn.Linear(1, 1)))
        say(lambda: lib.utils.data.DistributedSampler(range(4)))
        say(dist.get_node_local_rank)
        say(lambda: dist.get_rank(dist.GroupMember.NON_GROUP_MEMBER))

    compare(program)


def test_making_groups():
    def program(lib, say):
        dist = lib.distributed
        say(lambda: dist.init_process_group())
        say(lambda: dist.init_process_group("gloo", world_size=1, rank=0))
        say(lambda: dist.init_process_group("gloo", store=dist.HashStore()))
        say(lambda: dist.init_process_group("gloo", store=dist.HashStore(), init_method="env://"))
        say(lambda: dist.init_process_group("cpu:foo", store=dist.HashStore(), world_size=1, rank=0))
        say(lambda: dist.init_process_group("gloo", store=dist.HashStore(), world_size=1, rank=0, timeout=3))
        started(lib)
        say(lambda: dist.init_process_group("gloo"))
        for ranks in ([1], [0, 0]):
            say(lambda: dist.new_group(ranks))
        say(lambda: dist.new_subgroups(2))
        mine = dist.new_group([0], group_desc="mine")
        say([mine.size(), mine.rank(), mine.group_desc, dist.get_backend(mine), dist.get_process_group_ranks(mine)])
        say(lambda: dist.get_group_rank(dist.group.WORLD, 5))

    compare(program)


def test_collectives():
    def program(lib, say):
        dist = started(lib)

        def values():
            return lib.arange(4.0)

        def into(call, size=4, **kwargs):
            def run():
                target = lib.zeros(size, **kwargs)
                call(target)
                return target

            say(run)

        for size in (4, 3):
            into(lambda to: dist.all_gather([to], values()), size)
            into(lambda to: dist.gather(values(), [to]), size)
        into(lambda to: dist.all_gather([to, to], values()))
        into(lambda to: dist.all_gather([to], values()), dtype=lib.float64)
        into(lambda to: dist.all_gather(to, values()))
        into(lambda to: dist.scatter(to, [values()]))
        into(lambda to: dist.scatter(to))
        into(lambda to: dist.scatter(to, [values()] * 2))
        into(lambda to: dist.scatter(to, [values()], 1))
        into(lambda to: dist.reduce_scatter(to, [values()]))
        into(lambda to: dist.reduce_scatter(to, [values()] * 2))
        into(lambda to: dist.all_to_all([to], [values()]))
        into(lambda to: dist.all_to_all([to, to], [values()]))
        into(lambda to: dist.all_to_all_single(to, values(), [4], [4]))
        into(lambda to: dist.all_to_all_single(to, values(), [3], [4]))
        for root in (0, 1, None):
            into(lambda to: dist.broadcast(to, root))
            into(lambda to: dist.reduce(to, root))
        into(lambda to: dist.reduce(to, 0, group_dst=0))
        into(lambda to: dist.send(to, 0))
        into(lambda to: dist.P2POp(dist.send, to, 0))
        into(lambda to: dist.all_reduce(to, group=3))
        into(lambda to: dist.all_reduce(to, group=dist.GroupMember.NON_GROUP_MEMBER))

    compare(program)


def test_reductions():
    def program(lib, say):
        dist = started(lib)
        for op in "SUM AVG PRODUCT MIN MAX BAND BOR BXOR".split():
            for dtype in (lib.float32, lib.int64, lib.bool, lib.complex64, lib.bfloat16, lib.float16, lib.uint8):

                def run():
                    x = lib.ones(2, dtype=dtype)
                    dist.all_reduce(x, getattr(dist.ReduceOp, op))
                    return x

                say(run)
        say([int(dist.ReduceOp.RedOpType.MAX), str(dist.ReduceOp.SUM), repr(dist.ReduceOp.SUM)])

    compare(program)


def test_objects():
    def program(lib, say):
        dist = started(lib)
        results = [None]
        dist.all_gather_object(results, {"a": 1})
        say(results)
        say(lambda: dist.all_gather_object([], 1))
        say(lambda: dist.gather_object(1))
        say(lambda: dist.broadcast_object_list([1], 1))
        say(lambda: dist.scatter_object_list([], [[7]]))
        say(lambda: dist.scatter_object_list(results, [[7], 1]))
        dist.scatter_object_list(results, [[7]])
        say(results)

    compare(program)


def test_stores():
    def program(lib, say):
        store = lib.distributed.HashStore()
        store.set("a", "b")
        say([store.get("a"), store.add("n", 3), store.add("n", 4), store.get("n"), store.num_keys()])
        say([store.check(["a", "zz"]), store.delete_key("a"), store.delete_key("a")])
        say([store.compare_set("k", *pair) for pair in (("", "1"), ("1", "2"), ("x", "3"))])
        say([store.compare_set("none", "x", "1")])
        part = lib.distributed.PrefixStore("part", store)
        part.set("a", "c")
        say([store.get("part/a"), part.get("a")])

    compare(program)


def test_training():
    def program(lib, say):
        started(lib)
        model = lib.nn.parallel.DistributedDataParallel(lib.nn.Linear(3, 2))
        with lib.no_grad():
            model.module.weight.copy_(lib.arange(6.0).view(2, 3) / 7)
            model.module.bias.zero_()
        optimizer = lib.optim.Adam(model.parameters(), lr=0.1)
        for _ in range(3):
            optimizer.zero_grad()
            loss = (model(lib.ones(4, 3)) ** 2).sum()
            loss.backward()
            optimizer.step()
            say(loss.detach())
        say(list(model.state_dict()))

    compare(program)
