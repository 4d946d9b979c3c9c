"""Normalizing flows with splines, monotonic networks and differential equations learn a conditional density."""

import torch
import zuko

for name, options in (
    ("NSF", {"transforms": 2, "hidden_features": [16]}),
    ("CNF", {"hidden_features": [16]}),
    ("UNAF", {"transforms": 1, "hidden_features": [16]}),
    ("GMM", {"components": 3}),
):
    torch.manual_seed(0)
    flow = getattr(zuko.flows, name)(2, 1, **options)
    x, context = torch.randn(32, 2) * 0.5, torch.rand(32, 1)
    optimizer = torch.optim.Adam(flow.parameters(), lr=1e-2)
    losses = []
    for _ in range(5):
        optimizer.zero_grad()
        loss = -flow(context).log_prob(x).mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    print(name, losses[0], losses[-1])
    assert losses[-1] < losses[0]
    assert flow(context).sample((3,)).shape == (3, 32, 2)
