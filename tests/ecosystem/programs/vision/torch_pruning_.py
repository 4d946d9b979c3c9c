"""Channels of a residual block taken out along with those that depend on them, and the smaller network trained."""

import torch
import torch_pruning
from torch import nn


class Network(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Sequential(nn.Conv2d(3, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU())
        self.second = nn.Sequential(nn.Conv2d(16, 32, 3, padding=1, stride=2), nn.BatchNorm2d(32), nn.ReLU())
        self.beside = nn.Conv2d(16, 32, 1, stride=2)
        self.last = nn.Linear(32, 4)

    def forward(self, x):
        x = self.first(x)
        return self.last((self.second(x) + self.beside(x)).mean((2, 3)))


torch.manual_seed(0)
model, x, y = Network(), torch.rand(16, 3, 12, 12), torch.arange(16) % 4
operations, size = torch_pruning.utils.count_ops_and_params(model, x[:1])
importance = torch_pruning.importance.MagnitudeImportance(p=2)
pruner = torch_pruning.pruner.MagnitudePruner(
    model, x, importance=importance, pruning_ratio=0.5, ignored_layers=[model.last]
)
pruner.step()
fewer, smaller = torch_pruning.utils.count_ops_and_params(model, x[:1])
print("operations", operations, fewer, "parameters", float(size), float(smaller))
assert fewer < 0.4 * operations and model.first[0].out_channels == 8 and model.beside.out_channels == 16

optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
losses = []
for _ in range(20):
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(x), y)
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print("losses", losses[0], losses[-1])
assert losses[-1] < 0.9 * losses[0]
