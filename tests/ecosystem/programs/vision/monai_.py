"""A U-Net of MONAI learns a segmentation; metrics, transforms and inference by sliding windows."""

import torch
from monai.inferers import sliding_window_inference
from monai.losses import DiceCELoss
from monai.metrics import DiceMetric
from monai.networks.nets import UNet
from monai.transforms import Compose, EnsureChannelFirst, RandFlip, Resize, ScaleIntensity

torch.manual_seed(0)
model = UNet(spatial_dims=2, in_channels=1, out_channels=2, channels=(4, 8), strides=(2,), num_res_units=1)
images = torch.rand(2, 1, 16, 16)
labels = (images > 0.5).float()
loss_of = DiceCELoss(to_onehot_y=True, softmax=True)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
losses = []
for _ in range(15):
    optimizer.zero_grad()
    loss = loss_of(model(images), labels)
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print("losses", losses[0], losses[-1])
assert losses[-1] < 0.7 * losses[0]
found = sliding_window_inference(images, (8, 8), 2, model).argmax(1, keepdim=True)
dice = DiceMetric(include_background=False)
dice(found.float(), labels)
assert dice.aggregate().item() > 0.6
transform = Compose(
    [EnsureChannelFirst(channel_dim="no_channel"), ScaleIntensity(), RandFlip(prob=1.0), Resize((8, 8))]
)
transformed = transform(torch.arange(256.0).reshape(16, 16))
assert transformed.shape == (1, 8, 8)
print("mean", transformed.mean().item())
