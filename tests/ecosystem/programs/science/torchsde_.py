"""A stochastic differential equation: the mean of geometric Brownian motion, and gradients through the solver."""

import torch
import torchsde

torch.manual_seed(0)


class Motion(torch.nn.Module):
    noise_type, sde_type = "diagonal", "ito"

    def __init__(self):
        super().__init__()
        self.drift = torch.nn.Parameter(torch.tensor(0.1))

    def f(self, t, y):
        return self.drift * y

    def g(self, t, y):
        return 0.2 * y


motion = Motion()
t = torch.linspace(0, 1, 3)
optimizer = torch.optim.Adam(motion.parameters(), lr=0.1)
losses = []
for step in range(12):
    optimizer.zero_grad()
    noise = torchsde.BrownianInterval(t0=0.0, t1=1.0, size=(256, 1), entropy=step)
    path = torchsde.sdeint(motion, torch.ones(256, 1), t, bm=noise, dt=0.05, method="milstein")
    loss = (path[-1].mean() - 2).square()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print("losses", losses[0], losses[-1])
assert path.shape == (3, 256, 1) and losses[-1] < 0.2 * losses[0]
