"""Attacks on a network: along gradients, by fixed and adapted steps, with momentum, and by the smallest changes."""

import torch
import torchattacks
from torch import nn

torch.manual_seed(0)
images = torch.rand(4, 3, 8, 8)
model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(144, 3)).eval()
labels = model(images).argmax(1)
before = nn.functional.cross_entropy(model(images), labels).item()
for name in ("FGSM", "PGD", "PGDL2", "MIFGSM", "APGD", "CW", "DeepFool"):
    torch.manual_seed(0)
    changed = getattr(torchattacks, name)(model)(images, labels)
    after = nn.functional.cross_entropy(model(changed), labels).item()
    print(name, after, (changed - images).abs().mean().item())
    assert after > before
