"""Laplace approximations of a trained network: full, Kronecker-factored and diagonal."""

import torch
from laplace import Laplace
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
x = torch.linspace(-1, 1, 32).unsqueeze(1)
y = torch.sin(3 * x)
model = nn.Sequential(nn.Linear(1, 16), nn.Tanh(), nn.Linear(16, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=3e-2)
losses = []
for _ in range(50):
    optimizer.zero_grad()
    loss = (model(x) - y).square().mean()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print("losses", losses[0], losses[-1])
assert losses[-1] < 0.5 * losses[0]
for structure in ("full", "kron", "diag"):
    approximation = Laplace(model, "regression", subset_of_weights="all", hessian_structure=structure)
    approximation.fit(DataLoader(TensorDataset(x, y), batch_size=16))
    _, inside = approximation(torch.zeros(1, 1))
    _, outside = approximation(torch.full((1, 1), 4.0))
    print(structure, inside.item(), outside.item())
    assert outside > inside > 0
