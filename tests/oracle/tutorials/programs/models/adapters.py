"""Adapters by parametrizations, pruning, and distillation into a smaller model."""

import torch, torch.nn as nn, torch.nn.functional as F, math, copy
import torch.nn.utils.parametrize as P
from torch.nn.utils import (
    prune,
    parametrizations,
    weight_norm,
    spectral_norm,
    remove_weight_norm,
    skip_init,
    fusion,
    parameters_to_vector,
    vector_to_parameters,
)

torch.manual_seed(0)


class LoRA(nn.Module):
    def __init__(s, fin, fout, r=2, alpha=4):
        super().__init__()
        s.A = nn.Parameter(torch.empty(r, fin))
        s.B = nn.Parameter(torch.zeros(fout, r))
        nn.init.kaiming_uniform_(s.A, a=math.sqrt(5))
        s.scale = alpha / r
        s.enabled = True

    def forward(s, W):
        return W + s.scale * (s.B @ s.A) if s.enabled else W


net = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 3))
before = copy.deepcopy(net)
for l in net:
    if isinstance(l, nn.Linear):
        P.register_parametrization(l, "weight", LoRA(l.in_features, l.out_features))
for n, p in net.named_parameters():
    p.requires_grad_("A" in n.split(".")[-1] or "B" in n.split(".")[-1])
print([n for n, p in net.named_parameters() if p.requires_grad])
print(net)
x, y = torch.randn(20, 6), torch.randint(3, (20,))
opt = torch.optim.Adam((p for p in net.parameters() if p.requires_grad), lr=0.05)
for i in range(10):
    with P.cached():
        loss = F.cross_entropy(net(x), y)
    opt.zero_grad()
    loss.backward()
    opt.step()
print(loss)
sd = net.state_dict()
print(list(sd))
P.remove_parametrizations(net[0], "weight", leave_parametrized=True)
print(list(net.state_dict()), P.is_parametrized(net), P.is_parametrized(net[0]), type(net[0]))
for l in net:
    if P.is_parametrized(l):
        l.parametrizations.weight[0].enabled = False
print((net(x) - before(x)).abs().max())
o = parametrizations.orthogonal(nn.Linear(4, 3))
print((o.weight @ o.weight.T).allclose(torch.eye(3), atol=1e-5))
w = parametrizations.weight_norm(nn.Linear(3, 2))
print(w, sorted(w.state_dict()))
sn = parametrizations.spectral_norm(nn.Linear(3, 4))
print(torch.linalg.matrix_norm(sn.weight, 2) < 1.3)
o.weight = torch.eye(3, 4)
print(o.weight)
# pruning
m = nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU(), nn.Conv2d(4, 2, 3))
prune.l1_unstructured(m[0], "weight", 0.3)
print(list(m[0]._forward_pre_hooks.values()), dict(m[0].named_buffers()).keys())
prune.random_unstructured(m[0], "bias", 2)
prune.ln_structured(m[0], "weight", 0.5, n=2, dim=0)
print(m[0].weight_mask.mean(), m[0].bias)
print(m.state_dict().keys())
prune.global_unstructured([(m[0], "weight"), (m[2], "weight")], pruning_method=prune.L1Unstructured, amount=0.2)
print([float(l.weight_mask.sum()) for l in (m[0], m[2])])
prune.remove(m[0], "weight")
print(list(m[0]._parameters), prune.is_pruned(m))


class Foo(prune.BasePruningMethod):
    PRUNING_TYPE = "unstructured"

    def compute_mask(self, t, default_mask):
        mask = default_mask.clone()
        mask.view(-1)[::2] = 0
        return mask


Foo.apply(m[2], "bias")
print(m[2].bias)
try:
    prune.l1_unstructured(m[2], "nothing", 0.1)
except AttributeError as e:
    print(e)
v = parameters_to_vector(before.parameters())
vector_to_parameters(v * 0, before.parameters())
print(v.shape, before[0].weight.abs().sum())
c = fusion.fuse_conv_bn_eval(nn.Conv2d(1, 2, 1).eval(), nn.BatchNorm2d(2).eval())
print(c)
print(skip_init(nn.Linear, 2, 3).weight.shape)
# distillation
T, S = nn.Sequential(nn.Linear(6, 32), nn.ReLU(), nn.Linear(32, 3)).eval(), nn.Linear(6, 3)
opt = torch.optim.SGD(S.parameters(), lr=0.5, momentum=0.9, nesterov=True)
for i in range(20):
    with torch.no_grad():
        tl = T(x)
    sl = S(x)
    soft = F.softmax(tl / 2, -1)
    kd = torch.sum(soft * (soft.log() - F.log_softmax(sl / 2, -1))) / sl.size(0) * 4
    l = 0.75 * F.cross_entropy(sl, y) + 0.25 * kd
    opt.zero_grad()
    l.backward()
    opt.step()
print(
    l,
    F.kl_div(F.log_softmax(sl, 1), F.log_softmax(tl, 1), reduction="batchmean", log_target=True),
    nn.CosineEmbeddingLoss()(sl, tl, torch.ones(20)),
)
