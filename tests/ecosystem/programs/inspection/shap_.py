"""SHAP's explanations of networks: DeepLIFT with a background, expected gradients, and those of any function."""

import numpy as np
import shap
import torch
from torch import nn

torch.manual_seed(0)
np.random.seed(0)  # noqa: NPY002, which shap draws from
x = torch.rand(64, 5)
y = 3 * x[:, :1] - 2 * x[:, 1:2] * x[:, 2:3]
model = nn.Sequential(nn.Linear(5, 16), nn.ReLU(), nn.Linear(16, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
for _ in range(200):
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(x), y)
    loss.backward()
    optimizer.step()
print(loss.item())

deep = shap.DeepExplainer(model, x[:32])
values = deep.shap_values(x[32:40])[..., 0]
with torch.no_grad():
    assert np.allclose(values.sum(1) + deep.expected_value, model(x[32:40])[:, 0].numpy(), atol=1e-4)
print(*values[0].tolist())
assert np.abs(values).mean(0).argmax() == 0

print(*shap.GradientExplainer(model, x[:32]).shap_values(x[32:34], nsamples=50, rseed=1)[0, :, 0].tolist())


def plain(array):
    with torch.no_grad():
        return model(torch.tensor(array, dtype=torch.float32))[:, 0].numpy()


print(*shap.KernelExplainer(plain, x[:8].numpy()).shap_values(x[32:33].numpy(), silent=True)[0].tolist())

images = torch.rand(6, 1, 10, 10)
network = nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(64, 3))
print(*shap.DeepExplainer(network, images[:4]).shap_values(images[4:]).sum((0, 1, 2, 3)).tolist())
