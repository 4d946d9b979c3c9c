"""Diffusion models of images and of sequences learn, and draw by DDIM."""

import torch
from denoising_diffusion_pytorch import GaussianDiffusion, GaussianDiffusion1D, Unet, Unet1D

torch.manual_seed(0)
images = torch.rand(2, 3, 16, 16)
diffusion = GaussianDiffusion(
    Unet(dim=8, dim_mults=(1, 2), flash_attn=False), image_size=16, timesteps=20, sampling_timesteps=3
)
optimizer = torch.optim.Adam(diffusion.parameters(), lr=1e-3)
values = []
for _ in range(4):
    optimizer.zero_grad()
    loss = diffusion(images)
    loss.backward()
    optimizer.step()
    values.append(loss.item())
print("images", *values, diffusion.sample(batch_size=1).mean().item())
line = GaussianDiffusion1D(
    Unet1D(dim=8, dim_mults=(1, 2), channels=2), seq_length=16, timesteps=20, sampling_timesteps=2
)
loss = line(torch.rand(2, 2, 16))
loss.backward()
print("sequences", loss.item(), line.sample(batch_size=1).std().item())
