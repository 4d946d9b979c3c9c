"""Where a network looks: class activation maps of many kinds, by gradients, by ablation and by principal components."""

import numpy as np
import pytorch_grad_cam as cams
import torch
from pytorch_grad_cam.utils.image import show_cam_on_image
from pytorch_grad_cam.utils.model_targets import ClassifierOutputTarget
from torch import nn

torch.manual_seed(0)
images = 0.1 * torch.rand(32, 1, 16, 16)
labels = torch.arange(32) % 2
images[labels == 0, :, 2:6, 2:6] += 1  # a square at the top left, or at the bottom right
images[labels == 1, :, 10:14, 10:14] += 1
model = nn.Sequential(
    nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(8, 8, 3, padding=1), nn.ReLU(),
    nn.Flatten(), nn.Linear(512, 2),
)  # fmt: skip
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
for _ in range(30):
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(images), labels)
    loss.backward()
    optimizer.step()
print(loss.item())
for name in "GradCAM HiResCAM GradCAMPlusPlus XGradCAM LayerCAM ScoreCAM AblationCAM EigenGradCAM".split():
    with getattr(cams, name)(model=model, target_layers=[model[3]]) as cam:
        shown = cam(input_tensor=images[:1], targets=[ClassifierOutputTarget(0)])[0]
    print(name, float(shown.mean()), float(shown[2:6, 2:6].mean()))
    if name in ("HiResCAM", "LayerCAM"):
        assert shown[2:6, 2:6].mean() > 2 * shown[10:14, 10:14].mean()
assert show_cam_on_image(np.zeros((16, 16, 3), np.float32), shown).shape == (16, 16, 3)
