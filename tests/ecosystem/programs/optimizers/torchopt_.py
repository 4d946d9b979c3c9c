"""Adam in torchopt's functional style, and a gradient through a step of an inner optimizer."""

import torch
import torchopt
from torch import nn

x = torch.rand(32, 4, generator=torch.Generator().manual_seed(1))
y = x.sum(1, keepdim=True)


def new_model():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 1))


model = new_model()
optimizer = torchopt.Adam(model.parameters(), lr=1e-2)
losses = []
for _ in range(20):
    optimizer.zero_grad()
    loss = (model(x) - y).square().mean()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print("losses", losses[0], losses[-1])
assert losses[-1] < 0.5 * losses[0]

scale = torch.ones(1, requires_grad=True)
model = new_model()
inner = torchopt.MetaSGD(model, lr=0.1)
inner.step((model(x) * scale - y).square().mean())
outer = (model(x) - y).square().mean()
(found,) = torch.autograd.grad(outer, scale)
print("outer", outer.item(), found.item())
assert found.item() != 0
