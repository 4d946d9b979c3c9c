"""A network solves Poisson's equation: labelled tensors, and derivatives by the coordinates' names."""

import torch
from pina import LabelTensor
from pina.model import FeedForward
from pina.operator import grad, laplacian

torch.manual_seed(0)
points = LabelTensor(torch.rand(30, 2), ["x", "y"]).requires_grad_()
cubic = LabelTensor((points.extract(["x"]) ** 3).as_subclass(torch.Tensor), ["u"])
slope = grad(cubic, points, components=["u"], d=["x"])
assert slope.labels == ["dudx"] and torch.allclose(slope.tensor, 3 * points.extract(["x"]).tensor ** 2)

model = FeedForward(2, 1, 16)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
losses = []
for _ in range(20):
    optimizer.zero_grad()
    found = LabelTensor(model(points.tensor), ["u"])
    loss = (laplacian(found, points, components=["u"], d=["x", "y"]).tensor - 1).square().mean()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print("losses", losses[0], losses[-1])
assert losses[-1] < 0.5 * losses[0]
