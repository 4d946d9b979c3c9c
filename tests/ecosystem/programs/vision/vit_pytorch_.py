"""Vision transformers of four kinds, one of them for images of any size, learn a few images."""

import torch
from vit_pytorch import SimpleViT, ViT
from vit_pytorch.cct import CCT
from vit_pytorch.na_vit import NaViT

sizes = {"image_size": 16, "patch_size": 4, "num_classes": 3, "dim": 16, "depth": 1, "heads": 2, "mlp_dim": 16}
images = torch.rand(4, 3, 16, 16, generator=torch.Generator().manual_seed(1))
labels = torch.tensor([0, 1, 2, 0])
convolutions = {"n_conv_layers": 1, "kernel_size": 3, "stride": 2, "padding": 1}
pooling = {"pooling_kernel_size": 3, "pooling_stride": 2, "pooling_padding": 1}
kinds = {
    "plain": lambda: ViT(**sizes),
    "simple": lambda: SimpleViT(**sizes),
    "convolutions": lambda: CCT(16, 16, num_layers=1, num_heads=2, num_classes=3, **convolutions, **pooling),
    "any size": lambda: NaViT(**sizes),
}
for name, make in kinds.items():
    torch.manual_seed(0)
    model = make()
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    losses = []
    for _ in range(10):
        torch.manual_seed(0)  # for dropout
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model([list(images)] if name == "any size" else images), labels)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    print(name, losses[0], losses[-1])
    assert losses[-1] < losses[0]
