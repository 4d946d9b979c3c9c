"""Optimal transport on POT's back end for PyTorch: exact, entropic, sliced, and of Gaussians, with gradients."""

import ot
import torch

torch.manual_seed(0)
x = torch.randn(12, 2, dtype=torch.float64, requires_grad=True)
y = torch.randn(15, 2, dtype=torch.float64) + 1
a, b = torch.ones(12, dtype=torch.float64) / 12, torch.ones(15, dtype=torch.float64) / 15
cost = ot.dist(x, y)
projections = torch.nn.functional.normalize(torch.randn(2, 20, dtype=torch.float64), dim=0)
for name, value in (
    ("exact", ot.emd2(a, b, cost)),
    ("sinkhorn", ot.sinkhorn2(a, b, cost, 0.5)),
    ("log", ot.sinkhorn2(a, b, cost, 0.5, method="sinkhorn_log")),
    ("unbalanced", ot.unbalanced.sinkhorn_unbalanced2(a, b, cost, 0.5, 1.0)),
    ("sliced", ot.sliced_wasserstein_distance(x, y, projections=projections)),
    ("largest", ot.max_sliced_wasserstein_distance(x, y, projections=projections)),
    ("gaussians", ot.gaussian.empirical_bures_wasserstein_distance(x, y)),
    ("line", ot.wasserstein_1d(x[:, 0], y[:, 0]).sum()),
):
    (grad,) = torch.autograd.grad(value, x, retain_graph=True)
    print(name, value.item(), grad.norm().item())
print(ot.gromov.gromov_wasserstein2(ot.dist(x, x), ot.dist(y, y), a, b).item())
plan = ot.solve(cost, a, b, reg=0.3).plan
assert torch.allclose(plan.sum(1), a, atol=1e-6)
