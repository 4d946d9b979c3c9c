"""A language model with linear and local attention learns to repeat a sequence; another one reversibly."""

import torch
from linear_attention_transformer import LinearAttentionTransformerLM

for reversible in (False, True):
    torch.manual_seed(0)
    model = LinearAttentionTransformerLM(
        num_tokens=16, dim=32, heads=4, depth=2, max_seq_len=32, causal=True, n_local_attn_heads=2,
        local_attn_window_size=8, reversible=reversible, blindspot_size=1,
    )  # fmt: skip
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    tokens = (torch.arange(33) % 5).repeat(2, 1)
    losses = []
    for _ in range(15):
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(tokens[:, :-1]).transpose(1, 2), tokens[:, 1:])
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    print("losses", losses[0], losses[-1])
    assert losses[-1] < 0.7 * losses[0]
