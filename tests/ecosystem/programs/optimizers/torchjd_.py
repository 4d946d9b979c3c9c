"""Three losses minimised at once, each step along an aggregate of their gradients."""

import torch
from torch import nn
from torchjd.aggregation import IMTLG, MGDA, PCGrad, UPGrad
from torchjd.autojac import backward, jac_to_grad

x = torch.rand(32, 5, generator=torch.Generator().manual_seed(1))
targets = torch.stack([x.sum(1), x.prod(1), x[:, 0] - x[:, 1]], 1)
for aggregator in (UPGrad(), MGDA(), PCGrad(), IMTLG()):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(5, 16), nn.Tanh(), nn.Linear(16, 3))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    totals = []
    for _ in range(15):
        losses = (model(x) - targets).square().mean(0)
        backward(losses)
        jac_to_grad(model.parameters(), aggregator)
        optimizer.step()
        optimizer.zero_grad()
        totals.append(losses.sum().item())
    print(type(aggregator).__name__, totals[0], totals[-1])
    assert totals[-1] < totals[0]
