"""A Gaussian process is fitted by L-BFGS; acquisition functions, of one point and of two, find the maximum."""

import torch
from botorch.acquisition import LogExpectedImprovement, qLogExpectedImprovement
from botorch.fit import fit_gpytorch_mll
from botorch.models import SingleTaskGP
from botorch.optim import optimize_acqf
from gpytorch.mlls import ExactMarginalLogLikelihood

torch.manual_seed(0)
X = torch.rand(12, 2, dtype=torch.double)
Y = -(X - 0.5).square().sum(1, keepdim=True)
model = SingleTaskGP(X, Y)
likelihood = ExactMarginalLogLikelihood(model.likelihood, model)
before = likelihood(model(*model.train_inputs), model.train_targets).item()
fit_gpytorch_mll(likelihood)
model.train()
after = likelihood(model(*model.train_inputs), model.train_targets).item()
model.eval()
print("log likelihood", before, after)
assert after > before
bounds = torch.tensor([[0.0, 0.0], [1.0, 1.0]], dtype=torch.double)
for acquisition, q in ((LogExpectedImprovement, 1), (qLogExpectedImprovement, 2)):
    candidates, _ = optimize_acqf(acquisition(model, Y.max()), bounds=bounds, q=q, num_restarts=2, raw_samples=16)
    assert candidates.shape == (q, 2)
    assert (candidates - 0.5).abs().max(1).values.min() < 0.2
