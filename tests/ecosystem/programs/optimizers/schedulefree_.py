"""Optimizers that need no schedule of the learning rate: AdamW and SGD."""

import schedulefree
import torch
from torch import nn

x = torch.rand(32, 4, generator=torch.Generator().manual_seed(1))
y = x.sum(1, keepdim=True)
for make in (schedulefree.AdamWScheduleFree, schedulefree.SGDScheduleFree):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 1))
    optimizer = make(model.parameters(), lr=2e-2)
    optimizer.train()
    losses = []
    for _ in range(20):
        optimizer.zero_grad()
        loss = (model(x) - y).square().mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    optimizer.eval()
    print(losses[0], losses[-1], (model(x) - y).square().mean().item())
    assert losses[-1] < 0.5 * losses[0]
