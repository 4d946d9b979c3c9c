"""Datasets, samplers, collation and loaders, with their errors."""

import collections
import torch
from torch.utils.data import *
from torch.utils.data import default_collate, default_convert, get_worker_info
from shared import told


class Squares(Dataset):
    def __len__(self):
        return 7

    def __getitem__(self, i):
        if i >= 7:
            raise IndexError
        return torch.tensor([i, i * i], dtype=torch.float32), i % 2


class Stream(IterableDataset):
    def __init__(self, n):
        self.n = n

    def __iter__(self):
        return iter(range(self.n))


torch.manual_seed(0)
d = Squares()
for x, y in DataLoader(d, batch_size=3):
    print(x, y)
print(
    len(DataLoader(d, 3)),
    len(DataLoader(d, 3, drop_last=True)),
    [b.tolist() for _, b in DataLoader(d, 2, shuffle=True)],
)
print([b.tolist() for b in DataLoader(Stream(5), 2)], list(DataLoader(Stream(3), None)))
told(lambda: len(DataLoader(Stream(5), 2)))
told(lambda: DataLoader(Stream(5), 2, shuffle=True))
told(lambda: DataLoader(Stream(5), 2, sampler=SequentialSampler(d)))
told(lambda: DataLoader(d, 2, shuffle=True, sampler=SequentialSampler(d)))
told(lambda: DataLoader(d, 2, batch_sampler=BatchSampler(SequentialSampler(d), 2, False)))
told(lambda: DataLoader(d, None, drop_last=True))
told(lambda: DataLoader(d, 0))
told(lambda: DataLoader(d, -1))
told(lambda: DataLoader(d, 2.5))
told(lambda: DataLoader(d, num_workers=-1))
told(lambda: DataLoader(d, timeout=-1))
told(lambda: DataLoader(d, prefetch_factor=2))
told(lambda: DataLoader(d, persistent_workers=True))
told(lambda: DataLoader(d, multiprocessing_context="nosuch", num_workers=1))
loader = DataLoader(d, 2)
told(lambda: setattr(loader, "batch_size", 3))
told(lambda: setattr(loader, "dataset", 3))
told(lambda: next(iter(DataLoader([torch.ones(2), torch.ones(3)], 2))))
told(lambda: next(iter(DataLoader([object(), object()], 2))))
told(lambda: next(iter(DataLoader([(1, 2), (1,)], 2))))
told(lambda: next(iter(DataLoader([None, None], 2))))
told(lambda: next(iter(DataLoader([1, "a"], 2))))
Point = collections.namedtuple("Point", "x y")
print(
    default_collate([Point(1, 2.0), Point(3, 4.0)]), default_collate([{"a": [1, 2], "b": "t"}, {"a": [3, 4], "b": "u"}])
)
print(default_convert({"a": [1, 2.0], "b": (torch.ones(1), "x")}))
import numpy as np

print(
    default_collate([np.ones(2, np.float32), np.zeros(2, np.float32)]),
    default_collate([np.float64(1), np.float64(2)]),
    default_collate([b"a", b"b"]),
    default_collate([True, False]),
    default_collate([1.0, 2.0]),
)
told(lambda: default_collate([np.array(["a"])]))
torch.manual_seed(1)
print(
    list(RandomSampler(d)),
    list(RandomSampler(d, replacement=True, num_samples=4)),
    list(RandomSampler(d, num_samples=10)),
)
print(
    list(WeightedRandomSampler([0.1, 0.9, 0.0, 3.0], 5)),
    list(WeightedRandomSampler([1.0, 1.0, 1.0], 2, replacement=False)),
    list(SubsetRandomSampler([3, 5, 7])),
)
told(lambda: WeightedRandomSampler([1.0], 0))
told(lambda: WeightedRandomSampler([[1.0]], 1))
told(lambda: WeightedRandomSampler([1.0], 1, replacement=3))
told(lambda: RandomSampler(d, replacement=3))
told(lambda: RandomSampler(d, num_samples=-1))
told(lambda: RandomSampler([]))
told(lambda: BatchSampler(SequentialSampler(d), 0, False))
told(lambda: BatchSampler(SequentialSampler(d), 2, 3))
print(list(BatchSampler(SequentialSampler(d), 3, True)), len(BatchSampler(SequentialSampler(d), 3, False)))
a, b = random_split(range(10), [7, 3], generator=torch.Generator().manual_seed(42))
print(list(a), list(b), a.indices, [len(s) for s in random_split(range(10), [0.35, 0.35, 0.3])])
told(lambda: random_split(range(10), [3, 3]))
told(lambda: random_split(range(10), [0.5, 0.6]))
told(lambda: random_split(range(10), [1.5, -0.5]))
t = TensorDataset(torch.arange(4), torch.arange(8).view(4, 2))
print(t[1], t[1:3], len(t), t[torch.tensor([0, 2])])
told(lambda: TensorDataset(torch.ones(2), torch.ones(3)))
c = ConcatDataset([[1, 2], [3]])
print(len(c), c[2], c[-1], c.cumulative_sizes)
told(lambda: c[-4])
told(lambda: ConcatDataset([]))
told(lambda: ConcatDataset([Stream(2)]))
print(list(ChainDataset([Stream(2), Stream(1)])), Subset(d, [1, 3])[1], [1] + [2])
told(lambda: StackDataset())
told(lambda: StackDataset([1], [1, 2]))
print(StackDataset(a=[1, 2], b=[3, 4])[1], StackDataset([1], [2])[0])
told(lambda: Dataset()[0])
told(lambda: get_worker_info())


class Bad(Dataset):
    def __len__(self):
        return 3

    def __getitem__(self, i):
        raise ValueError(f"no item {i}")


class Work(IterableDataset):
    def __iter__(self):
        info = get_worker_info()
        return iter([info.id * 10 + i for i in range(2 + info.id)])


def main():
    told(lambda: list(DataLoader(Bad(), 2)))
    print([y.tolist() for _, y in DataLoader(d, 2, num_workers=2)])
    print(list(DataLoader(Work(), None, num_workers=2)), [b.tolist() for b in DataLoader(Work(), 2, num_workers=2)])
    torch.manual_seed(5)
    print(
        [
            b.tolist()
            for b in DataLoader(
                torch.arange(6),
                2,
                shuffle=True,
                num_workers=1,
                worker_init_fn=lambda i: None,
                generator=torch.Generator().manual_seed(1),
            )
        ]
    )


main()
