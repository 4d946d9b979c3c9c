"""A GPT: rotary positions, tied weights, cosine schedule, gradient accumulation, sampling, checkpoint."""

import math
import os
import json
from dataclasses import dataclass, asdict
import numpy as np
import torch
import torch.nn as nn
from torch.nn import functional as F

rng = np.random.default_rng(0)


@dataclass
class Config:
    block_size: int = 16
    vocab_size: int = 20
    n_layer: int = 2
    n_head: int = 2
    n_embd: int = 16
    dropout: float = 0.0
    bias: bool = False


class LayerNorm(nn.Module):
    def __init__(self, n, bias):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(n))
        self.bias = nn.Parameter(torch.zeros(n)) if bias else None

    def forward(self, x):
        return F.layer_norm(x, self.weight.shape, self.weight, self.bias, 1e-5)


class RMSNorm(torch.nn.Module):
    def __init__(self, dim, eps=1e-6):
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(dim))

    def forward(self, x):
        return (x.float() * torch.rsqrt(x.float().pow(2).mean(-1, keepdim=True) + self.eps)).type_as(x) * self.weight


def precompute_freqs_cis(dim, end, theta=10000.0):
    freqs = 1.0 / (theta ** (torch.arange(0, dim, 2)[: (dim // 2)].float() / dim))
    return torch.polar(torch.ones(end, dim // 2), torch.outer(torch.arange(end), freqs))


def apply_rotary(xq, fc):
    x_ = torch.view_as_complex(xq.float().reshape(*xq.shape[:-1], -1, 2))
    return torch.view_as_real(x_ * fc.view(1, 1, *fc.shape)).flatten(3).type_as(xq)


class Attn(nn.Module):
    def __init__(self, c):
        super().__init__()
        assert c.n_embd % c.n_head == 0
        self.c_attn = nn.Linear(c.n_embd, 3 * c.n_embd, bias=c.bias)
        self.c_proj = nn.Linear(c.n_embd, c.n_embd, bias=c.bias)
        self.attn_dropout = nn.Dropout(c.dropout)
        self.n_head, self.n_embd, self.dropout = c.n_head, c.n_embd, c.dropout
        self.flash = hasattr(torch.nn.functional, "scaled_dot_product_attention")
        self.register_buffer(
            "mask",
            torch.tril(torch.ones(c.block_size, c.block_size)).view(1, 1, c.block_size, c.block_size),
            persistent=False,
        )
        self.register_buffer("fc", precompute_freqs_cis(c.n_embd // c.n_head, c.block_size), persistent=False)

    def forward(self, x, flash=True):
        B, T, C = x.size()
        q, k, v = self.c_attn(x).split(self.n_embd, dim=2)
        k, q, v = (z.view(B, T, self.n_head, C // self.n_head).transpose(1, 2) for z in (k, q, v))
        q, k = apply_rotary(q, self.fc[:T]), apply_rotary(k, self.fc[:T])
        if flash:
            y = F.scaled_dot_product_attention(
                q, k, v, attn_mask=None, dropout_p=self.dropout if self.training else 0, is_causal=True
            )
        else:
            att = (q @ k.transpose(-2, -1)) * (1.0 / math.sqrt(k.size(-1)))
            att = att.masked_fill(self.mask[:, :, :T, :T] == 0, float("-inf"))
            att = self.attn_dropout(F.softmax(att, dim=-1))
            y = att @ v
        return self.c_proj(y.transpose(1, 2).contiguous().view(B, T, C))


class Block(nn.Module):
    def __init__(self, c, i):
        super().__init__()
        self.ln_1 = LayerNorm(c.n_embd, c.bias)
        self.attn = Attn(c)
        self.ln_2 = RMSNorm(c.n_embd)
        self.mlp = nn.ModuleDict(
            dict(
                c_fc=nn.Linear(c.n_embd, 4 * c.n_embd),
                act=nn.GELU(approximate="tanh"),
                c_proj=nn.Linear(4 * c.n_embd, c.n_embd),
            )
        )
        m = self.mlp
        self.mlpf = lambda x: m.c_proj(m.act(m.c_fc(x)))
        self.i = i

    def forward(self, x):
        x = x + self.attn(self.ln_1(x), flash=self.i % 2 == 0)
        return x + self.mlpf(self.ln_2(x))


class GPT(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.config = c
        self.transformer = nn.ModuleDict(
            dict(
                wte=nn.Embedding(c.vocab_size, c.n_embd),
                drop=nn.Dropout(c.dropout),
                h=nn.ModuleList([Block(c, i) for i in range(c.n_layer)]),
                ln_f=nn.RMSNorm(c.n_embd),
            )
        )
        self.lm_head = nn.Linear(c.n_embd, c.vocab_size, bias=False)
        self.transformer.wte.weight = self.lm_head.weight
        self.apply(self._init_weights)
        for pn, p in self.named_parameters():
            if pn.endswith("c_proj.weight"):
                torch.nn.init.normal_(p, mean=0.0, std=0.02 / math.sqrt(2 * c.n_layer))

    def get_num_params(self):
        return sum(p.numel() for p in self.parameters())

    def _init_weights(self, m):
        if isinstance(m, nn.Linear):
            torch.nn.init.normal_(m.weight, mean=0.0, std=0.02)
            if m.bias is not None:
                torch.nn.init.zeros_(m.bias)
        elif isinstance(m, nn.Embedding):
            torch.nn.init.normal_(m.weight, mean=0.0, std=0.02)

    def forward(self, idx, targets=None):
        b, t = idx.size()
        assert t <= self.config.block_size, f"Cannot forward sequence of length {t}"
        x = self.transformer.drop(self.transformer.wte(idx))
        for block in self.transformer.h:
            x = block(x)
        x = self.transformer.ln_f(x)
        if targets is not None:
            logits = self.lm_head(x)
            return logits, F.cross_entropy(logits.view(-1, logits.size(-1)), targets.view(-1), ignore_index=-1)
        return self.lm_head(x[:, [-1], :]), None

    def configure_optimizers(self, wd, lr, betas):
        pd = {pn: p for pn, p in self.named_parameters() if p.requires_grad}
        groups = [
            {"params": [p for p in pd.values() if p.dim() >= 2], "weight_decay": wd},
            {"params": [p for p in pd.values() if p.dim() < 2], "weight_decay": 0.0},
        ]
        import inspect

        print("fused" in inspect.signature(torch.optim.AdamW).parameters)
        return torch.optim.AdamW(groups, lr=lr, betas=betas, fused=False)

    @torch.no_grad()
    def generate(self, idx, n, temperature=1.0, top_k=None, top_p=None):
        for _ in range(n):
            ic = idx if idx.size(1) <= self.config.block_size else idx[:, -self.config.block_size :]
            logits, _ = self(ic)
            logits = logits[:, -1, :] / temperature
            if top_k is not None:
                v, _ = torch.topk(logits, min(top_k, logits.size(-1)))
                logits[logits < v[:, [-1]]] = -float("Inf")
            if top_p is not None:
                sl, si = torch.sort(logits, descending=True)
                cp = torch.cumsum(F.softmax(sl, dim=-1), dim=-1)
                rm = cp > top_p
                rm[..., 1:] = rm[..., :-1].clone()
                rm[..., 0] = 0
                logits = logits.masked_fill(rm.scatter(1, si, rm), -float("Inf"))
            probs = F.softmax(logits, dim=-1)
            torch.multinomial(probs, num_samples=1)
            idx = torch.cat((idx, probs.argmax(-1, keepdim=True)), dim=1)
        return idx


cfg = Config()
model = GPT(cfg)
print(model.get_num_params(), asdict(cfg))
print(model)
with torch.no_grad():
    for n, p in sorted(model.named_parameters()):
        p.copy_(torch.from_numpy(rng.normal(0, 0.2, tuple(p.shape))))
data = np.tile(np.arange(20, dtype=np.uint16), 30)


def get_batch(bs=8):
    ix = rng.integers(0, len(data) - cfg.block_size, bs)
    x = torch.stack([torch.from_numpy((data[i : i + cfg.block_size]).astype(np.int64)) for i in ix])
    y = torch.stack([torch.from_numpy((data[i + 1 : i + 1 + cfg.block_size]).astype(np.int64)) for i in ix])
    return x, y


opt = model.configure_optimizers(0.1, 1e-2, (0.9, 0.95))


def get_lr(it, warm=3, total=20, lo=1e-4, hi=1e-2):
    if it < warm:
        return hi * (it + 1) / (warm + 1)
    if it > total:
        return lo
    return lo + 0.5 * (1.0 + math.cos(math.pi * (it - warm) / (total - warm))) * (hi - lo)


from contextlib import nullcontext

ctx = nullcontext()
scaler = torch.amp.GradScaler("cuda", enabled=False)
for it in range(20):
    lr = get_lr(it)
    for g in opt.param_groups:
        g["lr"] = lr
    for micro in range(2):
        X, Y = get_batch()
        with ctx:
            logits, loss = model(X, Y)
            loss = loss / 2
        scaler.scale(loss).backward()
    scaler.unscale_(opt)
    norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    scaler.step(opt)
    scaler.update()
    opt.zero_grad(set_to_none=True)
    if it % 5 == 0:
        print(f"iter {it}: loss {loss.item() * 2:.4f}, norm {norm:.4f} lr {lr:e}")
model.eval()
out = model.generate(torch.zeros((1, 1), dtype=torch.long), 10, top_k=5, top_p=0.9)
print(out.tolist())
ck = {
    "model": model.state_dict(),
    "optimizer": opt.state_dict(),
    "model_args": asdict(cfg),
    "iter_num": 20,
    "best_val_loss": loss,
}
torch.save(ck, "gpt.pt")
ck = torch.load("gpt.pt", map_location="cpu")
m2 = GPT(Config(**ck["model_args"]))
sd = ck["model"]
for k, v in list(sd.items()):
    if k.startswith("_orig_mod."):
        sd[k[len("_orig_mod.") :]] = sd.pop(k)
m2.load_state_dict(sd)
m2.eval()
print(torch.allclose(m2(X)[0], model(X)[0]), m2.lm_head.weight is m2.transformer.wte.weight)


@torch.no_grad()
def estimate_loss():
    out = {}
    model.eval()
    for split in ["train", "val"]:
        losses = torch.zeros(3)
        for k in range(3):
            losses[k] = model(*get_batch())[1].item()
        out[split] = losses.mean()
    model.train()
    return out


print({k: f"{v:.3f}" for k, v in estimate_loss().items()}, f"ppl {torch.exp(estimate_loss()['val']):.3f}")
