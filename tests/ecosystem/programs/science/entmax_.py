"""Sparse alternatives of softmax: sparsemax, entmax with a learned exponent, and their losses."""

import torch
from entmax import Entmax15Loss, SparsemaxLoss, budget_bisect, entmax15, entmax_bisect, normmax_bisect, sparsemax

torch.manual_seed(0)
x = torch.randn(3, 6, dtype=torch.float64, requires_grad=True)
alpha = torch.tensor(1.3, dtype=torch.float64, requires_grad=True)
for function in (sparsemax, entmax15, lambda x, dim: entmax_bisect(x, alpha, dim)):
    p = function(x, dim=-1)
    (grad,) = torch.autograd.grad((p * torch.arange(6)).sum(), x)
    print(*p[0].tolist(), *grad[0].tolist())
    assert torch.allclose(p.sum(-1), torch.ones(3, dtype=torch.float64))
(grad,) = torch.autograd.grad(entmax_bisect(x, alpha).square().sum(), alpha)
print(grad.item())
print(*normmax_bisect(x, 2)[0].tolist(), *budget_bisect(x, 2)[0].tolist())
assert torch.autograd.gradcheck(lambda x: entmax15(x, dim=1), x) and torch.autograd.gradcheck(sparsemax, x)
for loss in (SparsemaxLoss(), Entmax15Loss()):
    value = loss(x, torch.tensor([0, 3, 5]))
    print(value.item(), *torch.autograd.grad(value, x)[0][0].tolist())
