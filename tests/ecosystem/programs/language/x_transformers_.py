"""A small decoder learns to repeat a sequence of characters."""

import torch
from x_transformers import AutoregressiveWrapper, Decoder, TransformerWrapper

torch.manual_seed(0)
model = AutoregressiveWrapper(
    TransformerWrapper(num_tokens=8, max_seq_len=32, attn_layers=Decoder(dim=32, depth=2, heads=4, rotary_pos_emb=True))
)
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
data = (torch.arange(17) % 4).repeat(4, 1)
losses = []
for _ in range(40):
    optimizer.zero_grad()
    loss = model(data)
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print("losses", losses[0], losses[-1])
assert losses[-1] < 0.2 * losses[0]
generated = model.generate(data[:1, :4], 8, temperature=0.0)
assert generated.tolist() == [[0, 1, 2, 3, 0, 1, 2, 3]], generated
