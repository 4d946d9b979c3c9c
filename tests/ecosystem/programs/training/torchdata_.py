"""torchdata: nodes that read, map and batch in threads, and a loader that saves and restores its place."""

import torch
from torch.utils.data import RandomSampler
from torchdata.nodes import Batcher, Loader, Mapper, MapStyleWrapper, ParallelMapper, Prefetcher
from torchdata.stateful_dataloader import StatefulDataLoader

torch.manual_seed(0)
x = torch.rand(48, 4)
samples = list(zip(x, x.sum(1, keepdim=True)))
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.2)


def train(batches):
    for inputs, targets in batches:
        optimizer.zero_grad()
        loss = torch.nn.functional.mse_loss(model(inputs), targets)
        loss.backward()
        optimizer.step()
    return loss.item()


def collated(batch):
    return torch.stack([one for one, _ in batch]), torch.stack([other for _, other in batch])


node = MapStyleWrapper(samples, RandomSampler(samples))
node = ParallelMapper(node, lambda sample: (2 * sample[0], 2 * sample[1]), num_workers=2, method="thread")
loader = Loader(Prefetcher(Mapper(Batcher(node, 8), collated), 2))
first = train(loader)
for _ in range(4):
    last = train(loader)
print(first, last)
assert last < first

for workers in (0, 2):
    torch.manual_seed(1)
    whole = StatefulDataLoader(samples, batch_size=8, shuffle=True, num_workers=workers)
    batches = iter(whole)
    print(train([next(batches), next(batches)]))
    state, rest = whole.state_dict(), list(batches)
    again = StatefulDataLoader(samples, batch_size=8, shuffle=True, num_workers=workers)
    again.load_state_dict(state)
    resumed = list(again)
    assert len(resumed) == len(rest) == 4
    assert all(torch.equal(one[0], other[0]) for one, other in zip(resumed, rest))
    print(train(resumed))
