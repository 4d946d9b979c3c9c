"""Riemannian Adam on the sphere finds the leading eigenvector."""

import geoopt
import torch

torch.manual_seed(0)
matrix = torch.diag(torch.tensor([3.0, 1.0, 0.5]))
sphere = geoopt.Sphere()
point = geoopt.ManifoldParameter(torch.tensor([0.6, 0.64, 0.48]), manifold=sphere)
with torch.no_grad():
    point.proj_()
optimizer = geoopt.optim.RiemannianAdam([point], lr=0.05)
values = []
for _ in range(150):
    optimizer.zero_grad()
    value = -point @ matrix @ point
    value.backward()
    optimizer.step()
    values.append(value.item())
print("values", values[0], values[-1])
assert abs(values[-1] + 3) < 0.01 and abs(point.norm().item() - 1) < 1e-5

ball = geoopt.PoincareBall()
x, y = torch.tensor([0.1, 0.2]), torch.tensor([-0.3, 0.1])
assert torch.allclose(ball.expmap(x, ball.logmap(x, y)), y, atol=1e-5)
print("distance", ball.dist(x, y).item())
