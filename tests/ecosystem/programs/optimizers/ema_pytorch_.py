"""A moving average of a network's weights, saved and loaded."""

import torch
from ema_pytorch import EMA

torch.manual_seed(0)
net = torch.nn.Sequential(torch.nn.Linear(3, 8), torch.nn.BatchNorm1d(8), torch.nn.Linear(8, 1))
average = EMA(net, beta=0.9, update_after_step=2, update_every=2, power=0.75)
optimizer = torch.optim.SGD(net.parameters(), lr=0.05)
inputs = torch.rand(32, 3)
losses = []
for _ in range(20):
    optimizer.zero_grad()
    loss = (net(inputs).squeeze(1) - inputs.sum(1)).square().mean()
    loss.backward()
    optimizer.step()
    average.update()
    losses.append(loss.item())
assert losses[-1] < losses[0] and not any(p.requires_grad for p in average.ema_model.parameters())
print("losses", losses[0], losses[-1], "average", average(inputs).mean().item())
other = EMA(torch.nn.Sequential(torch.nn.Linear(3, 8), torch.nn.BatchNorm1d(8), torch.nn.Linear(8, 1)))
other.load_state_dict(average.state_dict())
assert torch.equal(other(inputs), average(inputs))
