"""A neural ODE learns the decay of y' = -y, with the adjoint method."""

import torch
from torchdiffeq import odeint, odeint_adjoint

torch.manual_seed(0)
t = torch.linspace(0, 2, 9)
exact = torch.exp(-t).unsqueeze(1)
solved = odeint(lambda t, y: -y, torch.ones(1), t, rtol=1e-6, atol=1e-8)
assert torch.allclose(solved, exact, atol=1e-5)


class Field(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.net = torch.nn.Sequential(torch.nn.Linear(1, 16), torch.nn.Tanh(), torch.nn.Linear(16, 1))

    def forward(self, t, y):
        return self.net(y)


field = Field()
optimizer = torch.optim.Adam(field.parameters(), lr=0.02)
losses = []
for _ in range(25):
    optimizer.zero_grad()
    loss = (odeint_adjoint(field, torch.ones(1), t, method="rk4") - exact).square().mean()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print("losses", losses[0], losses[-1])
assert losses[-1] < 0.3 * losses[0]
