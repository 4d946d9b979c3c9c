"""Spherical harmonics and a tensor product of e3nn are equivariant, and train."""

import torch
from e3nn import o3

torch.manual_seed(0)
irreps = o3.Irreps("2x0e + 1x1o")
product = o3.FullyConnectedTensorProduct(irreps, "1x0e + 1x1o", "1x0e + 1x1o")
rotation = o3.rand_matrix()
x, points = irreps.randn(10, -1), torch.randn(10, 3)


def run(x, points):
    harmonics = o3.spherical_harmonics("1x0e + 1x1o", points, normalize=True, normalization="component")
    return product(x, harmonics)


turn_in, turn_out = irreps.D_from_matrix(rotation), product.irreps_out.D_from_matrix(rotation)
assert torch.allclose(run(x @ turn_in.T, points @ rotation.T), run(x, points) @ turn_out.T, atol=1e-4)
optimizer = torch.optim.Adam(product.parameters(), lr=0.05)
losses = []
for _ in range(30):
    optimizer.zero_grad()
    loss = (run(x, points)[:, 0] - points.norm(dim=1)).square().mean()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print("losses", losses[0], losses[-1])
assert losses[-1] < losses[0]
