"""Parametrizations, pruning, weight norm, spectral norm, fusion and clipping."""

import copy
import torch
import torch.nn as nn
import torch.nn.utils.parametrize as P
import torch.nn.utils.prune as prune
from shared import told

torch.manual_seed(0)


class Symmetric(nn.Module):
    def forward(self, x):
        return x.triu() + x.triu(1).transpose(-1, -2)

    def right_inverse(self, a):
        return a.triu()


class Exp(nn.Module):
    def forward(self, x):
        return torch.matrix_exp(x - x.T)


m = nn.Linear(3, 3)
P.register_parametrization(m, "weight", Symmetric())
print(m, type(m), torch.allclose(m.weight, m.weight.T))
P.register_parametrization(m, "weight", Exp())
print(m.weight @ m.weight.T, list(m.state_dict()), P.is_parametrized(m, "weight"), P.is_parametrized(m, "bias"))
told(lambda: setattr(m, "weight", torch.eye(3)))
with P.cached():
    print(m.weight is m.weight)
m(torch.ones(1, 3)).sum().backward()
print(m.parametrizations.weight.original.grad)
told(lambda: P.remove_parametrizations(m, "bias"))
told(lambda: P.register_parametrization(m, "nosuch", Exp()))


class Shape(nn.Module):
    def forward(self, x):
        return x[:1]


told(lambda: P.register_parametrization(nn.Linear(3, 3), "weight", Shape()))


class Kind(nn.Module):
    def forward(self, x):
        return x.double()


told(lambda: P.register_parametrization(nn.Linear(3, 3), "weight", Kind()))
told(lambda: P.register_parametrization(nn.Linear(3, 3), "weight", Shape(), unsafe=True))
told(lambda: copy.deepcopy(m).weight.shape)
P.remove_parametrizations(m, "weight", leave_parametrized=True)
print(m, type(m).__name__)
w = torch.nn.utils.parametrizations.weight_norm(nn.Linear(2, 3), dim=0)
print(list(w.state_dict()), w.parametrizations.weight.original0.flatten())
o = torch.nn.utils.parametrizations.orthogonal(nn.Linear(3, 3))
print((o.weight.T @ o.weight - torch.eye(3)).abs().max() < 1e-5)
s = torch.nn.utils.parametrizations.spectral_norm(nn.Linear(4, 3), n_power_iterations=20)
print(torch.linalg.matrix_norm(s.weight, 2))
l = nn.Linear(4, 3)
prune.l1_unstructured(l, "weight", amount=5)
print(l.weight, list(dict(l.named_buffers())), list(dict(l.named_parameters())), l._forward_pre_hooks)
prune.ln_structured(l, "weight", amount=0.34, n=2, dim=0)
print(l.weight_mask)
prune.random_unstructured(l, "bias", amount=1)
print(l.bias_mask.sum(), prune.is_pruned(l))
prune.remove(l, "weight")
print(l.weight, type(l.weight))
told(lambda: prune.remove(l, "weight"))
told(lambda: prune.l1_unstructured(nn.Linear(2, 2), "weight", amount=1.5))
told(lambda: prune.l1_unstructured(nn.Linear(2, 2), "weight", amount=9))
told(lambda: prune.l1_unstructured(nn.Linear(2, 2), "weight", amount=-1))
told(lambda: prune.l1_unstructured(nn.Linear(2, 2), "weight", amount="x"))
told(lambda: prune.ln_structured(nn.Linear(2, 2), "bias", 1, 2, 0))
told(lambda: prune.ln_structured(nn.Linear(2, 2), "weight", 1, 2, 5))
a, b = nn.Linear(3, 3), nn.Linear(3, 2)
prune.global_unstructured([(a, "weight"), (b, "weight")], pruning_method=prune.L1Unstructured, amount=0.4)
print(a.weight_mask.sum() + b.weight_mask.sum())
told(lambda: prune.global_unstructured(3, prune.L1Unstructured, amount=1))


class Every(prune.BasePruningMethod):
    PRUNING_TYPE = "unstructured"

    def compute_mask(self, t, default_mask):
        mask = default_mask.clone()
        mask.view(-1)[::2] = 0
        return mask


c = nn.Linear(3, 2)
print(Every.apply(c, "weight"), c.weight_mask)
prune.custom_from_mask(c, "bias", torch.tensor([1, 0]))
print(c.bias, c.state_dict().keys())
model = nn.Sequential(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2)).eval()
fused = nn.utils.fuse_conv_bn_eval(model[0], model[1])
x = torch.randn(1, 1, 5, 5)
print(torch.allclose(fused(x), model(x), atol=1e-6))
told(lambda: nn.utils.fuse_conv_bn_eval(model[0].train(), model[1]))
ps = [torch.ones(3, requires_grad=True), torch.ones(2, 2, requires_grad=True)]
told(lambda: nn.utils.clip_grad_norm_(ps, 1.0))
for p in ps:
    p.grad = p.detach() * 3
print(nn.utils.clip_grad_norm_(ps, 2.0), ps[0].grad, nn.utils.get_total_norm([p.grad for p in ps], float("inf")))
nn.utils.clip_grad_value_(ps, 0.5)
print(ps[1].grad)
ps[0].grad[0] = float("nan")
told(lambda: nn.utils.clip_grad_norm_(ps, 1.0, error_if_nonfinite=True))
v = nn.utils.parameters_to_vector(ps)
print(v)
nn.utils.vector_to_parameters(torch.arange(7.0), ps)
print(ps)
told(lambda: nn.utils.vector_to_parameters([1], ps))
