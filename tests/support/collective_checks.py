"""Checks of all collectives against NumPy, which all ranks of a world call: threads of `simulate`, or processes."""

import itertools
import operator
import warnings
from datetime import timedelta
from functools import reduce

import numpy as np
import pytest

import cygrad as torch
import cygrad.distributed as dist
from cygrad.distributed import ReduceOp
from cygrad.distributed import _functional_collectives as funcol
from cygrad.distributed.nn import functional

DTYPES = [
    torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.float8_e5m2, torch.bool, torch.uint8,
    torch.int8, torch.int16, torch.int32, torch.int64, torch.uint16, torch.uint32, torch.uint64, torch.complex64,
    torch.complex128,
]  # fmt: skip
SHAPES = [(6,), (2, 3), (), (0,), (0, 3)]
LAYOUTS = ["contiguous", "strided"]


def given(rank, shape, dtype, layout="contiguous"):
    """The tensor that a rank sends: small whole numbers, so that sums are exact in all dtypes."""
    numbers = (np.arange(int(np.prod(shape))).reshape(shape) + rank) % 4
    if layout == "contiguous":
        return torch.tensor(numbers.tolist(), dtype=torch.float64).reshape(shape).to(dtype)
    wide = torch.zeros((*shape, 2)).to(dtype)
    wide[..., 1] = torch.tensor(numbers.tolist(), dtype=torch.float64).reshape(shape).to(dtype)
    return wide[..., 1]


def plain(tensor):
    """The values in a form that compares."""
    return tensor.to(torch.complex128 if tensor.is_complex() else torch.float64).tolist()


def same(tensor, expected):
    assert plain(tensor) == plain(expected), (plain(tensor), plain(expected))


def groups():
    """The group of all, and one of every second rank in reverse order; with the ranks of each."""
    size = dist.get_world_size()
    yield None, list(range(size))
    ranks = list(range(0, size, 2))
    part = dist.new_group(ranks)
    if part is not dist.GroupMember.NON_GROUP_MEMBER:
        yield part, ranks


def finished(work, is_async):
    if is_async:
        assert isinstance(work, dist.Work)
        assert work.wait() is True and work.is_completed() and work.exception() is None
    else:
        assert work is None


def cases():
    """Group, its ranks, place of this rank in it, dtype, shape, layout, and whether the call returns a Work."""
    for group, ranks in groups():
        me = ranks.index(dist.get_rank())
        for dtype in DTYPES:
            for shape, layout, is_async in itertools.product(SHAPES, LAYOUTS, [False, True]):
                yield group, ranks, me, dtype, shape, layout, is_async


def tensors_of(ranks, shape, dtype):
    return [given(rank, shape, dtype) for rank in ranks]


def total(tensors):
    if tensors[0].dtype == torch.bool:
        return reduce(operator.or_, tensors)
    numbers = [np.array(plain(each)) for each in tensors]
    return torch.from_numpy(np.asarray(sum(numbers))).to(tensors[0].dtype)


def check_reductions():
    for group, ranks, me, dtype, shape, layout, is_async in cases():
        rank, root = ranks[me], ranks[-1]
        everything = tensors_of(ranks, shape, dtype)
        x = given(rank, shape, dtype, layout)
        finished(dist.all_reduce(x, group=group, async_op=is_async), is_async)
        same(x, total(everything))
        x = given(rank, shape, dtype, layout)
        finished(dist.reduce(x, root, group=group, async_op=is_async), is_async)
        same(x, total(everything) if rank == root else given(rank, shape, dtype))
        rows = [tensors_of([rank + 7 * i for i in range(len(ranks))], shape, dtype) for rank in ranks]
        x = torch.zeros(shape).to(dtype)
        finished(dist.reduce_scatter(x, rows[me], group=group, async_op=is_async), is_async)
        same(x, total([row[me] for row in rows]))
        if shape:
            x = torch.zeros(shape).to(dtype)
            finished(dist.reduce_scatter_tensor(x, torch.cat(rows[me]), group=group, async_op=is_async), is_async)
            same(x, total([row[me] for row in rows]))


def check_other_reductions():
    for group, ranks in groups():
        rank = dist.get_rank()
        for dtype in (torch.float32, torch.bfloat16, torch.float16, torch.int32, torch.bool):
            values = [np.array(plain(each)) for each in tensors_of(ranks, (5,), dtype)]
            for op, function in (
                (ReduceOp.MIN, np.minimum),
                (ReduceOp.MAX, np.maximum),
                (ReduceOp.PRODUCT, np.multiply),
            ):
                x = given(rank, (5,), dtype)
                dist.all_reduce(x, op, group=group)
                assert np.array(plain(x)).tolist() == reduce(function, values).tolist()
            if dtype.is_floating_point:
                x = given(rank, (5,), dtype, "strided")
                dist.all_reduce(x, ReduceOp.AVG, group=group)
                same(x, torch.from_numpy(sum(values) / len(ranks)).to(dtype))
            else:
                numbers = [each.astype(int) for each in values]
                for op, function in ((ReduceOp.BAND, "and_"), (ReduceOp.BOR, "or_"), (ReduceOp.BXOR, "xor")):
                    x = given(rank, (5,), dtype)
                    dist.all_reduce(x, op, group=group)
                    assert [int(each) for each in plain(x)] == reduce(getattr(operator, function), numbers).tolist()


def check_sparse():
    """Sparse tensors are added up; each rank has other elements, one of them twice, and the last none."""
    for group, ranks in groups():
        for is_async in (False, True):
            for tail in ((), (2,)):
                dense = [np.zeros((9, *tail)) for _ in ranks]
                parts = []
                for place, rank in enumerate(ranks):
                    rows = [] if place == len(ranks) - 1 > 0 else [rank % 9, (2 * rank + 1) % 9, rank % 9]
                    values = (
                        np.arange(len(rows) * int(np.prod(tail)), dtype=np.float64).reshape(len(rows), *tail) + rank
                    )
                    np.add.at(dense[place], rows, values)
                    indices = torch.tensor([rows], dtype=torch.int64)
                    parts.append(torch.sparse_coo_tensor(indices, torch.tensor(values), (9, *tail)))
                mine = parts[ranks.index(dist.get_rank())]
                finished(dist.all_reduce(mine, group=group, async_op=is_async), is_async)
                assert mine.is_coalesced()
                same(mine.to_dense(), torch.tensor(sum(dense)))
    with pytest.raises(RuntimeError, match="allreduce of sparse tensors only works with ReduceOp.SUM"):
        dist.all_reduce(torch.eye(2).to_sparse(), ReduceOp.AVG)
    with pytest.raises(RuntimeError, match=r"must have the layout torch.sparse_coo"):
        dist.all_reduce(torch.eye(2).to_sparse_csr())
    sizes = torch.zeros(3 if dist.get_rank() == 0 else 4).to_sparse()
    if dist.get_world_size() > 1:
        with pytest.raises(RuntimeError, match=r"same size\n  rank \d has \(\d,\), and this process \(\d,\)"):
            dist.all_reduce(sizes)


def check_moves():
    for group, ranks, me, dtype, shape, layout, is_async in cases():
        rank, size, root = ranks[me], len(ranks), ranks[0]
        everything = tensors_of(ranks, shape, dtype)

        def empty(layout=layout, shape=shape, dtype=dtype):
            return given(0, shape, dtype, layout)

        x = given(rank, shape, dtype, layout)
        finished(dist.broadcast(x, root, group=group, async_op=is_async), is_async)
        same(x, everything[0])
        outputs = [empty() for _ in ranks]
        finished(dist.all_gather(outputs, given(rank, shape, dtype, layout), group, is_async), is_async)
        for output, expected in zip(outputs, everything):
            same(output, expected)
        outputs = [empty() for _ in ranks] if rank == root else None
        x = given(rank, shape, dtype, layout)
        finished(dist.gather(x, outputs, root, group, is_async), is_async)
        for output, expected in zip(outputs or [], everything):
            same(output, expected)
        x = empty()
        rows = [given(3 * i + 1, shape, dtype, layout) for i in range(size)] if rank == root else None
        finished(dist.scatter(x, rows, root, group, is_async), is_async)
        same(x, given(3 * me + 1, shape, dtype))
        outputs = [empty() for _ in ranks]
        inputs = [given(5 * me + i, shape, dtype, layout) for i in range(size)]
        finished(dist.all_to_all(outputs, inputs, group, is_async), is_async)
        for i, output in enumerate(outputs):
            same(output, given(5 * i + me, shape, dtype))
        if shape:
            x = torch.cat([empty() for _ in ranks])
            finished(dist.all_gather_into_tensor(x, given(rank, shape, dtype, layout), group, is_async), is_async)
            same(x, torch.cat(everything))
            x = torch.cat([empty() for _ in ranks])
            finished(dist.all_to_all_single(x, torch.cat(inputs), group=group, async_op=is_async), is_async)
            same(x, torch.cat([given(5 * i + me, shape, dtype) for i in range(size)]))


def check_unequal_parts():
    rank, size = dist.get_rank(), dist.get_world_size()
    to_each = [i + rank % 2 for i in range(size)]  # rows for each rank
    from_each = [rank + other % 2 for other in range(size)]
    x = torch.full((sum(to_each), 3), float(rank))
    output = torch.zeros(sum(from_each), 3)
    dist.all_to_all_single(output, x, from_each, to_each)
    same(output, torch.cat([torch.full((rows, 3), float(other)) for other, rows in enumerate(from_each)]))
    outputs = [torch.zeros(rows, 3) for rows in from_each]
    dist.all_to_all(outputs, list(x.split(to_each)))
    for other, each in enumerate(outputs):
        same(each, torch.full((from_each[other], 3), float(other)))


def check_messages():
    rank, size = dist.get_rank(), dist.get_world_size()
    following, previous = (rank + 1) % size, (rank - 1) % size
    for dtype, shape, layout in itertools.product(DTYPES, SHAPES, LAYOUTS):
        x, y = given(rank, shape, dtype, layout), given(9, shape, dtype, layout)
        for work in dist.batch_isend_irecv([dist.P2POp(dist.isend, x, following), dist.P2POp(dist.irecv, y, previous)]):
            work.wait()
        same(y, given(previous, shape, dtype))
    x, y = torch.full((3,), float(rank)), torch.zeros(3)
    if rank == 0:
        dist.send(x, 1, tag=7)
        assert dist.recv(y, size - 1, tag=8) == size - 1
        same(y, torch.full((3,), float(size - 1)))
    if rank == 1:
        work = dist.irecv(y, tag=7)
        work.wait()
        assert work.source_rank() == 0
        same(y, torch.zeros(3))
    if rank == size - 1:
        dist.send(x, 0, tag=8)
    if rank == 0:
        sources = sorted(dist.recv(y, tag=9) for _ in range(size - 1))
        assert sources == list(range(1, size))
    else:
        dist.send(x, 0, tag=9)
    two = torch.zeros(2)
    if rank == 0:  # two messages with different tags, received the other way round
        first, second = dist.isend(torch.tensor([1.0, 1.0]), 1, tag=1), dist.isend(torch.tensor([2.0, 2.0]), 1, tag=2)
        first.wait()
        second.wait()
    if rank == 1:
        dist.recv(two, 0, tag=2)
        same(two, torch.full((2,), 2.0))
        dist.recv(two, 0, tag=1)
        same(two, torch.full((2,), 1.0))


def check_objects():
    rank, size = dist.get_rank(), dist.get_world_size()
    mine = {"rank": rank, "tensor": torch.full((rank + 1,), float(rank)), "array": np.arange(100 * rank)}
    everything = [None] * size
    dist.all_gather_object(everything, mine)
    for other, each in enumerate(everything):
        assert each["rank"] == other and each["tensor"].tolist() == [other] * (other + 1)
        assert each["array"].tolist() == list(range(100 * other))
        each["tensor"].add_(1)  # can be written
    everything = [None] * size if rank == size - 1 else None
    dist.gather_object(rank * "x", everything, size - 1)
    assert everything == ([i * "x" for i in range(size)] if rank == size - 1 else None)
    objects = [mine, "text"] if rank == 0 else [None, None]
    dist.broadcast_object_list(objects, 0)
    assert objects[0]["rank"] == 0 and objects[1] == "text"
    output = [None]
    dist.scatter_object_list(output, [{"to": i} for i in range(size)] if rank == 0 else None, 0)
    assert output == [{"to": rank}]
    if rank == 0:
        dist.send_object_list([mine, 3], 1)
    if rank == 1:
        objects = [None, None]
        assert dist.recv_object_list(objects, 0) == 0
        assert objects[0]["rank"] == 0 and objects[1] == 3


def check_work():
    rank, size = dist.get_rank(), dist.get_world_size()
    x = torch.ones(1000)
    work = dist.all_reduce(x, async_op=True)
    doubled = work.get_future().then(lambda done: done.value()[0].sum().item() * 2)
    assert doubled.wait() == 2000 * size
    works = [dist.all_reduce(torch.ones(10), async_op=True) for _ in range(20)]
    for each in torch.futures.collect_all([work.get_future() for work in works]).wait():
        assert each.wait()[0].tolist() == [size] * 10
    work = dist.barrier(async_op=True)
    while not work.is_completed():
        pass
    assert work.is_success()
    dist.barrier()
    dist.monitored_barrier(timeout=timedelta(seconds=20))
    large = torch.full((300_000,), float(rank))
    dist.broadcast(large, size - 1)
    assert (large == size - 1).all().item()


def check_groups():
    rank, size = dist.get_rank(), dist.get_world_size()
    assert dist.get_process_group_ranks(None) == list(range(size))
    mine, every = dist.new_subgroups(1)
    assert mine.size() == 1 and len(every) == size and dist.get_rank(mine) == 0
    pairs = [[i, i + 1] for i in range(0, size, 2)]
    mine, every = dist.new_subgroups_by_enumeration(pairs)
    assert dist.get_process_group_ranks(mine) == [rank // 2 * 2, rank // 2 * 2 + 1]
    assert dist.get_rank(mine) == rank % 2
    assert dist.get_global_rank(mine, 1) == rank // 2 * 2 + 1
    x = torch.tensor([float(rank)])
    dist.all_reduce(x, group=mine)
    assert x.item() == sum(dist.get_process_group_ranks(mine))
    others = next(each for each, ranks in zip(every, pairs) if rank not in ranks) if size > 2 else None
    if others is not None:
        assert others is dist.GroupMember.NON_GROUP_MEMBER and dist.get_rank(others) == -1
    reverse = dist.new_group(list(range(size))[::-1], sort_ranks=False)
    assert dist.get_rank(reverse) == size - 1 - rank
    x = torch.tensor([float(rank)])
    dist.broadcast(x, group_src=0, group=reverse)
    assert x.item() == size - 1
    mine, every = dist.new_subgroups(2, reverse)
    assert dist.get_process_group_ranks(mine) == pairs[rank // 2] and len(every) == size // 2
    half = dist.split_group(split_ranks=pairs)
    assert half.size() == 2
    count = dist.get_pg_count()
    if rank > 0:  # only the members of a group split it
        parent = dist.new_group(list(range(1, size)), use_local_synchronization=True)
        rest = dist.split_group(parent, [[size - 2]])
        assert (rest is None) == (rank < size - 1)
        if rest is not None:
            assert dist.get_process_group_ranks(rest) == [rank] and rest.group_desc == "undefined:split"
        again = dist.split_group(parent, [list(range(size - 1))], group_desc="again", timeout=timedelta(seconds=50))
        assert again.group_desc == "again" and again.group_name != parent.group_name
        x = torch.tensor([1.0])
        dist.all_reduce(x, group=again)
        assert x.item() == size - 1
    else:
        assert dist.new_group(list(range(1, size)), use_local_synchronization=True) is None
    assert dist.get_pg_count() == count  # so that names of groups that all make agree
    for ranks, message in (
        ([], "^split_ranks cannot be None or empty"), ([[]], "cannot be empty"), ([[0, 0]], "duplicate ranks"),
        ([[size]], f"^Group rank {size} is not part of group"), ([[0] * (size + 1)], "less or equal to the world_size"),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=message):
            dist.split_group(split_ranks=ranks)
    x = torch.tensor([1.0])
    dist.destroy_process_group(half)
    with pytest.raises(ValueError, match="is not initialized in the world group map"):
        dist.all_reduce(x, group=half)
    if rank < 2:
        local = dist.new_group([0, 1], use_local_synchronization=True)
        dist.barrier(local)


def check_bad_input():
    x = torch.ones(2)
    size = dist.get_world_size()
    for call, error, message in (
        (lambda: dist.broadcast(x, size), RuntimeError, f"invalid root rank: {size}"),
        (lambda: dist.send(x, size), RuntimeError, f"invalid peer rank: {size}"),
        (lambda: dist.send(x, dist.get_rank()), ValueError, "destination rank should not be the same"),
        (lambda: dist.new_group([0, size]), ValueError, f"^Rank {size} is out of range"),
        (lambda: dist.all_gather([x], x), RuntimeError, f"expected length {size}, got 1"),
        (lambda: dist.all_gather_into_tensor(torch.ones(1), x), RuntimeError, "expected length"),
        (lambda: dist.reduce_scatter_tensor(x, torch.ones(1)), ValueError, "^input tensor size must be equal"),
        (lambda: dist.reduce_scatter(x, [x]), RuntimeError, "^invalid input tensor list size"),
        (lambda: dist.all_to_all_single(torch.ones(size + 1), torch.ones(size + 1)), RuntimeError, "divide equally"),
        (lambda: dist.init_process_group("gloo"), ValueError, "twice"),
    ):
        with pytest.raises(error, match=message):
            call()
    dist.all_reduce(x)  # nothing of this was sent
    assert x.tolist() == [size, size]


def check_low_level_calls():
    """The methods of groups, with options as PyTorch has them."""
    rank, size, group = dist.get_rank(), dist.get_world_size(), dist.group.WORLD

    def options(kind, **values):
        made = kind()
        for name, value in values.items():
            setattr(made, name, value)
        return made

    x = torch.full((2,), float(rank))
    group.allreduce([x], options(dist.AllreduceOptions, reduceOp=ReduceOp.MAX)).wait()
    assert x.tolist() == [size - 1] * 2
    x = torch.full((2,), float(rank))
    work = group.broadcast([x], opts=options(dist.BroadcastOptions, rootRank=1, timeout=timedelta(seconds=40)))
    assert work.wait() and x.tolist() == [1, 1]
    group.reduce([x], options(dist.ReduceOptions, rootRank=1, reduceOp=ReduceOp.SUM)).wait()
    assert x.tolist() == ([size, size] if rank == 1 else [1, 1])
    x, found = torch.full((2,), float(rank)), [torch.zeros(2) for _ in range(size)]
    group.gather([found] if rank == 1 else [], [x], options(dist.GatherOptions, rootRank=1)).wait()
    assert [each[0].item() for each in found] == (list(range(size)) if rank == 1 else [0] * size)
    y = torch.zeros(2)
    group.scatter([y], [found] if rank == 1 else [], options(dist.ScatterOptions, rootRank=1)).wait()
    assert y.tolist() == [rank, rank]
    group.reduce_scatter([y], [[torch.full((2,), float(i)) for i in range(size)]], dist.ReduceScatterOptions()).wait()
    assert y.tolist() == [size * rank] * 2
    group.allgather([found], [x], dist.distributed_c10d.AllgatherOptions()).wait()
    assert [each[0].item() for each in found] == list(range(size))
    group.barrier(dist.BarrierOptions()).wait()
    lists, wide = [[torch.zeros(2) for _ in range(size)] for _ in range(2)], [torch.zeros(2 * size) for _ in range(2)]
    group.allgather_coalesced(lists, [x, x + 1]).wait()
    group.all_gather_single_coalesced(wide, [x, x + 1]).wait()
    for place in range(2):
        expected = [each + place for each in range(size)]
        assert [each[0].item() for each in lists[place]] == expected == wide[place][::2].tolist()
    parts = [torch.zeros(2), torch.zeros(2)]
    group.reduce_scatter_single_coalesced(parts, wide, ReduceOp.AVG).wait()
    assert [each.tolist() for each in parts] == [[rank, rank], [rank + 1, rank + 1]]


def check_overlapping_memory():
    """What is sent may share memory with what is received."""
    rank, size = dist.get_rank(), dist.get_world_size()
    x = torch.arange(float(size)) + 10 * rank
    dist.all_to_all_single(x, x)
    assert x.tolist() == [rank + 10 * i for i in range(size)]
    whole = torch.full((2 * size,), -1.0)
    mine = whole[2 * rank : 2 * rank + 2].fill_(rank)
    dist.all_gather_single(whole, mine)
    assert whole.tolist() == [i // 2 for i in range(2 * size)]
    dist.reduce_scatter_single(mine, whole)
    assert mine.tolist() == [rank * size] * 2
    parts = list(torch.arange(float(size)).split(1))
    dist.all_to_all(parts, parts)
    assert [each.item() for each in parts] == [rank] * size
    dist.gather(parts[0], parts if rank == 0 else None, 0)
    dist.scatter(parts[0], parts if rank == 0 else None, 0)
    assert parts[0].item() == rank


def check_meta_tensors():
    """They have no memory, and nothing travels."""
    x, size = torch.ones(2, device="meta"), dist.get_world_size()
    assert dist.all_reduce(x, async_op=True).wait() and dist.broadcast(x, 0) is None
    dist.all_gather([x] * size, x)
    assert dist.recv(x, (dist.get_rank() + 1) % size) == (dist.get_rank() + 1) % size


def check_several_tensors():
    rank, size = dist.get_rank(), dist.get_world_size()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        for is_async in (False, True):
            x, y = torch.full((2,), float(rank)), torch.ones(3)
            future = dist.all_reduce_coalesced([x, y], async_op=is_async)
            assert (future is not None and future.wait() is not None) == is_async
            assert x.tolist() == [size * (size - 1) / 2] * 2 and y.tolist() == [size] * 3
            lists = [[torch.zeros(2) for _ in range(size)], [torch.zeros(1) for _ in range(size)]]
            future = dist.all_gather_coalesced(lists, [torch.full((2,), float(rank)), torch.ones(1)], async_op=is_async)
            assert (future is not None and future.wait() is not None) == is_async
            assert [each[0].item() for each in lists[0]] == list(range(size)) and sum(lists[1]).item() == size


def check_store():
    store = dist.distributed_c10d._get_default_store()
    rank, size = dist.get_rank(), dist.get_world_size()
    store.set(f"from-{rank}", f"value {rank}")
    assert [store.get(f"from-{other}").decode() for other in range(size)] == [f"value {i}" for i in range(size)]
    total = store.add("counter", rank)
    assert 0 <= total <= size * (size - 1) // 2
    dist.barrier()
    assert store.add("counter", 0) == size * (size - 1) // 2
    assert store.compare_set("winner", "", str(rank)) == store.get("winner")
    store.wait(["winner"], timedelta(seconds=20))
    dist.barrier()
    assert store.delete_key(f"from-{rank}") and not store.check([f"from-{rank}"])
    with pytest.raises(dist.DistStoreError, match="^Wait timeout"):
        store.wait(["missing"], timedelta(milliseconds=50))
    dist.barrier()
    for first in (True, False):  # the server comes first
        if (rank == 0) == first:
            tcp = dist.TCPStore("127.0.0.1", 29555, size, is_master=rank == 0)
        dist.barrier()
    tcp.set(f"from-{rank}", "here")
    assert tcp.get(f"from-{(rank + 1) % size}") == b"here" and not store.check([f"from-{rank}"])
    tcp.queue_push("ranks", str(rank))
    dist.barrier()
    taken = [None] * size
    dist.all_gather_object(taken, int(tcp.queue_pop("ranks")))
    assert sorted(taken) == list(range(size)) and tcp.queue_len("ranks") == 0


def check_large():
    """Arrays that are long enough for shared memory, in several chunks, and several at a time."""
    for group, ranks in groups():
        rank, size = dist.get_rank(), len(ranks)
        for dtype in (torch.float32, torch.float64, torch.int16, torch.complex64, torch.bool, torch.bfloat16):
            base = (torch.arange(600_007) % 7).to(dtype)
            x = base if dtype == torch.bool else base * (ranks.index(rank) + 1)
            dist.all_reduce(x, group=group)
            assert torch.equal(x, base if dtype == torch.bool else base * (size * (size + 1) // 2))
        for op, expected in ((ReduceOp.MAX, max(ranks)), (ReduceOp.MIN, min(ranks)), (ReduceOp.AVG, sum(ranks) / size)):
            x = torch.full((100_001,), float(rank))
            dist.all_reduce(x, op, group=group)
            assert (x == expected).all()
        tensors = [torch.full((n,), float(rank)) for n in (300_000, 3, 20_001, 70_000)]
        works = [dist.all_reduce(each, group=group, async_op=True) for each in tensors]
        for work, each in list(zip(works, tensors))[::-1]:
            work.wait()
            assert (each == sum(ranks)).all()
        # What is rounded is the same everywhere.
        x = torch.sin(torch.arange(50_000.0) * (rank + 1))
        dist.all_reduce(x, group=group)
        y = x.clone()
        dist.broadcast(y, ranks[0], group=group)
        assert torch.equal(x, y)


def check_gradients():
    """Each derivative against that of the same sum in one process: all ranks' inputs as rows of one tensor."""
    rank, size = dist.get_rank(), dist.get_world_size()
    everything = torch.arange(1.0, 1 + 3 * size).reshape(size, 3).double()
    weights = [torch.sin(everything * (1 + i)) for i in range(size)]  # what rank i weights what it receives by

    def compare(collective, whole, rows):
        """`collective(x)` are the tensors that this rank receives, `whole(rows, i)` those that rank i receives."""
        x = everything[rank].clone().requires_grad_() if rows == 1 else (everything + rank).clone().requires_grad_()
        mine = sum((weights[rank][i % size] * each**2).sum() for i, each in enumerate(collective(x)))
        (gradient,) = torch.autograd.grad(mine, x, create_graph=True)
        (second,) = torch.autograd.grad((gradient**2).sum(), x)
        shape = (size, 3) if rows == 1 else (size, size, 3)
        all_rows = everything if rows == 1 else torch.stack([everything + i for i in range(size)])
        y = all_rows.clone().reshape(shape).requires_grad_()
        total = sum(
            (weights[other][i % size] * each**2).sum()
            for other in range(size)
            for i, each in enumerate(whole(y, other))
        )
        (expected,) = torch.autograd.grad(total, y, create_graph=True)
        (expected_second,) = torch.autograd.grad((expected**2).sum(), y)
        torch.testing.assert_close(gradient, expected[rank])
        torch.testing.assert_close(second, expected_second[rank])

    last = size - 1
    compare(lambda x: [functional.all_reduce(x)], lambda y, i: [y.sum(0)], 1)
    compare(lambda x: functional.all_gather(x), lambda y, i: list(y), 1)
    compare(lambda x: [functional.broadcast(x, last)], lambda y, i: [y[last]], 1)
    compare(
        lambda x: [functional.reduce(x, 1)] if rank == 1 else [functional.reduce(x, 1) * 0],
        lambda y, i: [y.sum(0)] if i == 1 else [],
        1,
    )
    compare(lambda x: functional.gather(x, 1), lambda y, i: list(y) if i == 1 else [], 1)
    compare(lambda x: [functional.scatter(list(x), last)], lambda y, i: [y[last, i]], 2)
    compare(lambda x: [functional.reduce_scatter(x[0], list(x))], lambda y, i: [y[:, i].sum(0)], 2)
    compare(lambda x: functional.all_to_all(list(x), list(x)), lambda y, i: list(y[:, i]), 2)
    compare(lambda x: [functional.all_to_all_single(x, x)], lambda y, i: [y[:, i]], 2)


def check_functional_collectives():
    rank, size = dist.get_rank(), dist.get_world_size()
    group = dist.group.WORLD
    x = torch.full((size, 2), float(rank))
    same(funcol.wait_tensor(funcol.all_reduce(x, "avg", group)), torch.full((size, 2), (size - 1) / 2))
    same(funcol.broadcast(x, 1, group), torch.ones(size, 2))
    gathered = funcol.all_gather_tensor(x, 1, group)
    same(gathered, torch.cat([torch.full((size, 2), float(i)) for i in range(size)], 1))
    same(funcol.reduce_scatter_tensor(gathered, "sum", 1, group), x * size)
    same(funcol.all_to_all_single(x, None, None, group), torch.arange(float(size))[:, None].expand(size, 2))
    with pytest.raises(ValueError, match="^Unsupported group type"):
        funcol.all_reduce(x, "sum", 3)
    with pytest.raises(ValueError, match="there is no group of the ranks"):
        funcol.all_reduce(x, "sum", [size])
    same(funcol.all_reduce(x, "sum", list(range(size))), torch.full((size, 2), size * (size - 1) / 2))
    many = funcol.all_gather_single_coalesced([x, x + 1], group)
    same(many[1], torch.cat([torch.full((size, 2), i + 1.0) for i in range(size)]))
    same(funcol.reduce_scatter_single_coalesced(many, "avg", [0, 0], group)[0], x)
    out, wide = x.clone(), torch.zeros(size * size, 2)
    same(funcol.all_reduce_inplace(out, "max"), torch.full((size, 2), size - 1.0))
    same(out, torch.full((size, 2), size - 1.0))
    same(
        funcol.all_gather_tensor_inplace(wide, x, group),
        torch.cat([torch.full((size, 2), float(i)) for i in range(size)]),
    )
    rows = funcol.all_gather_inplace([torch.zeros(size, 2) for _ in range(size)], x)
    assert [each[0, 0].item() for each in rows] == list(range(size))
    same(funcol.reduce_scatter_tensor_inplace(torch.zeros(size, 2), wide, "avg", group), x)
    same(funcol.all_to_all_inplace(out, x), torch.arange(float(size))[:, None].expand(size, 2))
    with pytest.raises(AssertionError, match="Can't remap async version"):
        funcol.all_reduce_inplace(out, "max", async_op=True)
    ring = [(i + 1) % size for i in range(size)]
    same(funcol.permute_tensor(x, ring, group), torch.full((size, 2), float((rank - 1) % size)))


CHECKS = {name: value for name, value in list(globals().items()) if name.startswith("check_")}
