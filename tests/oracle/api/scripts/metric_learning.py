"""Siamese networks, contrastive losses with momentum encoders and queues, averages of weights."""

from copy import deepcopy

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.optim.swa_utils import AveragedModel, SWALR, update_bn, get_ema_multi_avg_fn, get_ema_avg_fn
from shared import fix, ri, rn, show


class Net(nn.Module):
    def __init__(s):
        super().__init__()
        s.c = nn.Sequential(
            nn.Conv2d(1, 4, 3),
            nn.PReLU(),
            nn.MaxPool2d(2, stride=2),
            nn.Conv2d(4, 8, 3),
            nn.PReLU(8),
            nn.AdaptiveAvgPool2d(1),
        )
        s.fc = nn.Linear(8, 4)

    def one(s, x):
        return F.normalize(s.fc(s.c(x).flatten(1)), p=2, dim=-1)

    def forward(s, a, p, n):
        return s.one(a), s.one(p), s.one(n)


m = fix(Net())
o = torch.optim.SGD(m.parameters(), 0.1, 0.9, nesterov=True)
for i in range(6):
    a, p, n = m(rn(4, 1, 12, 12), rn(4, 1, 12, 12), rn(4, 1, 12, 12))
    l = (
        F.triplet_margin_loss(a, p, n, margin=1.0)
        + nn.TripletMarginWithDistanceLoss(distance_function=lambda x, y: 1 - F.cosine_similarity(x, y), swap=True)(
            a, p, n
        )
        + F.cosine_embedding_loss(a, p, torch.tensor([1, -1, 1, -1]), margin=0.2)
        + nn.MarginRankingLoss(0.1)(F.pairwise_distance(a, n), F.pairwise_distance(a, p), torch.ones(4))
        + nn.HingeEmbeddingLoss()(F.pairwise_distance(a, p), torch.tensor([1, 1, -1, -1]))
    )
    d = torch.cdist(a, n)
    l = l + 0.1 * d.topk(2, largest=False).values.mean()
    o.zero_grad()
    l.backward()
    o.step()
    print("%.4f" % l.item())
show("fc", m.fc.weight)


class SimCLR(nn.Module):
    def __init__(s):
        super().__init__()
        s.f = nn.Sequential(nn.Linear(10, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, 8, bias=False))
        s.t = nn.Parameter(torch.ones([]) * np.log(1 / 0.07))

    def forward(s, x):
        return F.normalize(s.f(x), dim=1)


def nt_xent(z1, z2, t=0.5):
    z = torch.cat([z1, z2])
    sim = z @ z.t() / t
    n = len(z)
    sim.fill_diagonal_(-1e9) if not sim.requires_grad else None
    sim = sim - torch.eye(n) * 1e9
    y = torch.cat([torch.arange(n // 2) + n // 2, torch.arange(n // 2)])
    return F.cross_entropy(sim, y)


m = fix(SimCLR())
m.t.data.fill_(2.659)
k = deepcopy(m)
for p in k.parameters():
    p.requires_grad_(False)
queue = F.normalize(rn(8, 20), dim=0)
ptr = 0
o = torch.optim.SGD(m.parameters(), lr=0.05, momentum=0.9, weight_decay=1e-4)
sch = torch.optim.lr_scheduler.CosineAnnealingLR(o, T_max=8)
for i in range(8):
    x1, x2 = rn(4, 10), rn(4, 10)
    q = m(x1)
    with torch.no_grad():
        for pq, pk in zip(m.parameters(), k.parameters()):
            pk.data = pk.data * 0.9 + pq.data * (1 - 0.9)
        kk = k(x2)
    lp = torch.einsum("nc,nc->n", [q, kk]).unsqueeze(-1)
    ln = torch.einsum("nc,ck->nk", [q, queue.clone().detach()])
    lo = torch.cat([lp, ln], 1) / 0.2
    l = F.cross_entropy(lo, torch.zeros(4, dtype=torch.long)) + nt_xent(q, m(x2))
    # clip-style
    lg = m.t.exp() * q @ kk.t()
    l = l + 0.1 * (F.cross_entropy(lg, torch.arange(4)) + F.cross_entropy(lg.t(), torch.arange(4))) / 2
    o.zero_grad()
    l.backward()
    o.step()
    sch.step()
    queue[:, ptr : ptr + 4] = kk.T
    ptr = (ptr + 4) % 20
    print("%.4f %.4f" % (l.item(), sch.get_last_lr()[0]))
show("q", queue)
show("k", k.f[1].running_var)
show("t", m.t)

m = fix(nn.Sequential(nn.Linear(5, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 2)))
o = torch.optim.SGD(m.parameters(), lr=0.1)
swa = AveragedModel(m)
ema = AveragedModel(m, multi_avg_fn=get_ema_multi_avg_fn(0.9), use_buffers=True)
ema2 = AveragedModel(m, avg_fn=lambda a, b, n: 0.5 * a + 0.5 * b)
sch = torch.optim.lr_scheduler.CosineAnnealingLR(o, T_max=10)
ss = SWALR(o, anneal_strategy="linear", anneal_epochs=3, swa_lr=0.05)
data = [(rn(6, 5), ri(2, 6)) for _ in range(4)]
for e in range(12):
    for x, y in data:
        o.zero_grad()
        l = nn.functional.cross_entropy(m(x), y)
        l.backward()
        o.step()
        ema.update_parameters(m)
        ema2.update_parameters(m)
    if e > 5:
        swa.update_parameters(m)
        ss.step()
    else:
        sch.step()
    print("%.4f %.4f" % (l.item(), o.param_groups[0]["lr"]))
update_bn(data, swa)
swa.eval()
show("swa", swa(data[0][0]))
show("ema", ema.module[0].weight)
show("e2", ema2.module[3].bias)
print(swa.n_averaged, list(swa.state_dict())[:3])
show("bn", swa.module[1].running_mean)
show("b", ema.module[1].running_var)
