"""Exact Gaussian process regression of a sine."""

import math

import gpytorch
import torch

torch.manual_seed(0)
x = torch.linspace(0, 1, 30)
y = torch.sin(2 * math.pi * x) + 0.1 * torch.randn(30)


class Process(gpytorch.models.ExactGP):
    def __init__(self, x, y, likelihood):
        super().__init__(x, y, likelihood)
        self.mean_module = gpytorch.means.ConstantMean()
        self.covar_module = gpytorch.kernels.ScaleKernel(gpytorch.kernels.RBFKernel())

    def forward(self, x):
        return gpytorch.distributions.MultivariateNormal(self.mean_module(x), self.covar_module(x))


likelihood = gpytorch.likelihoods.GaussianLikelihood()
model = Process(x, y, likelihood)
optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
objective = gpytorch.mlls.ExactMarginalLogLikelihood(likelihood, model)
losses = []
for _ in range(40):
    optimizer.zero_grad()
    loss = -objective(model(x), y)
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print("losses", losses[0], losses[-1])
assert losses[-1] < 0.5 * losses[0]
model.eval(), likelihood.eval()
with torch.no_grad(), gpytorch.settings.fast_pred_var():
    prediction = likelihood(model(torch.tensor([0.25, 0.75])))
print("means", *prediction.mean.tolist())
assert torch.allclose(prediction.mean, torch.tensor([1.0, -1.0]), atol=0.2) and (prediction.variance > 0).all()
