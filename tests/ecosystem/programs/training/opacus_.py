"""Training with differential privacy: gradients of samples by hooks, and by `vmap`."""

import torch
from opacus import PrivacyEngine
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

x = torch.rand(32, 4, generator=torch.Generator().manual_seed(1))
y = x.sum(1, keepdim=True)
for mode in ("hooks", "functorch"):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    before = (model(x) - y).square().mean().item()
    engine = PrivacyEngine(accountant="rdp")
    private, optimizer, loader = engine.make_private(
        module=model,
        optimizer=optimizer,
        data_loader=DataLoader(TensorDataset(x, y), batch_size=8),
        noise_multiplier=0.2,
        max_grad_norm=1.0,
        grad_sample_mode=mode,
    )
    for _ in range(3):
        for inputs, targets in loader:
            optimizer.zero_grad()
            (private(inputs) - targets).square().mean().backward()
            optimizer.step()
    after = (private(x) - y).square().mean().item()
    assert after < 0.5 * before and engine.get_epsilon(1e-5) > 0
    print(mode, before)
