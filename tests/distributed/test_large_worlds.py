"""Worlds of 64 and 256 ranks, as threads: the order of buckets, and the arithmetic of shards and trees."""

from fractions import Fraction

import pytest
from support import data_parallel_checks as base
from support import sharding_checks

import cygrad as torch
import cygrad.distributed as dist
from cygrad.distributed._c10d.engines.fake import FakeWorld
from cygrad.distributed._data_parallel.buckets import assignment_by_size
from cygrad.distributed._data_parallel.ordered import Tree, _root, largest_nodes, ordered_sum
from cygrad.distributed._deterministic import share
from cygrad.distributed._fake import simulate
from cygrad.distributed.tensor._shards import bounds
from cygrad.nn.parallel import DistributedDataParallel

SIZES = [1, 2, 3, 5, 8, 64, 256]


@pytest.mark.parametrize("size", [64, 256])
def test_buckets_are_reduced_in_one_order(size):
    def steps():
        model = DistributedDataParallel(base.mlp(), bucket_cap_mb_list=[0.0005])
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        counts = []
        for step in range(2):
            x, y = base.data(model.module, step, dist.get_rank(), 1)
            optimizer.zero_grad()
            before = len(world.calls)
            base.loss_of(model(x), y).backward()
            optimizer.step()
            counts.append(len(world.calls) - before)
        return base.digest(model.module), [bucket.numbers for bucket in model._reducer.buckets], counts

    world = FakeWorld(size)
    results = simulate(steps, size, world=world)
    assert all(result[:2] == results[0][:2] for result in results)
    digest, buckets, counts = results[0]
    assert len(buckets) > 1 and buckets[0][0] == 5 and counts[1] == len(buckets)
    names = [name for name, _, _ in world.calls[-len(buckets) :]]
    sizes = [nbytes for _, _, nbytes in world.calls[-len(buckets) :]]
    lengths = [sum(p.numel() for i, p in enumerate(base.mlp().parameters()) if i in numbers) for numbers in buckets]
    assert names == ["all_reduce"] * len(buckets)
    assert sizes == [4 * (length + 2 * len(numbers)) for length, numbers in zip(lengths, buckets)]


def test_sharded_training_with_more_ranks_than_rows():
    def step():
        model = sharding_checks.sharded(base.mlp)
        x, y = base.data(model, 0, dist.get_rank())
        base.loss_of(model(x), y).backward()
        return [(p.shape[0], None if p.grad is None else p.grad.tolist()) for p in model.parameters()]

    results = simulate(step, 64)
    alone = base.mlp()
    for rank in range(64):
        x, y = base.data(alone, 0, rank)
        (base.loss_of(alone(x), y) / 64).backward()
    for place, parameter in enumerate(alone.parameters()):
        rows = [row for result in results for row in result[place][1]]
        torch.testing.assert_close(torch.tensor(rows), parameter.grad, rtol=1e-4, atol=1e-6)
        assert sum(result[place][0] for result in results) == parameter.shape[0]


@pytest.mark.parametrize("size", SIZES)
def test_parts_cover_a_dimension(size):
    for length in (0, 1, 2, 7, 8, 255, 256, 1000):
        parts = [bounds(length, size, rank) for rank in range(size)]
        assert [i for first, last in parts for i in range(first, last)] == list(range(length))
        assert len({last - first for first, last in parts if last - first}) <= 2


@pytest.mark.parametrize("shards", [1, 2, 3, 7, 8, 12, 64, 300])
def test_nodes_of_all_ranks_make_the_tree(shards):
    for size in SIZES:
        if size > shards:
            continue
        sums, leaves = {}, []
        for rank in range(size):
            begin, end = share(shards, size, rank)
            tree = Tree(begin, end, shards)
            for leaf in range(begin, end):
                leaves.append(leaf)
                tree.add(leaf, _Written(leaf))
            assert len(tree.nodes) <= 2 * shards.bit_length()
            sums.update(zip(largest_nodes(begin, end, shards), tree.sums()))
        assert leaves == list(range(shards))
        assert (
            _root(sums, shards).text == _root({(leaf, leaf + 1): _Written(leaf) for leaf in range(shards)}, shards).text
        )
        if shards & (shards - 1) == size & (size - 1) == 0:
            assert len(sums) == size  # then each rank has one node


class _Written:
    """A sum as it is written, with its brackets."""

    def __init__(self, text):
        self.text = str(text)

    def __add__(self, other):
        return _Written(f"({self.text}+{other.text})")

    add_ = __add__


def test_ordered_sums_of_large_worlds():
    def total(shards):
        begin, end = share(shards, dist.get_world_size(), dist.get_rank())
        tree = Tree(begin, end, shards)
        for leaf in range(begin, end):
            generator = torch.Generator().manual_seed(leaf)
            tree.add(leaf, torch.randn(37, generator=generator))
        return ordered_sum(tree.sums(), shards, dist.group.WORLD).tolist()

    for shards in (64, 100):
        results = [simulate(total, size, shards) for size in (1, 3, 5, 8, 64)]
        assert all(result == results[0][0] for ranks in results for result in ranks)
        exact = [Fraction(0)] * 37
        for leaf in range(shards):
            values = torch.randn(37, generator=torch.Generator().manual_seed(leaf)).tolist()
            exact = [a + Fraction(b) for a, b in zip(exact, values)]
        torch.testing.assert_close(torch.tensor(results[0][0]), torch.tensor([float(each) for each in exact]))


def test_buckets_by_size():
    tensors = [torch.empty(n) for n in (10, 20, 30, 5)] + [torch.empty(4, dtype=torch.float64)]
    assert assignment_by_size(tensors, [100, 200]) == ([[0, 1], [2, 3], [4]], [100, 200, 100])
    assert assignment_by_size(tensors, [10**9])[0] == [[0, 1, 2, 3], [4]]
    assert assignment_by_size(tensors[:4], [100], [False, True, False, False])[0] == [[0, 2], [1], [3]]
    assert assignment_by_size(tensors[:2], [1], (), [7, 3])[0] == [[7], [3]]
    with pytest.raises(RuntimeError, match="not empty"):
        assignment_by_size([], [1])
