"""A variational autoencoder with a one-cycle schedule and a distribution at the end."""

import argparse
import math
import os
import random
import sys
import time
import copy
from dataclasses import dataclass
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim
from torch import Tensor
from torch.distributions import Normal, kl_divergence
from torch.utils.data import DataLoader, TensorDataset, random_split
from torch.optim.lr_scheduler import CosineAnnealingLR, LambdaLR, OneCycleLR
from torch.nn.utils import clip_grad_norm_

torch.manual_seed(0)
np.random.seed(0)
random.seed(0)
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
use_mps = hasattr(torch.backends, "mps") and torch.backends.mps.is_available()
torch.backends.cudnn.benchmark = True
torch.backends.cudnn.deterministic = True
torch.set_float32_matmul_precision("high")
if torch.cuda.is_available():
    torch.cuda.manual_seed_all(0)
print(device, use_mps)


class Encoder(nn.Module):
    def __init__(self, d_in, d_h, d_z):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(d_in, d_h), nn.BatchNorm1d(d_h), nn.LeakyReLU(0.2, inplace=True), nn.Dropout(p=0.0)
        )
        self.mu, self.logvar = nn.Linear(d_h, d_z), nn.Linear(d_h, d_z)

    def forward(self, x):
        h = self.net(x)
        return self.mu(h), self.logvar(h).clamp(-10, 10)


class VAE(nn.Module):
    def __init__(self, d_in=64, d_h=32, d_z=4):
        super().__init__()
        self.enc = Encoder(d_in, d_h, d_z)
        self.dec = nn.Sequential(nn.Linear(d_z, d_h), nn.SiLU(), nn.Linear(d_h, d_in))
        self.apply(self._init)
        self.register_buffer("prior_mu", torch.zeros(d_z))

    @staticmethod
    def _init(m):
        if isinstance(m, nn.Linear):
            nn.init.kaiming_normal_(m.weight, nonlinearity="leaky_relu", a=0.2)
            nn.init.zeros_(m.bias)
        elif isinstance(m, (nn.BatchNorm1d,)):
            nn.init.constant_(m.weight, 1.0)
            nn.init.constant_(m.bias, 0)

    def reparameterize(self, mu, logvar, eps):
        std = torch.exp(0.5 * logvar)
        return eps.mul(std).add_(mu)

    def forward(self, x, eps):
        mu, lv = self.enc(x)
        z = self.reparameterize(mu, lv, eps)
        return self.dec(z), mu, lv


def loss_fn(rec, x, mu, lv, beta=1.0):
    bce = F.binary_cross_entropy_with_logits(rec, x, reduction="sum")
    kld = -0.5 * torch.sum(1 + lv - mu.pow(2) - lv.exp())
    return bce + beta * kld, bce.item(), kld.item()


rng = np.random.default_rng(0)
X = torch.from_numpy(rng.random((256, 64)).astype(np.float32)).round()
W = rng.standard_normal
model = VAE().to(device)
with torch.no_grad():
    for n, p in model.named_parameters():
        p.copy_(torch.as_tensor(W(tuple(p.shape)) * 0.1, dtype=p.dtype))
n_params = sum(p.numel() for p in model.parameters() if p.requires_grad)
print(f"params: {n_params:,}")
print(model)
opt = optim.AdamW(model.parameters(), lr=1e-3, betas=(0.9, 0.99), weight_decay=1e-2)
sched = OneCycleLR(opt, max_lr=1e-2, total_steps=40)
ds = TensorDataset(X)
loader = DataLoader(
    ds, batch_size=32, shuffle=False, num_workers=0, pin_memory=torch.cuda.is_available(), drop_last=True
)
step = 0
for epoch in range(5):
    model.train()
    tot = 0.0
    for i, (xb,) in enumerate(loader):
        xb = xb.to(device, non_blocking=True)
        opt.zero_grad(set_to_none=True)
        eps = torch.tensor(W((32, 4)), dtype=torch.float32)
        rec, mu, lv = model(xb, eps)
        loss, b, k = loss_fn(rec, xb, mu, lv, beta=min(1.0, step / 20))
        loss.backward()
        gn = clip_grad_norm_(model.parameters(), max_norm=100.0)
        opt.step()
        sched.step()
        step += 1
        tot += loss.item()
    print(f"epoch {epoch:>2d} | loss {tot / len(loader.dataset):.4f} | gn {gn:.3f} | lr {sched.get_last_lr()[0]:.2e}")
model.eval()
with torch.inference_mode():
    rec, mu, lv = model(X, torch.zeros(256, 4))
    print("eval", f"{F.mse_loss(torch.sigmoid(rec), X).item():.5f}", mu.shape)
q = Normal(mu, (0.5 * lv).exp())
kl = kl_divergence(q, Normal(torch.zeros_like(mu), torch.ones_like(lv))).sum(-1).mean()
print("kl", f"{kl.item():.4f}")
print(q)
