"""A diffusion model of points in the plane, with a moving average of its weights."""

import math, torch, torch.nn as nn, torch.nn.functional as F, copy
from torch.utils.data import TensorDataset, DataLoader
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn, update_bn, SWALR

torch.manual_seed(0)


def spiral(n):
    t = torch.sqrt(torch.rand(n)) * 3 * math.pi
    return torch.stack([t * torch.cos(t), t * torch.sin(t)], 1) / 10 + 0.02 * torch.randn(n, 2)


class SinusoidalPosEmb(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.dim = dim

    def forward(self, x):
        half = self.dim // 2
        emb = math.log(10000) / (half - 1)
        emb = torch.exp(torch.arange(half, device=x.device) * -emb)
        emb = x[:, None] * emb[None, :]
        return torch.cat((emb.sin(), emb.cos()), dim=-1)


class Net(nn.Module):
    def __init__(self, d=32):
        super().__init__()
        self.time = nn.Sequential(SinusoidalPosEmb(d), nn.Linear(d, d), nn.SiLU(), nn.Linear(d, d))
        self.inp = nn.Linear(2, d)
        self.blocks = nn.ModuleList([nn.Sequential(nn.GroupNorm(4, d), nn.SiLU(), nn.Linear(d, d)) for _ in range(3)])
        self.out = nn.Linear(d, 2)

    def forward(self, x, t):
        h = self.inp(x) + self.time(t)
        for b in self.blocks:
            h = h + b(h)
        return self.out(h)


T = 50
betas = torch.linspace(1e-4, 0.05, T)
alphas = 1 - betas
ac = torch.cumprod(alphas, 0)
ac_prev = F.pad(ac[:-1], (1, 0), value=1.0)
post = betas * (1 - ac_prev) / (1 - ac)


def extract(a, t, shape):
    b, *_ = t.shape
    out = a.gather(-1, t)
    return out.reshape(b, *((1,) * (len(shape) - 1)))


def q_sample(x, t, noise):
    return extract(ac.sqrt(), t, x.shape) * x + extract((1 - ac).sqrt(), t, x.shape) * noise


model = Net()
ema = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(0.9))
old = copy.deepcopy(model)
opt = torch.optim.AdamW(model.parameters(), lr=2e-3)
sched = torch.optim.lr_scheduler.OneCycleLR(opt, 5e-3, total_steps=40)
loader = DataLoader(TensorDataset(spiral(512)), batch_size=128, shuffle=True, drop_last=True)
for epoch in range(10):
    for (x,) in loader:
        t = torch.randint(0, T, (x.shape[0],)).long()
        noise = torch.randn_like(x)
        loss = F.smooth_l1_loss(model(q_sample(x, t, noise), t), noise, beta=0.5)
        opt.zero_grad()
        loss.backward()
        opt.step()
        sched.step()
        ema.update_parameters(model)
    if epoch % 3 == 0:
        print(epoch, f"{loss.item():.5f} {sched.get_last_lr()[0]:.6f}")


@torch.inference_mode()
def sample(m, n):
    x = torch.randn(n, 2)
    for i in reversed(range(T)):
        t = torch.full((n,), i, dtype=torch.long)
        eps = m(x, t)
        mean = extract(1 / alphas.sqrt(), t, x.shape) * (x - extract(betas / (1 - ac).sqrt(), t, x.shape) * eps)
        x = mean + (extract(post, t, x.shape).sqrt() * torch.randn_like(x) if i > 0 else 0)
    return x


print(sample(ema, 4))
print(ema.n_averaged, sorted(ema.state_dict())[:3])
print(sum((a - b).abs().sum() for a, b in zip(old.parameters(), ema.parameters())).item())
