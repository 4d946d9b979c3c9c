"""A Fourier neural operator learns an operator on fields, and is asked at another resolution."""

import torch
from neuralop.losses import H1Loss, LpLoss
from neuralop.models import FNO

torch.manual_seed(0)
model = FNO(n_modes=(4, 4), hidden_channels=8, in_channels=1, out_channels=1, n_layers=2)
fields = torch.rand(4, 1, 16, 16)
targets = fields.cumsum(-1) / 16
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
losses = []
for _ in range(10):
    optimizer.zero_grad()
    loss = LpLoss(d=2)(model(fields), targets)
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print("losses", losses[0], losses[-1], H1Loss(d=2)(model(fields), targets).item())
assert losses[-1] < 0.5 * losses[0] and model(torch.rand(1, 1, 32, 32)).shape == (1, 1, 32, 32)
