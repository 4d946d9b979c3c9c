"""TorchANI: descriptions of atoms and a network for each element learn energies; forces are gradients."""

import torch
from torchani import AEVComputer
from torchani.nn import ANINetworks, AtomicNetwork

torch.manual_seed(0)
aevs = AEVComputer.like_1x(num_species=2)
networks = ANINetworks({name: AtomicNetwork((aevs.out_dim, 16, 1), activation="celu") for name in ("H", "O")})
species = torch.tensor([[0, 0, 1]]).repeat(8, 1)
places = torch.tensor([[[0.0, 0.0, 0.96], [0.0, 0.92, -0.24], [0.0, 0.0, 0.0]]]).repeat(8, 1, 1)
places = (places + 0.1 * torch.randn_like(places)).requires_grad_()
target = (places.detach()[:, 0] - places.detach()[:, 2]).norm(dim=-1)
optimizer = torch.optim.Adam(networks.parameters(), lr=3e-3)
losses = []
for _ in range(20):
    energies = networks(species, aevs(species, places))
    loss = (energies - target).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print("losses", losses[0], losses[-1])
assert losses[-1] < 0.5 * losses[0]
energies = networks(species, aevs(species, places))
(forces,) = torch.autograd.grad(-energies.sum(), places)
print("forces", forces.norm().item(), aevs(species, places).sum().item())
assert torch.allclose(forces.sum(1), torch.zeros(8, 3), atol=1e-4)
