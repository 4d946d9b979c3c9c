"""Rearranging and reducing, and a layer of einops in a network that trains."""

import torch
from einops import rearrange, reduce, repeat
from einops.layers.torch import Rearrange

torch.manual_seed(0)
x = torch.arange(24.0).reshape(2, 3, 4)
assert rearrange(x, "b h w -> b (w h)")[0, :4].tolist() == [0, 4, 8, 1]
assert reduce(x, "b h w -> b", "mean").tolist() == [5.5, 17.5]
assert repeat(x[0, 0], "w -> w n", n=2)[1].tolist() == [1, 1]

model = torch.nn.Sequential(Rearrange("b h w -> b (h w)"), torch.nn.Linear(12, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
losses = []
for _ in range(20):
    optimizer.zero_grad()
    loss = (model(x) - 1).square().mean()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print("losses", losses[0], losses[-1])
assert losses[-1] < 0.5 * losses[0]
