"""A language model of Reformer, with attention by hashes and reversible layers, learns to repeat a sequence."""

import torch
from reformer_pytorch import LSHSelfAttention, ReformerLM
from reformer_pytorch.generative_tools import TrainingWrapper

torch.manual_seed(0)
model = TrainingWrapper(
    ReformerLM(num_tokens=13, dim=32, depth=2, max_seq_len=64, heads=2, bucket_size=8, n_hashes=2, causal=True)
)
tokens = torch.arange(33).remainder(6).add(1).repeat(4, 1)
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
losses = []
for _ in range(15):
    loss = model(tokens, return_loss=True)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print("losses", losses[0], losses[-1])
assert losses[-1] < 0.9 * losses[0]
attention = LSHSelfAttention(dim=16, heads=2, bucket_size=4, n_hashes=2)
print("attention", attention(torch.randn(1, 16, 16)).square().mean().item())
