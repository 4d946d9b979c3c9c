"""An autoencoder with a codebook learns; residual, scalar and binary codes."""

import torch
from vector_quantize_pytorch import FSQ, LFQ, ResidualVQ, VectorQuantize

torch.manual_seed(0)
encoder, decoder = torch.nn.Linear(4, 8), torch.nn.Linear(8, 4)
quantizer = VectorQuantize(dim=8, codebook_size=16, decay=0.8, commitment_weight=0.25)
optimizer = torch.optim.Adam([*encoder.parameters(), *decoder.parameters()], lr=1e-2)
data = torch.randn(4, 4)[torch.arange(64) % 4].reshape(4, 16, 4)
losses = []
for _ in range(40):
    optimizer.zero_grad()
    codes, indices, commitment = quantizer(encoder(data))
    loss = (decoder(codes) - data).square().mean() + commitment.sum()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print("losses", losses[0], losses[-1])
assert losses[-1] < 0.7 * losses[0] and indices.shape == (4, 16)
x = torch.randn(1, 16, 8)
residual = ResidualVQ(dim=8, num_quantizers=3, codebook_size=8).eval()
found, indices, _ = residual(x)
assert indices.shape == (1, 16, 3) and torch.allclose(found, residual.get_output_from_indices(indices), atol=1e-5)
print("residual", (found - x).square().mean().item())
scalar = FSQ([8, 5, 5], dim=8)
found, indices = scalar(x)
assert torch.allclose(found, scalar.indices_to_codes(indices), atol=1e-5)
print("scalar", found.mean().item())
binary = LFQ(codebook_size=256, dim=8, entropy_loss_weight=0.1)
found, indices, entropy = binary(x)
assert torch.equal(found.sign(), x.sign())
print("binary", entropy.item())
