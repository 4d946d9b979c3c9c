"""State-space models of mambapy, in parallel and one step after the other, learn to repeat a sequence."""

import torch
from mambapy.mamba import Mamba, MambaConfig
from torch import nn

torch.manual_seed(0)
tokens = torch.randint(0, 11, (8, 17))
for parallel in (True, False):
    stack = Mamba(MambaConfig(d_model=16, n_layers=2, pscan=parallel))
    model = nn.Sequential(nn.Embedding(11, 16), stack, nn.Linear(16, 11))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    losses = []
    for _ in range(12):
        logits = model(tokens[:, :-1])
        loss = nn.functional.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    print("losses", losses[0], losses[-1])
    assert losses[-1] < 0.9 * losses[0]
x = torch.randn(2, 6, 16)
whole = stack(x)
caches = [(None, torch.zeros(2, 32, 3)) for _ in range(2)]
steps = []
for i in range(6):
    y, caches = stack.step(x[:, i], caches)
    steps.append(y)
print("whole", whole.square().mean().item())
assert torch.allclose(torch.stack(steps, 1), whole, atol=1e-5)
