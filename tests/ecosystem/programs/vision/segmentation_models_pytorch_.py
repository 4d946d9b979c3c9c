"""Decoders of four kinds on a ResNet: losses and gradients."""

import segmentation_models_pytorch
import torch

images = torch.rand(2, 3, 64, 64, generator=torch.Generator().manual_seed(1))
labels = (images[:, :1] > 0.5).float()
dice = segmentation_models_pytorch.losses.DiceLoss("binary")
for name in ("Unet", "FPN", "DeepLabV3Plus", "Segformer"):
    torch.manual_seed(0)
    model = getattr(segmentation_models_pytorch, name)("resnet18", encoder_weights=None, in_channels=3, classes=1)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    losses = []
    for _ in range(3):
        torch.manual_seed(0)  # for dropout
        optimizer.zero_grad()
        loss = dice(model(images), labels)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    print(name, losses[0])
    assert losses[-1] < losses[0]
