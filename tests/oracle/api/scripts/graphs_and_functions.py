"""Networks on graphs, learning to learn, functions with derivatives of their own, physics with second derivatives."""

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.func import functional_call, grad, vmap, stack_module_state, jacrev, hessian
from torch.autograd.functional import hvp, vjp, jacobian
from torch.autograd import Function
from torch.utils.checkpoint import checkpoint, checkpoint_sequential
from shared import fix, ri, rn, show


N = 12
ei = ri(N, 2, 40)
x = rn(N, 5)
y = ri(3, N)


class GCN(nn.Module):
    def __init__(s, i, o):
        super().__init__()
        s.w = nn.Parameter(torch.empty(i, o))
        s.b = nn.Parameter(torch.zeros(o))
        nn.init.xavier_uniform_(s.w, gain=nn.init.calculate_gain("relu"))

    def forward(s, x, ei):
        r, c = ei
        d = torch.zeros(N).scatter_add_(0, r, torch.ones(len(r))).clamp(min=1).pow(-0.5)
        n = d[r] * d[c]
        return torch.zeros(N, s.w.size(1)).index_add_(0, r, n.unsqueeze(-1) * (x @ s.w)[c]) + s.b


class GAT(nn.Module):
    def __init__(s, i, o):
        super().__init__()
        s.l = nn.Linear(i, o, bias=False)
        s.a = nn.Linear(2 * o, 1)

    def forward(s, x, ei):
        h = s.l(x)
        r, c = ei
        e = F.leaky_relu(s.a(torch.cat([h[r], h[c]], -1)).squeeze(-1), 0.2)
        mx = torch.full((N,), -1e9).scatter_reduce(0, r, e, "amax", include_self=False)
        ex = (e - mx[r]).exp()
        z = torch.zeros(N).index_add(0, r, ex)
        a = ex / (z[r] + 1e-16)
        return torch.zeros_like(h).scatter_add(0, r[:, None].expand(-1, h.size(1)), a[:, None] * h[c])


class M(nn.Module):
    def __init__(s):
        super().__init__()
        s.a, s.b, s.c = GCN(5, 8), GAT(8, 8), GCN(8, 3)

    def forward(s, x):
        return s.c(F.elu(s.b(F.relu(s.a(x, ei)), ei)), ei)


m = fix(M())
o = torch.optim.Adam(m.parameters(), lr=0.02, weight_decay=5e-4)
mask = torch.rand(N) >= 0
mask[::3] = False
for i in range(10):
    m.train()
    o.zero_grad()
    out = F.log_softmax(m(x), 1)
    l = F.nll_loss(out[mask], y[mask])
    l.backward()
    o.step()
    print("%.4f" % l.item())
m.eval()
show("pred", m(x))
pred = m(x).argmax(1)
print((pred[mask] == y[mask]).sum().item())
show("um", torch.unique(ei[0], return_counts=True)[1])
show("pool", torch.zeros(4, 3).index_reduce_(0, ri(4, N), m(x).detach(), "mean", include_self=False))
A = torch.zeros(N, N)
A[ei[0], ei[1]] = 1
show("lap", torch.linalg.eigvalsh(torch.diag(A.sum(1)) - (A + A.T) / 2))

m = fix(nn.Sequential(nn.Linear(1, 8), nn.Tanh(), nn.Linear(8, 1)))
o = torch.optim.Adam(m.parameters(), 1e-2)
for it in range(5):
    o.zero_grad()
    tot = 0.0
    for t in range(3):
        x, xq = rn(5, 1), rn(5, 1)
        a = 1.0 + t
        p = dict(m.named_parameters())
        for _ in range(2):
            l = F.mse_loss(functional_call(m, p, (x,)), a * torch.sin(x))
            g = torch.autograd.grad(l, list(p.values()), create_graph=True)
            p = {k: v - 0.1 * gg for (k, v), gg in zip(p.items(), g)}
        tot = tot + F.mse_loss(functional_call(m, p, (xq,)), a * torch.sin(xq))
    tot.backward()
    o.step()
    print("%.4f" % tot.item())
p = {k: v.detach() for k, v in m.named_parameters()}


def loss(p, x, y):
    return F.mse_loss(functional_call(m, p, (x.unsqueeze(0),)).squeeze(0), y)


x, y = rn(6, 1), rn(6, 1)
g = vmap(grad(loss), in_dims=(None, 0, 0))(p, x, y)
show("psg", g["0.weight"])
show("norm", g["2.weight"].flatten(1).norm(dim=1))
ms = [fix(nn.Linear(3, 2), s) for s in range(4)]
ps, bs = stack_module_state(ms)
base = ms[0]
show("ens", vmap(lambda p, b, x: functional_call(base, (p, b), (x,)), in_dims=(0, 0, None))(ps, bs, rn(5, 3)))
show("jac", jacrev(lambda x: functional_call(m, p, (x,)))(rn(2, 1)))
show("h", hessian(lambda w: (w**3).sum())(torch.tensor([1.0, 2.0])))
# Hutchinson / implicit
w = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
f = (w**4).sum()
(gr,) = torch.autograd.grad(f, w, create_graph=True)
v = torch.tensor([1.0, -1.0, 1.0])
(hv,) = torch.autograd.grad(gr, w, v)
show("hv", hv)
show("hvp", hvp(lambda w: (w**4).sum(), w.detach(), v)[1])
show("jb", jacobian(lambda a, b: a * b, (v, v))[0])


class STE(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.sign()

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * (x.abs() <= 1).to(g.dtype)


class GRL(Function):
    @staticmethod
    def forward(ctx, x, l):
        ctx.l = l
        return x.view_as(x)

    @staticmethod
    def backward(ctx, g):
        return g.neg() * ctx.l, None


class VQ(nn.Module):
    def __init__(s):
        super().__init__()
        s.e = nn.Embedding(6, 4)

    def forward(s, z):
        d = (z**2).sum(1, keepdim=True) + (s.e.weight**2).sum(1) - 2 * z @ s.e.weight.t()
        i = d.argmin(1)
        q = s.e(i)
        l = nn.functional.mse_loss(q.detach(), z) * 0.25 + nn.functional.mse_loss(q, z.detach())
        return z + (q - z).detach(), l, i


class M(nn.Module):
    def __init__(s):
        super().__init__()
        s.a = nn.Linear(5, 4)
        s.vq = VQ()
        s.d = nn.Linear(4, 2)
        s.c = nn.Linear(4, 5)

    def forward(s, x):
        h = s.a(x)
        q, l, i = s.vq(h)
        return s.c(q), s.d(GRL.apply(h, 0.5)), l, STE.apply(h), i


m = fix(M())
o = torch.optim.Adam(m.parameters(), 0.01)
for t in range(5):
    x = rn(6, 5)
    r, d, l, b, i = m(x)
    loss = nn.functional.mse_loss(r, x) + nn.functional.cross_entropy(d, ri(2, 6)) + l + 0.1 * (b * x[:, :4]).mean()
    o.zero_grad()
    loss.backward()
    o.step()
    print("%.4f" % loss.item(), i.tolist())
seq = fix(nn.Sequential(*[nn.Sequential(nn.Linear(4, 4), nn.Tanh()) for _ in range(4)]))
x = rn(3, 4).requires_grad_()
checkpoint_sequential(seq, 2, x, use_reentrant=False).sum().backward()
g1 = x.grad.clone()
x.grad = None
seq(x).sum().backward()
print(torch.allclose(g1, x.grad))
show("c", checkpoint(seq[0], x, use_reentrant=True))
print(
    torch.autograd.gradcheck(lambda t: t.sin() * t, (torch.tensor([0.3, 0.7], dtype=torch.double, requires_grad=True),))
)
with torch.autograd.set_detect_anomaly(False):
    pass
try:
    (torch.tensor([1.0], requires_grad=True).log() * 0).sqrt().sum().backward()
    print("ok")
except RuntimeError as e:
    print(e)
s = torch.jit.script if False else None


@torch.no_grad()
def ev(m, x):
    return m(x)[0]


print(ev(m, x=rn(2, 5)).requires_grad)
with torch.inference_mode():
    print(m(rn(2, 5))[0].is_inference())


class Siren(nn.Module):
    def __init__(s, i, o, w=3.0):
        super().__init__()
        s.l = nn.Linear(i, o)
        s.w = w
        nn.init.uniform_(s.l.weight, -1 / i, 1 / i)

    def forward(s, x):
        return torch.sin(s.w * s.l(x))


m = fix(nn.Sequential(Siren(2, 12), Siren(12, 12), nn.Linear(12, 1))).double()
o = torch.optim.Adam(m.parameters(), 5e-3)
for it in range(5):
    xt = rn(16, 2).double().requires_grad_(True)
    u = m(xt)
    du = torch.autograd.grad(u, xt, torch.ones_like(u), create_graph=True)[0]
    ux, ut = du[:, 0:1], du[:, 1:2]
    uxx = torch.autograd.grad(ux.sum(), xt, create_graph=True)[0][:, 0:1]
    res = (ut + u * ux - 0.01 * uxx).pow(2).mean()
    bc = m(torch.stack([torch.linspace(-1, 1, 5), torch.zeros(5)], 1).double())
    l = res + (bc + torch.sin(np.pi * torch.linspace(-1, 1, 5, dtype=torch.double))[:, None]).pow(2).mean()
    o.zero_grad()
    l.backward()
    o.step()
    print("%.5f" % l.item())
lb = torch.optim.LBFGS(m.parameters(), lr=0.5, max_iter=5, line_search_fn="strong_wolfe")


def c():
    lb.zero_grad()
    l = (m(xt.detach()) - xt.detach().sum(1, keepdim=True)).pow(2).mean()
    l.backward()
    return l


print("%.5f" % lb.step(c).item(), "%.5f" % c().item())
