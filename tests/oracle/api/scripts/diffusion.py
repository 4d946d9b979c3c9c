"""A small diffusion model: U-Net, attention, checkpoints, averaged weights, gradient accumulation, profiler."""

import torch
import math
import copy
import torch.nn as nn
import torch.nn.functional as F
import numpy as np
from functools import partial
from contextlib import nullcontext
from torch.cuda.amp import autocast, GradScaler
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn, update_bn
from torch.utils.checkpoint import checkpoint
from torch.profiler import profile, record_function, ProfilerActivity, schedule

rng = np.random.default_rng(0)
N = lambda *s: torch.from_numpy(rng.standard_normal(s)).to(torch.float32)


def extract(a, t, shape):
    b, *_ = t.shape
    out = a.gather(-1, t)
    return out.reshape(b, *((1,) * (len(shape) - 1)))


def cosine_beta_schedule(T, s=0.008):
    x = torch.linspace(0, T, T + 1)
    ac = torch.cos(((x / T) + s) / (1 + s) * math.pi * 0.5) ** 2
    ac = ac / ac[0]
    return torch.clip(1 - ac[1:] / ac[:-1], 0.0001, 0.9999)


class Sin(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.dim = dim

    def forward(self, t):
        half = self.dim // 2
        e = torch.exp(torch.arange(half, device=t.device) * -(math.log(10000) / (half - 1)))
        e = t[:, None] * e[None, :]
        return torch.cat((e.sin(), e.cos()), dim=-1)


class Block(nn.Module):
    def __init__(self, i, o, td, groups=2):
        super().__init__()
        self.conv = nn.Conv2d(i, o, 3, padding=1)
        self.norm = nn.GroupNorm(groups, o)
        self.act = nn.SiLU()
        self.mlp = nn.Sequential(nn.SiLU(), nn.Linear(td, o * 2))
        self.res = nn.Conv2d(i, o, 1) if i != o else nn.Identity()

    def forward(self, x, t):
        sc, sh = self.mlp(t)[..., None, None].chunk(2, dim=1)
        h = self.norm(self.conv(x)) * (sc + 1) + sh
        return self.act(h) + self.res(x)


class UNet(nn.Module):
    def __init__(self, ch=4, td=8, ckpt=False):
        super().__init__()
        self.ckpt = ckpt
        self.time = nn.Sequential(Sin(td), nn.Linear(td, td), nn.GELU(), nn.Linear(td, td))
        self.downs = nn.ModuleList([Block(1, ch, td), Block(ch, ch * 2, td)])
        self.pool = nn.ModuleList([nn.Conv2d(ch, ch, 4, 2, 1), nn.AvgPool2d(2)])
        self.mid = Block(ch * 2, ch * 2, td)
        self.attn = nn.MultiheadAttention(ch * 2, 2, batch_first=True)
        self.ups = nn.ModuleList([Block(ch * 4, ch, td), Block(ch * 2, ch, td)])
        self.up = nn.ModuleList([nn.Upsample(scale_factor=2, mode="nearest"), nn.ConvTranspose2d(ch, ch, 2, 2)])
        self.out = nn.Conv2d(ch, 1, 1)

    def forward(self, x, t):
        t = self.time(t)
        hs = []
        for b, p in zip(self.downs, self.pool):
            x = checkpoint(b, x, t, use_reentrant=False) if self.ckpt else b(x, t)
            hs.append(x)
            x = p(x)
        x = self.mid(x, t)
        b, c, h, w = x.shape
        q = x.flatten(2).transpose(1, 2)
        x = x + self.attn(q, q, q, need_weights=False)[0].transpose(1, 2).reshape(b, c, h, w)
        for blk, u in zip(self.ups, self.up):
            x = u(x)
            x = blk(torch.cat((x, hs.pop()), 1), t)
        return self.out(x)


T = 50
betas = cosine_beta_schedule(T)
alphas = 1.0 - betas
ac = torch.cumprod(alphas, dim=0)
acp = F.pad(ac[:-1], (1, 0), value=1.0)
sqrt_ac, sqrt_1mac = ac.sqrt(), torch.sqrt(1 - ac)
post_var = betas * (1 - acp) / (1 - ac)
net = UNet(ckpt=True)
with torch.no_grad():
    for p in net.parameters():
        p.copy_(N(*p.shape) * 0.2)
ema = AveragedModel(net, multi_avg_fn=get_ema_multi_avg_fn(0.9))
opt = torch.optim.Adam(net.parameters(), lr=1e-3, eps=1e-8, amsgrad=True)
scaler = torch.amp.GradScaler("cpu", enabled=False)
accum = 2
data = torch.tanh(N(32, 1, 8, 8))
for it in range(8):
    x0 = data[it % 4 * 8 : (it % 4 + 1) * 8]
    t = torch.from_numpy(rng.integers(0, T, (8,))).long()
    noise = N(*x0.shape)
    xt = extract(sqrt_ac, t, x0.shape) * x0 + extract(sqrt_1mac, t, x0.shape) * noise
    with torch.autocast(device_type="cpu", dtype=torch.bfloat16, enabled=False):
        loss = F.smooth_l1_loss(net(xt, t), noise) / accum
    scaler.scale(loss).backward()
    if (it + 1) % accum == 0:
        scaler.unscale_(opt)
        n = torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        scaler.step(opt)
        scaler.update()
        opt.zero_grad()
        ema.update_parameters(net)
        print(it, f"{loss.item() * accum:.5f} {n.item():.4f}")


@torch.no_grad()
def p_sample(m, x, t, ti):
    mean = extract(torch.sqrt(1 / alphas), t, x.shape) * (
        x - extract(betas, t, x.shape) * m(x, t) / extract(sqrt_1mac, t, x.shape)
    )
    return mean if ti == 0 else mean + torch.sqrt(extract(post_var, t, x.shape)) * N(*x.shape)


ema.eval()
x = N(2, 1, 8, 8)
for i in reversed(range(0, T)):
    x = p_sample(ema, x, torch.full((2,), i, dtype=torch.long), i).clamp(-3, 3)
print("sample", f"{x.mean().item():.4f} {x.std().item():.4f}", x.isfinite().all().item())
with profile(activities=[ProfilerActivity.CPU], record_shapes=True, profile_memory=True) as prof:
    with record_function("model_inference"):
        net(data[:4], torch.zeros(4, dtype=torch.long)).sum().backward()
tab = prof.key_averages().table(sort_by="cpu_time_total", row_limit=10)
print("model_inference" in tab, "aten::conv" in tab)
prof.export_chrome_trace("trace.json")


def trace_handler(p):
    print("trace", p.step_num)


with profile(
    activities=[ProfilerActivity.CPU],
    schedule=torch.profiler.schedule(wait=1, warmup=1, active=2, repeat=1),
    on_trace_ready=trace_handler,
) as p:
    for _ in range(5):
        net(data[:2], torch.zeros(2, dtype=torch.long))
        p.step()
with torch.autocast("cpu", dtype=torch.bfloat16):
    o = net(data[:2], torch.zeros(2, dtype=torch.long))
    print(o.dtype)
