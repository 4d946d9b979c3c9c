"""A residual network over folds: early stopping, saving, transfer, a search for the rate, averaged weights."""

import os
import sys
import time
import json
import copy
import logging
import warnings
import tempfile
from pathlib import Path
import torch
import numpy as np
import torch.nn as nn
import torch.nn.functional as F
import torch.distributed as dist
import torch.multiprocessing as mp
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import (
    DataLoader,
    Dataset,
    Subset,
    SubsetRandomSampler,
    WeightedRandomSampler,
    random_split,
    ConcatDataset,
)
from torch.optim.lr_scheduler import (
    StepLR,
    MultiStepLR,
    ExponentialLR,
    CosineAnnealingWarmRestarts,
    SequentialLR,
    LinearLR,
    CyclicLR,
    ReduceLROnPlateau,
)

print(
    torch.__version__ is not None,
    torch.version.cuda,
    torch.cuda.device_count(),
    dist.is_available() and dist.is_initialized(),
)
torch.use_deterministic_algorithms(True)
torch.backends.cudnn.enabled
torch.set_num_threads(1)
torch.get_num_threads()
local_rank = int(os.environ.get("LOCAL_RANK", 0))
rng = np.random.default_rng(0)


class Toy(Dataset):
    def __init__(self, n=120, transform=None):
        self.x = rng.standard_normal((n, 3, 8, 8)).astype("float32")
        self.y = (self.x.mean((1, 2, 3)) > 0).astype(int) + (self.x[:, 0].mean((1, 2)) > 0)
        self.transform = transform

    def __len__(self):
        return len(self.y)

    def __getitem__(self, i):
        x = torch.from_numpy(self.x[i])
        if self.transform:
            x = self.transform(x)
        return {"image": x, "label": int(self.y[i]), "id": f"s{i}"}


class BasicBlock(nn.Module):
    expansion: int = 1

    def __init__(self, i, o, stride=1):
        super().__init__()
        self.conv1 = nn.Conv2d(i, o, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(o)
        self.conv2 = nn.Conv2d(o, o, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(o)
        self.shortcut = nn.Sequential()
        if stride != 1 or i != o:
            self.shortcut = nn.Sequential(nn.Conv2d(i, o, 1, stride, bias=False), nn.BatchNorm2d(o))

    def forward(self, x):
        out = F.relu(self.bn1(self.conv1(x)))
        out = self.bn2(self.conv2(out))
        out += self.shortcut(x)
        return F.relu(out)


class Net(nn.Module):
    def __init__(self, ncls=3):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 4, 3, padding=1, bias=False), nn.BatchNorm2d(4), nn.ReLU())
        self.layers = nn.Sequential(*[BasicBlock(4, 4), BasicBlock(4, 8, 2)])
        self.head = nn.Sequential(nn.AdaptiveAvgPool2d((1, 1)), nn.Flatten(), nn.Linear(8, ncls))

    def forward(self, x):
        return self.head(self.layers(self.stem(x)))


def seed(m):
    g = np.random.default_rng(7)
    with torch.no_grad():
        for p in m.parameters():
            p.copy_(torch.as_tensor(g.uniform(-0.3, 0.3, p.size())))
    return m


class EarlyStopping:
    def __init__(self, patience=2, delta=0, path="ck.pt"):
        self.p, self.c, self.best, self.stop, self.path = patience, 0, None, False, path

    def __call__(self, loss, model):
        if self.best is None or loss < self.best:
            self.best = loss
            torch.save(model.state_dict(), self.path)
            self.c = 0
        else:
            self.c += 1
            self.stop = self.c >= self.p


def accuracy(output, target, topk=(1,)):
    with torch.no_grad():
        maxk = max(topk)
        _, pred = output.topk(maxk, 1, True, True)
        pred = pred.t()
        correct = pred.eq(target.view(1, -1).expand_as(pred))
        return [correct[:k].reshape(-1).float().sum(0, keepdim=True).mul_(100.0 / target.size(0)) for k in topk]


ds = Toy()
tmp = Path(".")
folds = np.array_split(np.arange(len(ds)), 3)
for k in range(2):
    tr = Subset(ds, np.concatenate([f for j, f in enumerate(folds) if j != k]).tolist())
    va = Subset(ds, folds[k])
    model = seed(Net())
    es = EarlyStopping(path=tmp / "best.pt")
    decay = [p for n, p in model.named_parameters() if p.ndim > 1]
    nod = [p for n, p in model.named_parameters() if p.ndim <= 1]
    opt = torch.optim.SGD(
        [{"params": decay, "weight_decay": 1e-4}, {"params": nod, "weight_decay": 0.0}],
        lr=0.05,
        momentum=0.9,
        nesterov=True,
    )
    sch = SequentialLR(opt, [LinearLR(opt, 0.1, total_iters=2), CosineAnnealingWarmRestarts(opt, 3)], milestones=[2])
    w = torch.bincount(torch.tensor(ds.y)).float()
    crit = nn.CrossEntropyLoss(weight=w.sum() / w)
    for ep in range(4):
        model.train()
        L = []
        for b in DataLoader(tr, batch_size=20):
            out = model(b["image"])
            loss = crit(out, b["label"])
            opt.zero_grad()
            loss.backward()
            opt.step()
            L.append(loss.detach())
        sch.step()
        model.eval()
        preds, ys, vl = [], [], 0.0
        with torch.no_grad():
            for b in DataLoader(va, batch_size=20):
                o = model(b["image"])
                vl += crit(o, b["label"]).item() * o.size(0)
                preds.append(o)
                ys.append(b["label"])
        a1, a2 = accuracy(torch.cat(preds), torch.cat(ys), (1, 2))
        print(
            f"fold {k} ep {ep} train {torch.stack(L).mean():.4f} val {vl / len(va):.4f} acc {a1.item():.1f} {a2.item():.1f} lr {opt.param_groups[0]['lr']:.4f}"
        )
        es(vl, model)
        if es.stop:
            print("stop")
            break
ck = {
    "epoch": 3,
    "model_state_dict": model.state_dict(),
    "optimizer_state_dict": opt.state_dict(),
    "scheduler": sch.state_dict(),
    "rng": torch.get_rng_state(),
    "loss": vl,
}
torch.save(ck, tmp / "ck.pt")
c = torch.load(tmp / "ck.pt", map_location="cpu")
m2 = Net()
print(m2.load_state_dict(c["model_state_dict"], strict=True))
o2 = torch.optim.SGD(m2.parameters(), lr=1.0)
m2 = torch.nn.DataParallel(m2) if torch.cuda.device_count() > 1 else m2
# transfer: freeze and replace
for p in m2.parameters():
    p.requires_grad_(False)
m2.head[2] = nn.Linear(8, 5)
seed(m2.head)
print(
    [n for n, p in m2.named_parameters() if p.requires_grad],
    sum(p.numel() for p in filter(lambda p: p.requires_grad, m2.parameters())),
)
pre = torch.load(tmp / "best.pt", weights_only=True)
own = m2.state_dict()
pre = {k: v for k, v in pre.items() if k in own and v.shape == own[k].shape}
own.update(pre)
print(m2.load_state_dict(own))
print(m2.load_state_dict({k: v for k, v in pre.items() if "head" not in k}, strict=False))
# LR finder
net = seed(Net())
opt = torch.optim.SGD(net.parameters(), lr=1e-5)
sch = torch.optim.lr_scheduler.ExponentialLR(opt, gamma=(1e4) ** (1 / 12))
init = copy.deepcopy(net.state_dict())
best, hist = float("inf"), []
it = iter(DataLoader(ds, batch_size=10, shuffle=False))
for _ in range(12):
    b = next(it)
    l = F.cross_entropy(net(b["image"]), b["label"])
    opt.zero_grad()
    l.backward()
    opt.step()
    hist.append((sch.get_last_lr()[0], l.item()))
    sch.step()
    best = min(best, l.item())
    if l.item() > 4 * best:
        break
net.load_state_dict(init)
print([(f"{a:.1e}", f"{b:.3f}") for a, b in hist][::4])


# EMA + grad accumulation + AMP
class EMA:
    def __init__(self, m, d):
        self.m, self.d = copy.deepcopy(m).eval(), d
        [p.requires_grad_(False) for p in self.m.parameters()]

    @torch.no_grad()
    def update(self, m):
        for e, p in zip(self.m.state_dict().values(), m.state_dict().values()):
            if e.dtype.is_floating_point:
                e.mul_(self.d).add_(p.detach(), alpha=1 - self.d)
            else:
                e.copy_(p)


ema = EMA(net, 0.9)
opt = torch.optim.AdamW(net.parameters(), 1e-3, fused=False, foreach=True)
scaler = torch.cuda.amp.GradScaler(enabled=torch.cuda.is_available())
for i, b in enumerate(DataLoader(ds, 20)):
    with torch.autocast("cuda" if torch.cuda.is_available() else "cpu", enabled=torch.cuda.is_available()):
        l = F.cross_entropy(net(b["image"]), b["label"], label_smoothing=0.1) / 2
    scaler.scale(l).backward()
    if (i + 1) % 2 == 0:
        scaler.step(opt)
        scaler.update()
        opt.zero_grad(set_to_none=True)
        ema.update(net)
print(f"{sum(p.abs().sum() for p in ema.m.parameters()):.5f}")

cm = torch.zeros(3, 3, dtype=torch.int64)
for t, p in zip(torch.cat(ys).view(-1), torch.cat(preds).argmax(1).view(-1)):
    cm[t.long(), p.long()] += 1
print(cm, cm.diag() / cm.sum(1))
ws = WeightedRandomSampler([1.0 / w[int(y)].item() for y in ds.y], len(ds), replacement=True)
next(iter(DataLoader(ds, sampler=ws, batch_size=4)))
g = torch.Generator()
g.manual_seed(0)
a, b = random_split(ds, [0.8, 0.2], generator=g)
print(len(a), len(b))
print(torch.__config__.show() is not None if hasattr(torch, "__config__") else True)
tm = torch.jit.script(net) if False else net
if hasattr(torch, "compile"):
    net = torch.compile(net, backend="eager")
    print(f"{net(torch.ones(2, 3, 8, 8)).sum():.4f}" if True else 0)
