"""Rotary embeddings: scores depend on distances alone; along axes of an image, and with scales of lengths."""

import torch
from rotary_embedding_torch import RotaryEmbedding, apply_rotary_emb

torch.manual_seed(0)
rotary = RotaryEmbedding(dim=8)
query, key = torch.randn(1, 2, 6, 16), torch.randn(1, 2, 6, 16)
scores = rotary.rotate_queries_or_keys(query) @ rotary.rotate_queries_or_keys(key).mT
moved = rotary.rotate_queries_or_keys(query, offset=5) @ rotary.rotate_queries_or_keys(key, offset=5).mT
assert torch.allclose(scores, moved, atol=1e-4)
print("scores", scores.mean().item(), scores.square().mean().item())
axial = RotaryEmbedding(dim=4, freqs_for="pixel", max_freq=16)
frequencies = axial.get_axial_freqs(3, 4)
print("axial", apply_rotary_emb(frequencies, torch.ones(1, 3, 4, 16)).square().mean().item(), frequencies.std().item())
scaled = RotaryEmbedding(dim=8, use_xpos=True)
first, second = scaled.rotate_queries_and_keys(query, key)
print("scaled", first.mean().item(), second.mean().item())
learned = RotaryEmbedding(dim=8, learned_freq=True)
loss = (learned.rotate_queries_or_keys(query) - key).square().mean()
loss.backward()
print("gradient", loss.item(), learned.freqs.grad.norm().item())
