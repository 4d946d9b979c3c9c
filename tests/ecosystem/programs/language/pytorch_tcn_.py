"""A temporal convolutional network learns an echo, and gives the same answers as a stream."""

import torch
from pytorch_tcn import TCN

torch.manual_seed(0)
x = torch.randn(4, 2, 40)
y = 0.5 * x[:, :1] + 0.3 * x[:, 1:].roll(3, -1)
model = TCN(num_inputs=2, num_channels=[8, 8], kernel_size=3, causal=True, output_projection=1, dropout=0.0)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
losses = []
for _ in range(25):
    loss = (model(x) - y)[..., 3:].square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print("losses", losses[0], losses[-1])
assert losses[-1] < 0.7 * losses[0]
model.eval()
model.reset_buffers()
whole = model(x[:1])
parts = torch.cat([model(x[:1, :, i : i + 8], inference=True) for i in range(0, 40, 8)], -1)
assert torch.allclose(parts, whole, atol=1e-5)
