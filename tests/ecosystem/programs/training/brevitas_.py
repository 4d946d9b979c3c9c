"""Training of networks with few bits by Brevitas: convolutions, recurrent layers, and tensors with scales."""

import brevitas.nn as qnn
import torch
from torch import nn

torch.manual_seed(0)
x, y = torch.rand(24, 1, 8, 8), torch.arange(24) % 3
x[y == 1, :, :3] += 0.5
x[y == 2, :, 5:] += 0.5
model = nn.Sequential(
    qnn.QuantIdentity(bit_width=8, return_quant_tensor=True),
    qnn.QuantConv2d(1, 4, 3, weight_bit_width=4),
    qnn.QuantReLU(bit_width=4),
    nn.Flatten(),
    qnn.QuantLinear(144, 3, bias=True, weight_bit_width=4),
)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
losses = []
for _ in range(15):
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(x), y)
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print(losses[0], losses[-1])
assert losses[-1] < losses[0]
model.eval()
weight = model[1].quant_weight()
assert weight.int().abs().max() <= 7
print(weight.scale.item(), model(x).sum().item())

for layer, size in (
    (qnn.QuantLSTM(4, 6), (5, 2, 4)), (qnn.QuantRNN(4, 6), (5, 2, 4)), (qnn.QuantConvTranspose2d(2, 3, 3), (1, 2, 5, 5))
):  # fmt: skip
    out = layer(torch.randn(size))
    out = out[0] if "Conv" not in type(layer).__name__ else out
    out.square().sum().backward()
    print(out.sum().item(), *(p.grad.abs().sum().item() for p in layer.parameters() if p.grad is not None))
