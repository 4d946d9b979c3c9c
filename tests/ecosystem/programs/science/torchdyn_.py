"""A neural differential equation of torchdyn learns two classes, with the adjoint method and without."""

import torch
from torchdyn.core import NeuralODE

for sensitivity in ("autograd", "adjoint"):
    torch.manual_seed(0)
    points = torch.randn(64, 2)
    labels = (points.norm(dim=1) > 1).long()
    field = torch.nn.Sequential(torch.nn.Linear(2, 16), torch.nn.Tanh(), torch.nn.Linear(16, 2))
    ode = NeuralODE(field, sensitivity=sensitivity, solver="dopri5", atol=1e-3, rtol=1e-3)
    head = torch.nn.Linear(2, 2)
    optimizer = torch.optim.Adam([*ode.parameters(), *head.parameters()], lr=1e-2)
    losses = []
    for _ in range(6):
        optimizer.zero_grad()
        _, path = ode(points, torch.linspace(0, 1, 2))
        loss = torch.nn.functional.cross_entropy(head(path[-1]), labels)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    print("losses", losses[0], losses[-1])
    assert losses[-1] < losses[0]
