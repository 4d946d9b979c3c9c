"""Optimizers of torch-optimizer, among them one with second derivatives."""

import torch
import torch_optimizer
from torch import nn

x = torch.rand(32, 4, generator=torch.Generator().manual_seed(1))
y = x.sum(1, keepdim=True)
for name in "A2GradExp AdaBelief AdaBound AdamP Adahessian AggMo Apollo Lamb MADGRAD NovoGrad QHAdam Yogi".split():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 1))
    optimizer = getattr(torch_optimizer, name)(model.parameters())
    losses = []
    for _ in range(5):
        optimizer.zero_grad()
        loss = (model(x) - y).square().mean()
        loss.backward(create_graph=name == "Adahessian")
        optimizer.step()
        losses.append(loss.item())
    if name != "Adahessian":  # which draws directions
        print(name, losses[0], losses[-1])
    assert losses[-1] < losses[0]
