"""loralib's layers of low rank learn beside frozen weights, and merge into them."""

import loralib as lora
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(
    lora.Embedding(10, 8, r=2),
    nn.Flatten(),
    lora.Linear(32, 16, r=2, lora_alpha=4),
    nn.ReLU(),
    lora.MergedLinear(16, 6, r=2, enable_lora=[True, False, True]),
)
lora.mark_only_lora_as_trainable(model)
x, y = torch.randint(10, (8, 4)), torch.randint(6, (8,))
optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=0.02)
values = []
for _ in range(6):
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(x), y)
    loss.backward()
    optimizer.step()
    values.append(loss.item())
print(values[0], values[-1], sorted(lora.lora_state_dict(model)))
before = model(x)
assert values[-1] < values[0] and torch.allclose(model.eval()(x), before, atol=1e-5)
conv = lora.Conv2d(3, 4, kernel_size=3, r=1)
print(conv(torch.rand(1, 3, 5, 5)).sum().item())
