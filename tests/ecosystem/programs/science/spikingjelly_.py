"""Leaky neurons that spike, with a surrogate gradient, learn a sum."""

import torch
from spikingjelly.activation_based import functional, layer, neuron, surrogate
from torch import nn

torch.manual_seed(0)
x = torch.rand(32, 4)
y = x.sum(1, keepdim=True)
model = nn.Sequential(layer.Linear(4, 16), neuron.LIFNode(surrogate_function=surrogate.ATan()), layer.Linear(16, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=3e-2)
losses = []
for _ in range(15):
    optimizer.zero_grad()
    loss = (sum(model(3 * x) for _ in range(4)) / 4 - y).square().mean()
    loss.backward()
    optimizer.step()
    functional.reset_net(model)
    losses.append(loss.item())
print("losses", losses[0], losses[-1])
assert losses[-1] < 0.5 * losses[0]
