"""Heat in a rod by TorchPhysics: samples of domains, conditions by residuals, and its solver."""

import torch
import torchphysics as tp

torch.manual_seed(0)
X, T, U = tp.spaces.R1("x"), tp.spaces.R1("t"), tp.spaces.R1("u")
rod, time = tp.domains.Interval(X, 0, 1), tp.domains.Interval(T, 0, 1)
model = tp.models.FCN(input_space=X * T, output_space=U, hidden=(16, 16))
inside = tp.samplers.GridSampler(rod, 8) * tp.samplers.GridSampler(time, 8)
start = tp.samplers.GridSampler(rod, 16) * tp.samplers.DataSampler({"t": torch.zeros(1, 1)})
ends = tp.samplers.GridSampler(rod.boundary, 2) * tp.samplers.GridSampler(time, 8)
parts = [
    tp.conditions.PINNCondition(model, inside, lambda u, x, t: tp.utils.grad(u, t) - 0.1 * tp.utils.laplacian(u, x)),
    tp.conditions.PINNCondition(model, start, lambda u, x: u - torch.sin(torch.pi * x), weight=10),
    tp.conditions.PINNCondition(model, ends, lambda u: u, weight=10),
]
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
losses = []
for _ in range(40):
    loss = sum(part.weight * part.forward() for part in parts)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print("losses", losses[0], losses[-1])
assert losses[-1] < 0.5 * losses[0]
points = tp.samplers.RandomUniformSampler(rod * time, n_points=5).sample_points()
print("points", points.as_tensor.sum().item(), model(points).as_tensor.sum().item())
