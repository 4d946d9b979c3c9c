"""Meta-learning by higher: an inner loop of Adam is unrolled, and the outer loss is differentiated through it."""

import higher
import torch
from torch import nn

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(1, 16), nn.Tanh(), nn.Linear(16, 1))
outer = torch.optim.Adam(net.parameters(), lr=1e-2)
values = []
for step in range(6):
    outer.zero_grad()
    total = 0.0
    for phase in (0.0, 1.0):
        x = torch.linspace(-2, 2, 10).unsqueeze(1)
        y = torch.sin(x + phase)
        inner = torch.optim.Adam(net.parameters(), lr=1e-2) if step % 2 else torch.optim.SGD(net.parameters(), lr=1e-1)
        with higher.innerloop_ctx(net, inner, copy_initial_weights=False) as (fast, differentiable):
            for _ in range(3):
                differentiable.step((fast(x[::2]) - y[::2]).square().mean())
            loss = (fast(x[1::2]) - y[1::2]).square().mean()
            loss.backward()
            total += loss.item()
    outer.step()
    values.append(total)
print("losses", *values)
assert values[-1] < values[0]
