"""Integrals by torchquad: Monte Carlo, VEGAS, Simpson, Boole and Gauss, in several dimensions, with gradients."""

import torch
from torchquad import VEGAS, Boole, GaussLegendre, MonteCarlo, Simpson, Trapezoid, set_up_backend

set_up_backend("torch", data_type="float64", torch_enable_cuda=False)


def f(x):
    return torch.sin(x[:, 0]) + torch.exp(x[:, 1])


domain = [[0, 1], [-1, 1]]
for rule in (Trapezoid(), Simpson(), Boole(), GaussLegendre()):
    print(type(rule).__name__, rule.integrate(f, dim=2, N=401, integration_domain=domain, backend="torch").item())
for rule in (MonteCarlo(), VEGAS()):
    print(
        type(rule).__name__, rule.integrate(f, dim=2, N=2000, integration_domain=domain, seed=3, backend="torch").item()
    )
a = torch.tensor(1.5, requires_grad=True)
ends = torch.tensor([[0.0, 1.0]]).requires_grad_()
value = Simpson().integrate(lambda x: torch.exp(a * x[:, 0]), dim=1, N=101, integration_domain=ends)
value.backward()
print(value.item(), a.grad.item(), *ends.grad.flatten().tolist())
