"""A ResNet and a vision transformer from timm's registry train on a few images, without pretrained weights."""

import timm.optim
import torch

images = torch.rand(4, 3, 32, 32, generator=torch.Generator().manual_seed(1))
labels = torch.tensor([0, 1, 0, 1])
for name, options in (
    ("resnet10t", {}),
    ("vit_tiny_patch16_224", {"img_size": 32, "patch_size": 8, "depth": 2}),
):
    torch.manual_seed(0)
    model = timm.create_model(name, pretrained=False, num_classes=2, **options)
    optimizer = timm.optim.create_optimizer_v2(model, opt="adamw", lr=1e-3)
    losses = []
    for _ in range(5):
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(images), labels)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    print(name, losses[0], losses[-1])
    assert losses[-1] < losses[0]
