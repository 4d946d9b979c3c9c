"""Samplers of one's own, weighted classes, batches of like lengths, streams over workers, epochs of shards."""

import math
from collections import defaultdict

import torch
from shared import told
from torch.nn.utils.rnn import pack_sequence, pad_packed_sequence, pad_sequence, unpad_sequence
from torch.utils.data import (
    BatchSampler,
    ConcatDataset,
    DataLoader,
    Dataset,
    DistributedSampler,
    IterableDataset,
    RandomSampler,
    Sampler,
    StackDataset,
    Subset,
    SubsetRandomSampler,
    TensorDataset,
    WeightedRandomSampler,
    default_collate,
    get_worker_info,
    random_split,
)


class Sentences(Dataset):
    def __init__(self):
        self.items = [torch.arange(1, n + 1) for n in (3, 5, 2, 4, 3, 6, 1, 2)]

    def __len__(self):
        return len(self.items)

    def __getitem__(self, i):
        return {"ids": self.items[i], "label": len(self.items[i]) % 2}

    def __getitems__(self, indices):
        print("together", indices)
        return [self[i] for i in indices]


class Bucketed(Sampler):
    """Yields batches of sentences of like lengths, in random order."""

    def __init__(self, lengths, batch_size, generator):
        self.lengths, self.batch_size, self.generator = lengths, batch_size, generator

    def __iter__(self):
        order = sorted(range(len(self.lengths)), key=self.lengths.__getitem__)
        batches = [order[i : i + self.batch_size] for i in range(0, len(order), self.batch_size)]
        yield from (batches[i] for i in torch.randperm(len(batches), generator=self.generator).tolist())

    def __len__(self):
        return math.ceil(len(self.lengths) / self.batch_size)


def padded(batch):
    ids = [b["ids"] for b in batch]
    return pad_sequence(ids, batch_first=True, padding_value=-1), torch.tensor([len(i) for i in ids])


data, g = Sentences(), torch.Generator().manual_seed(3)
loader = DataLoader(data, batch_sampler=Bucketed([len(i) for i in data.items], 3, g), collate_fn=padded)
print(len(loader), loader.batch_size, loader.drop_last)
for ids, lengths in loader:
    print(ids, lengths, [len(i) for i in unpad_sequence(ids, lengths, batch_first=True)])
packed = pack_sequence(data.items[:3], enforce_sorted=False)
print(packed, pad_packed_sequence(packed, total_length=6))
torch.manual_seed(0)
labels = torch.tensor([0] * 8 + [1] * 2)
weights = 1.0 / torch.bincount(labels)[labels].float()
sampler = WeightedRandomSampler(weights, num_samples=10, replacement=True)
print(weights, list(sampler), len(sampler))
ds = TensorDataset(torch.arange(10.0)[:, None], labels)
print([(x.flatten().tolist(), y.tolist()) for x, y in DataLoader(ds, 4, sampler=sampler)])
print(list(SubsetRandomSampler([1, 3, 5])), list(RandomSampler(ds, replacement=True, num_samples=4)))
print(list(BatchSampler(RandomSampler(range(5), generator=torch.Generator().manual_seed(1)), 2, drop_last=True)))
told(lambda: WeightedRandomSampler(weights, 0))
told(lambda: WeightedRandomSampler(torch.ones(2, 2), 3))
told(lambda: RandomSampler(ds, num_samples=-1))
told(lambda: BatchSampler([1], 0, True))
told(lambda: DataLoader(ds, batch_sampler=BatchSampler(range(3), 2, False), shuffle=True))
told(lambda: DataLoader(ds, sampler=sampler, shuffle=True))
told(lambda: setattr(DataLoader(ds), "batch_size", 3))
for rank in range(2):
    shard = DistributedSampler(range(7), num_replicas=2, rank=rank, shuffle=True, seed=5)
    for epoch in range(2):
        shard.set_epoch(epoch)
        print(rank, epoch, list(shard), len(shard))
told(lambda: DistributedSampler(range(7), num_replicas=2, rank=2))
print(list(DistributedSampler(range(7), num_replicas=3, rank=1, shuffle=False, drop_last=True)))


class Counted(IterableDataset):
    def __init__(self, start, end):
        super().__init__()
        assert end > start
        self.start, self.end = start, end

    def __iter__(self):
        info = get_worker_info()
        if info is None:
            return iter(range(self.start, self.end))
        share = int(math.ceil((self.end - self.start) / float(info.num_workers)))
        first = self.start + info.id * share
        return iter(range(first, min(first + share, self.end)))


def init(worker):
    info = get_worker_info()
    dataset = info.dataset
    share = int(math.ceil((dataset.end - dataset.start) / float(info.num_workers)))
    dataset.start = dataset.start + worker * share
    dataset.end = min(dataset.start + share, dataset.end)


class Plain(Counted):
    def __iter__(self):
        return iter(range(self.start, self.end))


class Seeds(Dataset):
    def __len__(self):
        return 4

    def __getitem__(self, i):
        return torch.rand(2), torch.initial_seed() - get_worker_info().seed, get_worker_info().id


if __name__ == "__main__":
    for workers in (0, 2):
        print(sorted(torch.cat(list(DataLoader(Counted(3, 8), 2, num_workers=workers))).tolist()))
    print(list(DataLoader(Plain(3, 8), num_workers=2, worker_init_fn=init)))
    seeds = DataLoader(Seeds(), 2, num_workers=2, generator=torch.Generator().manual_seed(1), persistent_workers=True)
    for _ in range(2):
        print(list(seeds))
    told(lambda: DataLoader(ds, prefetch_factor=2))
    told(lambda: DataLoader(ds, persistent_workers=True))
    told(lambda: DataLoader(ds, num_workers=-1))
    told(lambda: DataLoader(ds, timeout=-1))
    parts = random_split(ConcatDataset([ds, ds]), [0.5, 0.3, 0.2], torch.Generator().manual_seed(0))
    print([len(p) for p in parts], parts[1].indices, Subset(ds, [2, 4])[1])
    told(lambda: random_split(ds, [3, 4]))
    told(lambda: random_split(ds, [0.5, 0.6]))
    told(lambda: ConcatDataset([]))
    told(lambda: ConcatDataset([ds])[-11])
    told(lambda: TensorDataset(torch.ones(2), torch.ones(3)))
    print(StackDataset(a=range(3), b=torch.ones(3, 1))[1], len(StackDataset(range(3), range(3))))
    told(lambda: StackDataset(range(3), range(2)))
    groups = defaultdict(list)
    for x, y in ds:
        groups[y.item()].append(x.item())
    print(dict(groups))
    print(default_collate([{"a": 1, "b": (1.5, "x")}, {"a": 2, "b": (2.5, "y")}]))
    told(lambda: default_collate([torch.ones(2), torch.ones(3)]))
    told(lambda: default_collate([[1, 2], [1]]))
    told(lambda: default_collate([object()]))
    sliced = DataLoader(list(range(5)), batch_size=2, collate_fn=lambda batch: batch)
    print(
        list(sliced), list(DataLoader(list(range(3)), batch_size=None)), next(iter(DataLoader(ds, 3, drop_last=True)))
    )
