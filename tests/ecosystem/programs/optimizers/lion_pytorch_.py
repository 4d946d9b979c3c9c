"""Lion, an optimizer by signs, trains a network; the weights decay, also by a decoupled rate."""

import torch
from lion_pytorch import Lion

for decoupled in (False, True):
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(3, 16), torch.nn.Tanh(), torch.nn.Linear(16, 1))
    optimizer = Lion(net.parameters(), lr=1e-2, weight_decay=1e-2, decoupled_weight_decay=decoupled)
    inputs = torch.rand(32, 3)
    losses = []
    for _ in range(30):
        optimizer.zero_grad()
        loss = (net(inputs).squeeze(1) - inputs.prod(1)).square().mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    print("losses", losses[0], losses[-1])
    assert losses[-1] < 0.5 * losses[0]
