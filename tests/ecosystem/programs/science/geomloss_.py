"""Distances between clouds of points: Sinkhorn divergences and kernels, and a cloud that flows to another."""

import torch
from geomloss import SamplesLoss

torch.manual_seed(0)
x, y = torch.rand(20, 2, dtype=torch.float64), torch.rand(30, 2, dtype=torch.float64) * 0.5 + 0.5
for name, options in (
    ("sinkhorn", {"p": 2, "blur": 0.05}),
    ("sinkhorn", {"p": 1, "blur": 0.05, "debias": False}),
    ("sinkhorn", {"p": 2, "blur": 0.1, "reach": 0.3}),
    ("gaussian", {"blur": 0.5}),
    ("laplacian", {"blur": 0.5}),
    ("energy", {}),
):
    loss = SamplesLoss(name, backend="tensorized", **options)
    z = x.clone().requires_grad_()
    value = loss(z, y)
    (grad,) = torch.autograd.grad(value, z)
    print(name, value.item(), grad.norm().item())
z, loss = x.clone().requires_grad_(), SamplesLoss("sinkhorn", p=2, blur=0.01, backend="tensorized")
before = loss(z, y).item()
for _ in range(5):
    (grad,) = torch.autograd.grad(loss(z, y), z)
    z.data -= 20 * 0.2 * grad
print(before, loss(z, y).item())
assert loss(z, y).item() < 0.5 * before
