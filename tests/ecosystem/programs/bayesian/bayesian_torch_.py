"""A network with distributions for weights learns a sum; convolutions, and the variant by flipout."""

import torch
from bayesian_torch.layers import Conv2dReparameterization, LinearFlipout
from bayesian_torch.models.dnn_to_bnn import dnn_to_bnn, get_kl_loss
from torch import nn

torch.manual_seed(0)
x = torch.rand(32, 4)
y = x.sum(1, keepdim=True)
model = nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 1))
settings = {"prior_mu": 0.0, "prior_sigma": 1.0, "posterior_mu_init": 0.0, "posterior_rho_init": -3.0}
dnn_to_bnn(model, {**settings, "type": "Reparameterization", "moped_enable": False, "moped_delta": 0.5})
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
losses = []
for _ in range(30):
    optimizer.zero_grad()
    loss = (model(x) - y).square().mean() + get_kl_loss(model) / 1000
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print("losses", losses[0], losses[-1])
assert losses[-1] < 0.5 * losses[0]
found, divergence = Conv2dReparameterization(1, 2, 3)(torch.ones(1, 1, 5, 5))
print("layers", found.sum().item(), divergence.item(), LinearFlipout(4, 2)(x)[0].sum().item())
