"""A controlled differential equation along splines through data, with the adjoint method."""

import torch
import torchcde

torch.manual_seed(0)


class Field(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(4, 8)

    def forward(self, t, z):
        return self.linear(z).view(*z.shape[:-1], 4, 2).tanh()


data = torch.rand(3, 6, 2)
path = torchcde.CubicSpline(torchcde.natural_cubic_coeffs(data))
assert torch.allclose(path.evaluate(torch.tensor(2.0)), data[:, 2], atol=1e-5)
path = torchcde.CubicSpline(torchcde.hermite_cubic_coefficients_with_backward_differences(data))
field = Field()
optimizer = torch.optim.Adam(field.parameters(), lr=1e-2)
losses = []
for _ in range(5):
    optimizer.zero_grad()
    ends = torchcde.cdeint(X=path, func=field, z0=torch.ones(3, 4), t=path.interval, adjoint=True)
    loss = ends[:, -1].square().mean()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print("losses", losses[0], losses[-1])
assert losses[-1] < losses[0]
