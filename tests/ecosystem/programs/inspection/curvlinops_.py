"""Curvature as linear operators: the Hessian, the GGN, Fisher and K-FAC matrices of a network."""

import curvlinops
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 5), nn.Tanh(), nn.Linear(5, 3)).double()
params = [p for p in model.parameters() if p.requires_grad]
data = [(torch.randn(5, 4, dtype=torch.float64), torch.randint(3, (5,))) for _ in range(2)]
loss, total = nn.CrossEntropyLoss(), sum(p.numel() for p in params)
v = torch.randn(total, dtype=torch.float64)
for kind in ("HessianLinearOperator", "GGNLinearOperator", "EFLinearOperator", "KFACLinearOperator"):
    operator = getattr(curvlinops, kind)(model, loss, params, data)
    product = operator @ v
    print(kind, product.norm().item(), product[0].item())
hessian = curvlinops.HessianLinearOperator(model, loss, params, data)
dense = hessian @ torch.eye(total, dtype=torch.float64)
assert torch.allclose(dense, dense.T, atol=1e-8) and torch.allclose(dense @ v, hessian @ v)
ggn = curvlinops.GGNLinearOperator(model, loss, params, data)
print(*torch.linalg.eigvalsh(ggn @ torch.eye(total, dtype=torch.float64))[-3:].tolist())
print(curvlinops.hutchinson_trace(ggn, 20).item() > 0)
