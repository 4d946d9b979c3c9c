"""Bayesian layers of blitz learn a sum by the evidence's lower bound: linear, convolutional and recurrent ones."""

import torch
from blitz.modules import BayesianConv2d, BayesianLinear, BayesianLSTM
from blitz.utils import variational_estimator
from torch import nn

torch.manual_seed(0)


@variational_estimator
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = BayesianLinear(3, 8), BayesianLinear(8, 1)

    def forward(self, x):
        return self.second(torch.relu(self.first(x)))


x = torch.randn(40, 3)
y = x.sum(1, keepdim=True)
model = Net()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-2)
losses = []
for _ in range(25):
    loss = model.sample_elbo(inputs=x, labels=y, criterion=nn.MSELoss(), sample_nbr=2, complexity_cost_weight=1 / 400)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print("losses", losses[0], losses[-1])
assert losses[-1] < losses[0]
mean, std = model.mfvi_forward(x, sample_nbr=5)
print("predicted", mean.mean().item(), std.mean().item())
model.freeze_()
assert torch.equal(model(x), model(x))
print("conv", BayesianConv2d(1, 2, (3, 3))(torch.ones(1, 1, 5, 5)).sum().item())
print("lstm", BayesianLSTM(3, 4)(torch.ones(2, 5, 3))[0].sum().item())
