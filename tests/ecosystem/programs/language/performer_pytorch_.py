"""A language model of Performer, with attention by random features, learns to repeat a sequence."""

import torch
from performer_pytorch import Performer, PerformerLM, SelfAttention
from performer_pytorch.autoregressive_wrapper import AutoregressiveWrapper

torch.manual_seed(0)
model = AutoregressiveWrapper(
    PerformerLM(num_tokens=13, max_seq_len=32, dim=32, depth=2, heads=2, dim_head=16, nb_features=16, causal=True)
)
tokens = torch.arange(33).remainder(6).add(1).repeat(4, 1)
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
losses = []
for _ in range(15):
    loss = model(tokens)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print("losses", losses[0], losses[-1])
assert losses[-1] < 0.9 * losses[0]
drawn = model.generate(tokens[:1, :6], 6)
assert drawn.shape == (1, 6)
for reversible in (False, True):
    encoder = Performer(dim=16, depth=2, heads=2, dim_head=8, reversible=reversible, generalized_attention=True)
    encoder(torch.randn(1, 12, 16, requires_grad=True)).square().mean().backward()
    print("gradient", sum(p.grad.square().sum() for p in encoder.parameters() if p.grad is not None).item())
print("attention", SelfAttention(dim=16, heads=2, dim_head=8)(torch.randn(1, 5, 16)).sum().item())
