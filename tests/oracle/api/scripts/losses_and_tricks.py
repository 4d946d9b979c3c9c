"""What papers do in a few lines: reversed gradients, contrastive losses, MAML, ensembles, L-BFGS, graphs, LSTM."""

import copy
import math
import itertools
import numpy as np
import torch
from torch import nn, optim
import torch.nn.functional as F
from torch.autograd import Function
from torch.func import functional_call, vmap, grad, jacrev

rng = np.random.default_rng(1)


def arr(*s, scale=1.0):
    return torch.from_numpy(rng.standard_normal(s) * scale).float()


def fill(m):
    with torch.no_grad():
        for p in m.parameters():
            p.copy_(arr(*p.shape, scale=0.3))
    return m


# gradient reversal
class GradReverse(Function):
    @staticmethod
    def forward(ctx, x, alpha):
        ctx.alpha = alpha
        return x.view_as(x)

    @staticmethod
    def backward(ctx, g):
        return g.neg() * ctx.alpha, None


class Clamp(Function):
    @staticmethod
    def forward(ctx, x, lo, hi):
        ctx.save_for_backward(x)
        ctx.lo, ctx.hi = lo, hi
        return x.clamp(lo, hi)

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * ((x >= ctx.lo) & (x <= ctx.hi)).float(), None, None


f, c, d = fill(nn.Linear(4, 8)), fill(nn.Linear(8, 2)), fill(nn.Linear(8, 2))
x, y, dom = arr(10, 4), torch.tensor([0, 1] * 5), torch.tensor([0] * 5 + [1] * 5)
o = optim.SGD(itertools.chain(f.parameters(), c.parameters(), d.parameters()), lr=0.1)
for i in range(3):
    h = F.relu(f(x))
    l = F.cross_entropy(c(h), y) + F.cross_entropy(d(GradReverse.apply(h, 0.5)), dom) + Clamp.apply(h, 0.0, 1.0).mean()
    o.zero_grad()
    l.backward()
    o.step()
    print(f"dann {l.item():.5f}")
# metric learning
emb = fill(nn.Sequential(nn.Linear(4, 8), nn.PReLU(), nn.Linear(8, 3)))
a, p, n = arr(6, 4), arr(6, 4), arr(6, 4)
print(
    f"{nn.TripletMarginLoss(margin=1.0)(emb(a), emb(p), emb(n)):.5f} {nn.CosineEmbeddingLoss(margin=0.1)(emb(a), emb(p), torch.tensor([1, -1] * 3)):.5f} {F.pairwise_distance(emb(a), emb(p)).mean():.5f}"
)


def nt_xent(z1, z2, t=0.5):
    z = F.normalize(torch.cat([z1, z2]), dim=1)
    s = z @ z.T / t
    s.fill_diagonal_(float("-inf"))
    n = len(z1)
    return F.cross_entropy(s, torch.cat([torch.arange(n, 2 * n), torch.arange(n)]))


print(f"ntxent {nt_xent(emb(a), emb(p)):.5f}")
D = torch.cdist(emb(a), emb(p))
print(f"{D.min(1).values.sum():.5f}", torch.triu(D.round(decimals=2), 1)[0])
# distillation, focal, mixup, dice
T = 2.0
s, t = arr(5, 3), arr(5, 3)
print(f"kd {F.kl_div(F.log_softmax(s / T, 1), F.softmax(t / T, 1), reduction='batchmean') * T * T:.5f}")


def focal(logits, y, g=2.0):
    ce = F.cross_entropy(logits, y, reduction="none")
    pt = torch.exp(-ce)
    return ((1 - pt) ** g * ce).mean()


print(f"focal {focal(s, torch.tensor([0, 1, 2, 0, 1])):.5f}")
lam = 0.3
idx = torch.tensor([3, 1, 0, 2, 4])
yy = F.one_hot(torch.tensor([0, 1, 2, 0, 1]), 3).float()
mix = lam * yy + (1 - lam) * yy[idx]
print(f"mixup {F.cross_entropy(s, mix):.5f} {torch.sum(-mix * F.log_softmax(s, dim=-1), dim=-1).mean():.5f}")


def dice(pred, target, eps=1.0):
    p = torch.sigmoid(pred).contiguous().view(pred.shape[0], -1)
    q = target.contiguous().view(target.shape[0], -1)
    i = (p * q).sum(1)
    return 1 - ((2.0 * i + eps) / (p.sum(1) + q.sum(1) + eps)).mean()


print(f"dice {dice(arr(2, 1, 4, 4), (arr(2, 1, 4, 4) > 0).float()):.5f}")
pr, tg = torch.tensor(rng.integers(0, 3, (2, 4, 4))), torch.tensor(rng.integers(0, 3, (2, 4, 4)))
hist = torch.bincount(3 * tg.flatten() + pr.flatten(), minlength=9).reshape(3, 3).float()
print((torch.diag(hist) / (hist.sum(1) + hist.sum(0) - torch.diag(hist))))
# VQ-VAE straight-through
cb = nn.Embedding(5, 3)
cb.weight.data.copy_(arr(5, 3))
z = arr(7, 3).requires_grad_()
dist = z.pow(2).sum(1, keepdim=True) - 2 * z @ cb.weight.t() + cb.weight.pow(2).sum(1)
k = dist.argmin(1)
q = cb(k)
l = F.mse_loss(q.detach(), z) * 0.25 + F.mse_loss(q, z.detach())
st = z + (q - z).detach()
(l + st.sum()).backward()
enc = torch.zeros(7, 5).scatter_(1, k.unsqueeze(1), 1)
ap = enc.mean(0)
print(
    f"vq {l:.5f} perp {torch.exp(-torch.sum(ap * torch.log(ap + 1e-10))):.4f} {z.grad.sum():.4f} {cb.weight.grad.norm():.4f}"
)
# gumbel
torch.manual_seed(0)
g = F.gumbel_softmax(arr(4, 3), tau=1.0, hard=True)
print(g.sum(1))
# MAML
net = fill(nn.Sequential(nn.Linear(1, 8), nn.Tanh(), nn.Linear(8, 1)))
params = dict(net.named_parameters())
mo = optim.Adam(net.parameters(), 1e-2)
for step in range(3):
    mo.zero_grad()
    tot = 0.0
    for task in range(2):
        ph = 0.5 * task
        xs = torch.linspace(-2, 2, 10).unsqueeze(1)
        ys = torch.sin(xs + ph)
        fast = {k: v for k, v in net.named_parameters()}
        for _ in range(2):
            ls = F.mse_loss(functional_call(net, fast, (xs[::2],)), ys[::2])
            gs = torch.autograd.grad(ls, tuple(fast.values()), create_graph=True)
            fast = {k: v - 0.1 * g for (k, v), g in zip(fast.items(), gs)}
        tot = tot + F.mse_loss(functional_call(net, fast, (xs[1::2],)), ys[1::2])
    tot.backward()
    mo.step()
    print(f"maml {tot.item():.6f}")


# per-sample grads, ensembles
def loss1(p, x, y):
    return F.mse_loss(functional_call(net, p, (x.unsqueeze(0),)), y.unsqueeze(0))


det = {k: v.detach() for k, v in net.named_parameters()}
psg = vmap(grad(loss1), in_dims=(None, 0, 0))(det, xs, ys)
print({k: tuple(v.shape) for k, v in psg.items()}, f"{psg['0.weight'].pow(2).sum():.5f}")
from torch.func import stack_module_state

models = [fill(nn.Linear(2, 1)) for _ in range(3)]
P, B = stack_module_state(models)
base = copy.deepcopy(models[0]).to("meta") if False else models[0]
print(vmap(lambda p, b, x: functional_call(base, (p, b), (x,)), in_dims=(0, 0, None))(P, B, torch.ones(4, 2)).shape)
# PINN
u = fill(nn.Sequential(nn.Linear(2, 8), nn.Tanh(), nn.Linear(8, 1)))
xt = arr(16, 2).requires_grad_()
o = optim.LBFGS(u.parameters(), lr=0.5, max_iter=5, history_size=5, line_search_fn="strong_wolfe")


def closure():
    o.zero_grad()
    v = u(xt)
    (g,) = torch.autograd.grad(v, xt, torch.ones_like(v), create_graph=True)
    uxx = torch.autograd.grad(g[:, 0], xt, torch.ones_like(g[:, 0]), create_graph=True)[0][:, 0]
    r = g[:, 1] - 0.1 * uxx
    l = (r**2).mean() + (u(xt)[:, 0] - torch.sin(xt[:, 0])).pow(2).mean()
    l.backward()
    return l


for i in range(3):
    print(f"pinn {o.step(closure):.6f}")
# GNN
ei = torch.tensor([[0, 1, 2, 3, 0], [1, 2, 3, 0, 2]])
X = arr(4, 3)
W = fill(nn.Linear(3, 2))
deg = torch.zeros(4).index_add_(0, ei[1], torch.ones(5))
nrm = deg.clamp(min=1).pow(-0.5)
msg = W(X)[ei[0]] * (nrm[ei[0]] * nrm[ei[1]]).unsqueeze(-1)
out = torch.zeros(4, 2).scatter_add(0, ei[1].unsqueeze(-1).expand(-1, 2), msg)
print(
    out.log_softmax(-1).sum().item().__round__(4),
    torch.zeros(4, 2)
    .scatter_reduce(0, ei[1].unsqueeze(-1).expand(-1, 2), msg, "amax", include_self=False)
    .sum()
    .item()
    .__round__(4),
)
# EWC / fisher / hooks
m = fill(nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2)))
acts, grads = {}, {}
hs = [
    l.register_forward_hook(lambda mod, i, o, n=n: acts.__setitem__(n, o.detach().mean().item()))
    for n, l in m.named_modules()
    if isinstance(l, nn.Linear)
] + [
    l.register_full_backward_hook(lambda mod, gi, go, n=n: grads.__setitem__(n, go[0].norm().item()))
    for n, l in m.named_children()
]
m(X).logsumexp(1).sum().backward()
print({k: round(v, 4) for k, v in acts.items()}, {k: round(v, 4) for k, v in grads.items()})
[h.remove() for h in hs]
fisher = {n: p.grad.detach().clone().pow(2) for n, p in m.named_parameters()}
old = {n: p.detach().clone() for n, p in m.named_parameters()}
print(f"{sum((fisher[n] * (p - old[n] - 0.1) ** 2).sum() for n, p in m.named_parameters()):.6f}")


# LSTM forecasting
class LM(nn.Module):
    def __init__(s):
        super().__init__()
        s.l = nn.LSTM(1, 8, 2, batch_first=True, dropout=0.0)
        s.fc = nn.Linear(8, 1)

    def forward(s, x, h=None):
        if h is None:
            h = (torch.zeros(2, x.size(0), 8).requires_grad_(), torch.zeros(2, x.size(0), 8).requires_grad_())
        o, (hn, cn) = s.l(x, (h[0].detach(), h[1].detach()))
        return s.fc(o[:, -1, :]), (hn, cn)


ser = torch.sin(torch.arange(60) * 0.3)
w = ser.unfold(0, 11, 1)
xs, ys = w[:, :10].unsqueeze(-1), w[:, 10:]
lm = fill(LM())
o = optim.RMSprop(lm.parameters(), 1e-2)
sc = optim.lr_scheduler.StepLR(o, 2, 0.5)
for e in range(4):
    lm.train()
    l = F.huber_loss(lm(xs)[0], ys)
    o.zero_grad()
    l.backward()
    o.step()
    sc.step()
    print(f"lstm {l.item():.6f} {sc.get_last_lr()}")
perm = torch.stack([torch.roll(ser, i) for i in range(3)])
print(torch.corrcoef(perm).round(decimals=3), torch.histc(ser, 4), torch.quantile(ser, torch.tensor([0.25, 0.5])))
print(
    torch.einsum("bij,bjk->bik", arr(2, 3, 4), arr(2, 4, 5)).shape,
    torch.where(ser > 0.5)[0][:3],
    torch.nonzero(ser > 0.9, as_tuple=False)[:2].tolist(),
    ser.view(6, 10).std(dim=1, unbiased=False)[:2],
    torch.meshgrid(torch.arange(2), torch.arange(3), indexing="ij")[0].tolist(),
    torch.searchsorted(torch.tensor([1.0, 2.0, 3.0]), torch.tensor([1.5])),
    torch.linalg.svd(arr(3, 3))[1].shape,
)
