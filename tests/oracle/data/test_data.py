"""Datasets, samplers, collation and loaders return PyTorch's results and raise its errors."""

import collections
import re
import warnings

import numpy as np
import pytest

import cygrad
from helpers import class_of

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.oracle

Point = collections.namedtuple("Point", "x y")

EXPRESSIONS = """
    D.Dataset()[0]
    D.TensorDataset(t, t[:2])
    D.TensorDataset(t)[1:3]
    D.TensorDataset(t, t)[[0, 2]]
    len(D.TensorDataset(t))
    D.ConcatDataset([])
    D.ConcatDataset([Stream()])
    D.ConcatDataset([Numbers(2), Numbers(3)])[5]
    D.ConcatDataset([Numbers(2), Numbers(3)])[-6]
    [D.ConcatDataset([Numbers(2), Numbers(0), Numbers(3)])[i] for i in (0, 1, 2, 4, -1, -5)]
    D.ConcatDataset([Numbers(2), Numbers(3)]).cumulative_sizes
    len(Numbers() + Numbers())
    list(Stream() + Stream())
    len(Stream() + Stream())
    len(D.ChainDataset([Known(), Known()]))
    list(D.ChainDataset([Numbers()]))
    D.StackDataset()
    D.StackDataset(Numbers(2), Numbers(3))
    D.StackDataset(a=Numbers(2), b=Numbers(3))
    D.StackDataset(Numbers(2), b=Numbers(2))
    D.StackDataset(Numbers(2), Numbers(2))[1]
    D.StackDataset(a=Numbers(2), b=Numbers(2))[1]
    D.StackDataset(a=Numbers(2), b=D.Subset(Numbers(5), [4, 3])).__getitems__([0, 1])
    len(D.StackDataset(Numbers(2)))
    D.Subset(Numbers(), [1, 2])[0]
    D.Subset(D.TensorDataset(t), [1, 2])[[0, 1]]
    D.Subset(Numbers(), [1, 2]).__getitems__([0, 1])
    D.Subset(Numbers(), [1, 2])[5]
    sorted(sum((list(part.indices) for part in D.random_split(Numbers(), [3, 7])), []))
    D.random_split(Numbers(), [3, 3])
    [len(x) for x in D.random_split(Numbers(), [0.33, 0.33, 0.34])]
    [len(x) for x in D.random_split(Numbers(3), [0.5, 0.5, 0.0])]
    [len(x) for x in D.random_split(Numbers(1), [0.0, 0.5, 0.5])]
    [len(x) for x in D.random_split(Numbers(11), [0.3, 0.3, 0.4])]
    D.random_split(Numbers(), [0.5, 0.6])
    D.random_split(Numbers(), [-0.5, 1.5])
    D.RandomSampler(Numbers(), replacement=3)
    D.RandomSampler(Numbers(), num_samples=-1)
    D.RandomSampler(Numbers(0))
    D.RandomSampler(Numbers(), num_samples=2.5)
    len(D.RandomSampler(Numbers(), num_samples=25))
    sorted(D.RandomSampler(Numbers(4)))
    len(list(D.RandomSampler(Numbers(4), True, 50)))
    D.WeightedRandomSampler([1, 2], 0)
    D.WeightedRandomSampler([1, 2], 2, replacement=3)
    D.WeightedRandomSampler([[1, 2]], 2)
    list(D.WeightedRandomSampler([0, 1.0], 3))
    list(D.WeightedRandomSampler([0, 1.0], 3, replacement=False))
    sorted(D.WeightedRandomSampler([1, 1.0], 2, replacement=False))
    D.WeightedRandomSampler([0, 1.0], True)
    list(D.BatchSampler(range(5), 2, False))
    list(D.BatchSampler(range(5), 2, True))
    [len(D.BatchSampler(range(n), 2, last)) for n in (0, 4, 5) for last in (True, False)]
    D.BatchSampler(range(5), 0, True)
    D.BatchSampler(range(5), 2, 1)
    D.BatchSampler(range(5), True, True)
    list(D.BatchSampler([], 2, False))
    D.Sampler(3)
    list(D.Sampler())
    list(D.SequentialSampler(Numbers(3)))
    sorted(D.SubsetRandomSampler([3, 1]))
    D.DistributedSampler(Numbers())
    D.DistributedSampler(Numbers(), 2, 2)
    D.DistributedSampler(Numbers(), 2, -1)
    list(D.DistributedSampler(Numbers(7), 2, 1, shuffle=False))
    list(D.DistributedSampler(Numbers(7), 2, 1, shuffle=False, drop_last=True))
    [len(D.DistributedSampler(Numbers(7), 3, 1, drop_last=last)) for last in (True, False)]
    list(D.DistributedSampler(Numbers(2), 5, 4, shuffle=False))
    sorted(sum((list(D.DistributedSampler(Numbers(9), 3, i, seed=4)) for i in range(3)), []))
    D.default_collate([1, 2])
    D.default_collate([1.0, 2])
    D.default_collate([1, 2.5])
    D.default_collate(["a", "b"])
    D.default_collate([b"a"])
    D.default_collate([None])
    D.default_collate([{"a": 1, "b": "x"}, {"a": 2, "b": "y"}])
    D.default_collate([{"a": 1}, {"b": 2}])
    D.default_collate([(1, 2.0, "x"), (3, 4.0, "y")])
    D.default_collate([[1, 2], [3]])
    D.default_collate([])
    D.default_collate([np.float32(1), np.float32(2)])
    D.default_collate([np.ones(2)] * 2)
    D.default_collate([np.array(3.0)])
    D.default_collate([np.array("a")])
    D.default_collate([torch.zeros(2), torch.zeros(3)])
    D.default_collate([Point(1, "a"), Point(3, "b")])
    D.default_collate([True, False])
    D.default_collate([object()])
    D.default_collate([range(3), range(3)])
    D.default_collate([collections.OrderedDict(a=1), collections.OrderedDict(a=2)])
    D.default_collate([{1, 2}])
    D.default_collate([1j])
    D.default_convert([1, np.ones(2), {"a": np.float64(2)}, "x", Point(1, 2), (1,), b"x", None, np.array("a")])
    D.get_worker_info()
    L(Numbers(), num_workers=-1)
    L(Numbers(), timeout=-1)
    L(Numbers(), prefetch_factor=2)
    L(Numbers(), num_workers=1, prefetch_factor=-1)
    L(Numbers(), persistent_workers=True)
    L(Stream(), shuffle=True)
    L(Stream(), shuffle=False) and 1
    L(Stream(), sampler=[1])
    L(Stream(), batch_sampler=[1])
    L(Numbers(), sampler=[1], shuffle=True)
    L(Numbers(), batch_sampler=[[1]], batch_size=2)
    L(Numbers(), batch_sampler=[[1]], shuffle=True)
    L(Numbers(), batch_sampler=[[1]], drop_last=True)
    L(Numbers(), batch_size=None, drop_last=True)
    L(Numbers(), batch_size=0)
    L(Numbers(), batch_size="a")
    L(Numbers(), batch_size=-1)
    L(Numbers(), drop_last=3)
    L(Numbers(), multiprocessing_context="spawn")
    L(Numbers(), num_workers=1, multiprocessing_context="foo")
    L(Numbers(), num_workers=1, multiprocessing_context=3)
    L(Numbers(0), shuffle=True)
    list(L(Numbers(0)))
    list(L(Endless()))
    L(Endless(), shuffle=True)
    len(L(Endless()))
    list(L(Stream(), batch_size=2))
    list(L(Stream(), batch_size=2, drop_last=True))
    list(L(Stream(), batch_size=None))
    list(L(Numbers(5), batch_size=None))
    list(L(Numbers(5), batch_size=None, sampler=[3, 1]))
    list(L(Numbers(5), batch_sampler=[[3, 1], [], [0]], collate_fn=list))
    list(L(Numbers(5), batch_size=3, sampler=[3, 1, 4, 1]))
    list(L(Numbers(5), batch_size=2, collate_fn=tuple))
    list(L(D.TensorDataset(t, t.int()), batch_size=4))
    list(L(D.Subset(D.TensorDataset(t), [5, 0, 2]), batch_size=2))
    list(L(D.StackDataset(x=D.TensorDataset(t), y=Numbers(6)), batch_size=4))
    list(L(Many(), batch_size=2))
    len(L(Stream(), batch_size=2))
    [len(L(Known(), batch_size=size, drop_last=last)) for size, last in ((2, False), (2, True), (None, False))]
    [len(L(Numbers(5), size, drop_last=last)) for size, last in ((2, False), (2, True), (7, True), (None, False))]
    L(Numbers(), unknown=1)
    sorted(torch.cat(list(L(Numbers(), 3, True))).tolist())
    setattr(L(Numbers()), "batch_size", 3)
    setattr(L(Numbers()), "sampler", 3)
    setattr(L(Numbers()), "num_workers", 3)
    L(Numbers()).batch_size, L(Numbers(), None).batch_size, L(Numbers(), batch_sampler=[[1]]).batch_size
    len(iter(L(Numbers(), 3)))
"""


def classes(library):
    """Define datasets based on that library."""
    data = library.utils.data

    class Numbers(data.Dataset):
        def __init__(self, length=10):
            self.length = length

        def __len__(self):
            return self.length

        def __getitem__(self, index):
            return index

    class Endless(data.Dataset):
        def __getitem__(self, index):
            return index

    class Many(Numbers):
        def __getitem__(self, index):
            raise AssertionError("samples are read at once")

        def __getitems__(self, indices):
            return [-index for index in indices]

    class Stream(data.IterableDataset):
        def __iter__(self):
            return iter(range(5))

    class Known(Stream):
        def __len__(self):
            return 3

    return {kind.__name__: kind for kind in (Numbers, Endless, Many, Stream, Known)}


def outcome(library, expression):
    """The result of an expression as text, or the error's type and first line."""
    names = {"D": library.utils.data, "L": library.utils.data.DataLoader, "torch": library, "t": library.arange(6.0)}
    names |= {"np": np, "collections": collections, "Point": Point} | classes(library)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            result = eval(expression, names)
    except Exception as error:
        text = str(error).split("\n", 1)[0]
        text = re.sub(r"classes\.<locals>\.|\(rank \d+\)", "", text)
        return class_of(error), re.sub(r"(fork|spawn|forkserver|', '|')+", "", text)
    return re.sub(r" at 0x\w+", "", repr(result))


@pytest.mark.parametrize("expression", [line.strip() for line in EXPRESSIONS.strip().splitlines()])
def test_same_as_torch(expression):
    assert outcome(cygrad, expression) == outcome(torch, expression)


def test_all_names_are_there():
    unusual = {
        name
        for name in torch.utils.data.__all__
        if "DataPipe" in name
        or name.startswith(("_", "functional", "guaranteed", "non_", "runtime"))
        or name in ("DataChunk", "argument_validation")
    }
    assert set(torch.utils.data.__all__) - unusual <= set(cygrad.utils.data.__all__)


def test_more_samples_than_said():
    for library in (cygrad, torch):
        stream = classes(library)["Known"]()
        loader = library.utils.data.DataLoader(stream)
        len(loader)
        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")
            list(loader)
        text = "was reported to be 3(when accessing len(dataloader)), but 4 samples have been fetched. "
        assert text in str(found[0].message) and found[0].category is UserWarning


@pytest.mark.parametrize("seed", [0, 3])
def test_shares_are_drawn_alike(seed):
    """The random numbers differ, but the distribution is the same."""
    counts = {}
    for library in (cygrad, torch):
        generator = library.Generator().manual_seed(seed)
        sampler = library.utils.data.WeightedRandomSampler([1, 2, 5], 8000, generator=generator)
        counts[library] = np.bincount(list(sampler)) / 1000
    np.testing.assert_allclose(counts[cygrad], counts[torch], atol=0.25)
