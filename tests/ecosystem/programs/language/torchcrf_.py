"""A conditional random field over sequences of tags learns, and finds the best tags."""

import torch
from torchcrf import CRF

torch.manual_seed(0)
model = CRF(4, batch_first=True)
emissions = torch.randn(3, 5, 4)
tags = torch.randint(4, (3, 5))
mask = torch.tensor([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0], [1, 1, 1, 1, 0]], dtype=torch.uint8)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(5):
    optimizer.zero_grad()
    loss = -model(emissions, tags, mask=mask.bool(), reduction="token_mean")
    loss.backward()
    optimizer.step()
    print(loss.item())
print(model.decode(emissions, mask=mask.bool()), model)
