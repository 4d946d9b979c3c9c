"""Attention by Nyström's method trains, with masks; the pseudoinverse by iteration."""

import torch
from nystrom_attention import NystromAttention, Nystromformer
from nystrom_attention.nystrom_attention import moore_penrose_iter_pinv

torch.manual_seed(0)
model = Nystromformer(dim=16, dim_head=8, heads=2, depth=2, num_landmarks=4, pinv_iterations=6)
x, mask = torch.randn(2, 20, 16), torch.ones(2, 20).bool()
mask[1, 15:] = False
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
losses = []
for _ in range(12):
    loss = (model(x, mask=mask) - x.flip(-1)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print("losses", losses[0], losses[-1])
assert losses[-1] < 0.9 * losses[0]
attention = NystromAttention(dim=16, dim_head=8, heads=2, num_landmarks=4)
out, weights = attention(x, return_attn=True)
print("weights", out.norm().item(), weights.sum().item())
matrix = torch.softmax(torch.randn(1, 2, 6, 6), -1)
inverse = moore_penrose_iter_pinv(matrix, 20)
assert torch.allclose(matrix @ inverse, torch.eye(6).expand(1, 2, 6, 6), atol=1e-2)
