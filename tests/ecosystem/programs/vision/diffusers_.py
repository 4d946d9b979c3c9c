"""A small U-Net learns to take noise away, and a pipeline draws an image; a scheduler of each family runs."""

import diffusers
import torch

torch.manual_seed(0)
model = diffusers.UNet2DModel(
    sample_size=16,
    in_channels=1,
    out_channels=1,
    layers_per_block=1,
    block_out_channels=(8, 16),
    norm_num_groups=4,
    down_block_types=("DownBlock2D", "AttnDownBlock2D"),
    up_block_types=("AttnUpBlock2D", "UpBlock2D"),
)
scheduler = diffusers.DDPMScheduler(num_train_timesteps=10)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
images, noise, times = torch.rand(2, 1, 16, 16), torch.randn(2, 1, 16, 16), torch.tensor([3, 7])
losses = []
for _ in range(8):
    optimizer.zero_grad()
    found = model(scheduler.add_noise(images, noise, times), times).sample
    loss = torch.nn.functional.mse_loss(found, noise)
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print("losses", losses[0], losses[-1])
assert losses[-1] < 0.7 * losses[0]
pipeline = diffusers.DDPMPipeline(unet=model, scheduler=scheduler)
pipeline.set_progress_bar_config(disable=True)
drawn = pipeline(num_inference_steps=2, output_type="np", generator=torch.Generator().manual_seed(0)).images
assert drawn.shape == (1, 16, 16, 1)
for name in "DDIM PNDM EulerDiscrete DPMSolverMultistep HeunDiscrete UniPCMultistep FlowMatchEulerDiscrete".split():
    scheduler = getattr(diffusers, f"{name}Scheduler")()
    scheduler.set_timesteps(4)
    x = torch.ones(1, 1, 4, 4)
    for time in scheduler.timesteps:
        scaled = scheduler.scale_model_input(x, time) if hasattr(scheduler, "scale_model_input") else x
        x = scheduler.step(scaled * 0.1, time, x).prev_sample
    print(name, x.mean().item())
