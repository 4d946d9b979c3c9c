"""BackPACK adds to a backward pass: gradients of samples, their variance, curvature, Kronecker factors."""

import torch
from backpack import backpack, extend, extensions
from torch import nn

torch.manual_seed(0)
model = extend(nn.Sequential(nn.Conv2d(1, 3, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(27, 4)))
criterion = extend(nn.CrossEntropyLoss())
x, y = torch.randn(6, 1, 8, 8), torch.tensor([0, 1, 2, 3, 0, 1])
loss = criterion(model(x), y)
asked = (
    extensions.BatchGrad(),
    extensions.Variance(),
    extensions.SumGradSquared(),
    extensions.BatchL2Grad(),
    extensions.DiagGGNExact(),
    extensions.DiagGGNMC(mc_samples=2),
    extensions.KFLR(),
    extensions.KFAC(),
    extensions.DiagHessian(),
)
with backpack(*asked):
    loss.backward()
print(loss.item())
for name, p in model.named_parameters():
    print(
        name, p.grad.norm().item(), p.grad_batch.norm().item(), p.variance.sum().item(), p.sum_grad_squared.sum().item()
    )
    print(p.batch_l2.sum().item(), p.diag_ggn_exact.sum().item(), p.diag_ggn_mc.sum().item(), p.diag_h.sum().item())
    print(*[factor.norm().item() for factor in (*p.kflr, *p.kfac)])
    assert torch.allclose(p.grad_batch.sum(0), p.grad, atol=1e-5)
