"""Optimizers by name, each for a few steps of the same regression."""

import pytorch_optimizer
import torch
from torch import nn

x = torch.rand(32, 6, generator=torch.Generator().manual_seed(1))
y = x.sum(1, keepdim=True).sin()
for name in ("adabelief", "adopt", "came", "lion", "muon", "prodigy", "shampoo", "sophiah"):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(6, 16), nn.Tanh(), nn.Linear(16, 1))
    kind = pytorch_optimizer.load_optimizer(name)
    if name == "muon":
        matrices = [p for p in model.parameters() if p.ndim == 2]
        others = [p for p in model.parameters() if p.ndim != 2]
        optimizer = kind([{"params": matrices, "use_muon": True}, {"params": others, "use_muon": False}], lr=1e-2)
    else:
        optimizer = kind(model.parameters(), lr=1.0 if name == "prodigy" else 1e-2)
    losses = []
    for _ in range(12):
        optimizer.zero_grad()
        loss = (model(x) - y).square().mean()
        loss.backward(create_graph=name == "sophiah")
        optimizer.step()
        losses.append(loss.item())
    print(name, losses[0], losses[-1])
    assert losses[-1] < losses[0], name
