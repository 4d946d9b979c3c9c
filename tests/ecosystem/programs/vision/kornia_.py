"""Color spaces, filters, a differentiable rotation and an augmentation of kornia."""

import kornia
import torch

torch.manual_seed(0)
image = torch.rand(1, 3, 16, 16)
gray = kornia.color.rgb_to_grayscale(image)
weights = torch.tensor([0.299, 0.587, 0.114]).view(1, 3, 1, 1)
assert torch.allclose(gray, (image * weights).sum(1, keepdim=True), atol=1e-3)
assert torch.allclose(kornia.color.hsv_to_rgb(kornia.color.rgb_to_hsv(image)), image, atol=1e-4)
blurred = kornia.filters.gaussian_blur2d(image, (5, 5), (1.0, 1.0))
assert blurred.shape == image.shape and blurred.var() < image.var()

smooth = kornia.filters.gaussian_blur2d(torch.rand(1, 1, 32, 32), (9, 9), (3.0, 3.0))
target = kornia.geometry.transform.rotate(smooth, torch.tensor([10.0]))
angle = torch.zeros(1, requires_grad=True)
optimizer = torch.optim.Adam([angle], lr=1.0)
losses = []
for _ in range(25):
    optimizer.zero_grad()
    loss = (kornia.geometry.transform.rotate(smooth, angle) - target).square().mean()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print("losses", losses[0], losses[-1])
assert losses[-1] < 0.5 * losses[0] and abs(angle.item() - 10) < 5
augmented = kornia.augmentation.RandomHorizontalFlip(p=1.0)(image)
assert torch.allclose(augmented, image.flip(-1))
