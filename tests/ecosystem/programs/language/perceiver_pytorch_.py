"""Perceiver and Perceiver IO learn to classify small arrays of any length."""

import torch
from perceiver_pytorch import Perceiver, PerceiverIO

torch.manual_seed(0)
sizes = {"depth": 2, "num_latents": 8, "latent_dim": 16, "cross_heads": 1, "latent_heads": 2, "cross_dim_head": 8}
model = Perceiver(
    input_channels=3, input_axis=2, num_freq_bands=4, max_freq=8.0, num_classes=3, latent_dim_head=8,
    weight_tie_layers=True, self_per_cross_attn=2, **sizes,
)  # fmt: skip
images, labels = torch.rand(6, 8, 8, 3), torch.arange(6) % 3
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
losses = []
for _ in range(12):
    loss = torch.nn.functional.cross_entropy(model(images), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print("losses", losses[0], losses[-1])
assert losses[-1] < 0.9 * losses[0]
io = PerceiverIO(dim=12, queries_dim=10, logits_dim=7, latent_dim_head=8, **sizes)
out = io(torch.randn(2, 20, 12), queries=torch.randn(9, 10), mask=torch.ones(2, 20).bool())
print("queries", tuple(out.shape), out.square().mean().item())
