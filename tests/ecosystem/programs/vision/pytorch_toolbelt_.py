"""Losses and layers of pytorch-toolbelt: overlap, focus, and averages over flipped images."""

import torch
from pytorch_toolbelt import losses
from pytorch_toolbelt.inference import tta
from torch import nn

torch.manual_seed(0)
x, y = torch.rand(2, 3, 16, 16), (torch.rand(2, 1, 16, 16) > 0.5).float()
kinds = (
    losses.DiceLoss("binary"), losses.JaccardLoss("binary"), losses.BinaryFocalLoss(), losses.BinaryLovaszLoss(),
    losses.SoftBCEWithLogitsLoss(smooth_factor=0.1), losses.WingLoss(), losses.LogCoshLoss(),
    losses.BalancedBCEWithLogitsLoss(),
)  # fmt: skip
for criterion in kinds:
    torch.manual_seed(1)
    model = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(), nn.Conv2d(8, 1, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    values = []
    for _ in range(5):
        loss = criterion(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        values.append(loss.item())
    print(type(criterion).__name__, values[0], values[-1])
    assert values[-1] < values[0]
with torch.no_grad():
    print("flips", tta.d4_image2mask(model, x).mean().item())
