"""A small GPT with groups of parameters and sampling, a mixture of experts, LoRA, diffusion, contrasts, a flow."""

import copy
import inspect
import math
from dataclasses import dataclass

import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.nn.utils.parametrize as parametrize


@dataclass
class Config:
    block_size: int = 8
    vocab_size: int = 17
    n_layer: int = 2
    n_head: int = 2
    n_embd: int = 16
    dropout: float = 0.1
    bias: bool = False


class LayerNorm(nn.Module):
    def __init__(self, ndim, bias):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(ndim))
        self.bias = nn.Parameter(torch.zeros(ndim)) if bias else None

    def forward(self, input):
        return F.layer_norm(input, self.weight.shape, self.weight, self.bias, 1e-5)


class CausalSelfAttention(nn.Module):
    def __init__(self, config, flash):
        super().__init__()
        self.c_attn = nn.Linear(config.n_embd, 3 * config.n_embd, bias=config.bias)
        self.c_proj = nn.Linear(config.n_embd, config.n_embd, bias=config.bias)
        self.attn_dropout = nn.Dropout(config.dropout)
        self.n_head, self.n_embd, self.flash = config.n_head, config.n_embd, flash
        mask = torch.tril(torch.ones(config.block_size, config.block_size))
        self.register_buffer("bias", mask.view(1, 1, config.block_size, config.block_size), persistent=False)

    def forward(self, x):
        B, T, C = x.size()
        q, k, v = (
            t.view(B, T, self.n_head, C // self.n_head).transpose(1, 2)
            for t in self.c_attn(x).split(self.n_embd, dim=2)
        )
        if self.flash:
            y = F.scaled_dot_product_attention(q, k, v, attn_mask=None, dropout_p=0, is_causal=True)
        else:
            att = (q @ k.transpose(-2, -1)) * (1.0 / math.sqrt(k.size(-1)))
            att = att.masked_fill(self.bias[:, :, :T, :T] == 0, float("-inf"))
            y = self.attn_dropout(F.softmax(att, dim=-1)) @ v
        return self.c_proj(y.transpose(1, 2).contiguous().view(B, T, C))


class Experts(nn.Module):
    """The best two of three experts for each token."""

    def __init__(self, n):
        super().__init__()
        self.gate = nn.Linear(n, 3, bias=False)
        self.experts = nn.ModuleList(nn.Sequential(nn.Linear(n, n), nn.SiLU(), nn.Linear(n, n)) for _ in range(3))

    def forward(self, x):
        flat = x.view(-1, x.shape[-1])
        weights, chosen = torch.topk(F.softmax(self.gate(flat), dim=1, dtype=torch.float), 2, dim=-1)
        weights = (weights / weights.sum(dim=-1, keepdim=True)).to(x.dtype)
        results = torch.zeros_like(flat)
        mask = F.one_hot(chosen, num_classes=3).permute(2, 1, 0)
        for i, expert in enumerate(self.experts):
            idx, top_x = torch.where(mask[i])
            results.index_add_(0, top_x, expert(flat[None, top_x].reshape(-1, x.shape[-1])) * weights[top_x, idx, None])
        return results.view_as(x)


class Block(nn.Module):
    def __init__(self, config, flash):
        super().__init__()
        self.ln_1, self.attn = LayerNorm(config.n_embd, config.bias), CausalSelfAttention(config, flash)
        self.ln_2, self.mlp = LayerNorm(config.n_embd, config.bias), Experts(config.n_embd)

    def forward(self, x):
        x = x + self.attn(self.ln_1(x))
        return x + self.mlp(self.ln_2(x))


class GPT(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.config = config
        self.transformer = nn.ModuleDict(
            dict(
                wte=nn.Embedding(config.vocab_size, config.n_embd),
                wpe=nn.Embedding(config.block_size, config.n_embd),
                drop=nn.Dropout(config.dropout),
                h=nn.ModuleList([Block(config, i == 0) for i in range(config.n_layer)]),
                ln_f=LayerNorm(config.n_embd, bias=config.bias),
            )
        )
        self.lm_head = nn.Linear(config.n_embd, config.vocab_size, bias=False)
        self.transformer.wte.weight = self.lm_head.weight
        self.apply(self._init_weights)
        for pn, p in self.named_parameters():
            if pn.endswith("c_proj.weight"):
                torch.nn.init.normal_(p, mean=0.0, std=0.02 / math.sqrt(2 * config.n_layer))

    def _init_weights(self, module):
        if isinstance(module, nn.Linear):
            torch.nn.init.normal_(module.weight, mean=0.0, std=0.02)
            if module.bias is not None:
                torch.nn.init.zeros_(module.bias)
        elif isinstance(module, nn.Embedding):
            torch.nn.init.normal_(module.weight, mean=0.0, std=0.02)

    def forward(self, idx, targets=None):
        pos = torch.arange(0, idx.size(1), dtype=torch.long, device=idx.device)
        x = self.transformer.drop(self.transformer.wte(idx) + self.transformer.wpe(pos))
        for block in self.transformer.h:
            x = block(x)
        x = self.transformer.ln_f(x)
        if targets is None:
            return self.lm_head(x[:, [-1], :]), None
        logits = self.lm_head(x)
        return logits, F.cross_entropy(logits.view(-1, logits.size(-1)), targets.view(-1), ignore_index=-1)

    def configure_optimizers(self, weight_decay, learning_rate, betas):
        params = {pn: p for pn, p in self.named_parameters() if p.requires_grad}
        groups = [
            {"params": [p for p in params.values() if p.dim() >= 2], "weight_decay": weight_decay},
            {"params": [p for p in params.values() if p.dim() < 2], "weight_decay": 0.0},
        ]
        print([sum(p.numel() for p in g["params"]) for g in groups])
        print("fused" in inspect.signature(torch.optim.AdamW).parameters)
        return torch.optim.AdamW(groups, lr=learning_rate, betas=betas)

    @torch.no_grad()
    def generate(self, idx, max_new_tokens, temperature=1.0, top_k=None):
        for _ in range(max_new_tokens):
            idx_cond = idx if idx.size(1) <= self.config.block_size else idx[:, -self.config.block_size :]
            logits, _ = self(idx_cond)
            logits = logits[:, -1, :] / temperature
            if top_k is not None:
                v, _ = torch.topk(logits, min(top_k, logits.size(-1)))
                logits[logits < v[:, [-1]]] = -float("Inf")
            idx = torch.cat((idx, torch.multinomial(F.softmax(logits, dim=-1), num_samples=1)), dim=1)
        return idx


torch.manual_seed(1337)
text = torch.randint(17, (60,)).sort().values
model = GPT(Config())
optimizer = model.configure_optimizers(0.1, 1e-2, (0.9, 0.95))
scaler, ctx = torch.amp.GradScaler("cpu", enabled=False), torch.amp.autocast("cpu", enabled=False)
for it in range(6):
    for group in optimizer.param_groups:
        group["lr"] = 1e-2 * (it + 1) / 4 if it < 3 else 1e-3 + 0.5 * (1 + math.cos(math.pi * (it - 3) / 3)) * 9e-3
    for micro in range(2):
        ix = torch.randint(len(text) - 8, (4,))
        x, y = (torch.stack([text[i + k : i + k + 8] for i in ix]) for k in (0, 1))
        with ctx:
            _, loss = model(x, y)
            loss = loss / 2
        scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    scaler.step(optimizer)
    scaler.update()
    optimizer.zero_grad(set_to_none=True)
    print(f"iter {it}: loss {2 * loss.item():.4f}, norm {norm:.4f}")
model.eval()
print(model.generate(torch.zeros((1, 1), dtype=torch.long), 12, top_k=3), len(model.state_dict()))


class LoRA(nn.Module):
    def __init__(self, n_in, n_out, rank=1, alpha=2):
        super().__init__()
        self.A = nn.Parameter(torch.zeros((rank, n_out)))
        self.B = nn.Parameter(torch.zeros((n_in, rank)))
        nn.init.normal_(self.A, mean=0, std=1)
        self.scale, self.enabled = alpha / rank, True

    def forward(self, W):
        return W + torch.matmul(self.B, self.A).view(W.shape) * self.scale if self.enabled else W


net = nn.Sequential(nn.Linear(4, 6), nn.ReLU(), nn.Linear(6, 3))
original = {n: p.clone().detach() for n, p in net.named_parameters()}
for layer in (net[0], net[2]):
    parametrize.register_parametrization(layer, "weight", LoRA(*layer.weight.shape))
for name, param in net.named_parameters():
    param.requires_grad = "parametrizations.weight.0" in name
print([n for n, p in net.named_parameters() if p.requires_grad])
optimizer = torch.optim.Adam((p for p in net.parameters() if p.requires_grad), lr=0.05)
x, y = torch.randn(8, 4), torch.randint(3, (8,))
for _ in range(4):
    loss = F.cross_entropy(net(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"{loss:.4f}", torch.equal(net[0].parametrizations.weight.original, original["0.weight"]), type(net[0]).__name__)
net[0].parametrizations["weight"][0].enabled = False
print(torch.equal(net[0].weight, original["0.weight"]))

torch.manual_seed(0)
betas = torch.linspace(1e-4, 0.02, 20)
alphas_bar = torch.cumprod(1.0 - betas, dim=0)
previous = F.pad(alphas_bar[:-1], (1, 0), value=1.0)
variance = betas * (1.0 - previous) / (1.0 - alphas_bar)


def times(t, dim=8):
    freqs = torch.exp(torch.arange(dim // 2) * -(math.log(10000) / (dim // 2 - 1)))
    args = t[:, None] * freqs[None, :]
    return torch.cat((args.sin(), args.cos()), dim=-1)


class Denoiser(nn.Module):
    def __init__(self):
        super().__init__()
        self.time = nn.Sequential(nn.Linear(8, 8), nn.GELU(), nn.Linear(8, 8))
        self.down, self.norm = nn.Conv2d(1, 8, 3, 2, 1), nn.GroupNorm(2, 8)
        self.up, self.out = nn.Upsample(scale_factor=2, mode="nearest"), nn.Conv2d(8, 1, 3, padding=1)

    def forward(self, x, t):
        scale = self.time(times(t))[:, :, None, None]
        return self.out(self.up(F.silu(self.norm(self.down(x)) * (scale + 1))))


unet = Denoiser()
ema = copy.deepcopy(unet).requires_grad_(False)
optimizer = torch.optim.Adam(unet.parameters(), lr=1e-2)
data = torch.rand(6, 1, 8, 8) * 2 - 1
for step in range(5):
    t = torch.randint(0, 20, (6,)).long()
    noise = torch.randn_like(data)
    shape = (-1, *((1,) * (data.dim() - 1)))
    noisy = alphas_bar.gather(-1, t).sqrt().reshape(shape) * data + (1 - alphas_bar[t]).sqrt().view(shape) * noise
    loss = F.smooth_l1_loss(noise, unet(noisy, t))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    with torch.no_grad():
        for e, p in zip(ema.parameters(), unet.parameters()):
            e.lerp_(p, 0.1)
    print(f"{loss:.5f}", t)
with torch.inference_mode():
    img = torch.randn(1, 1, 8, 8)
    for i in reversed(range(3)):
        t = torch.full((1,), i, dtype=torch.long)
        img = (img - betas[i] * ema(img, t) / (1 - alphas_bar[i]).sqrt()) / (1.0 - betas[i]).sqrt()
        if i > 0:
            img += variance[i].sqrt() * torch.randn_like(img)
    print(img.clamp(-1, 1).mean())

torch.manual_seed(0)
encoder = nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 4))
optimizer = torch.optim.SGD(encoder.parameters(), lr=0.1, momentum=0.9, nesterov=True)
base = torch.randn(5, 6)
for _ in range(4):
    features = F.normalize(encoder(torch.cat([base + 0.1 * torch.randn(5, 6) for _ in range(2)])), dim=1)
    labels = torch.cat([torch.arange(5) for i in range(2)], dim=0)
    labels = (labels.unsqueeze(0) == labels.unsqueeze(1)).float()
    similarity = torch.matmul(features, features.T)
    mask = torch.eye(labels.shape[0], dtype=torch.bool)
    labels = labels[~mask].view(labels.shape[0], -1)
    similarity = similarity[~mask].view(similarity.shape[0], -1)
    positives = similarity[labels.bool()].view(labels.shape[0], -1)
    negatives = similarity[~labels.bool()].view(similarity.shape[0], -1)
    logits = torch.cat([positives, negatives], dim=1) / 0.07
    loss = F.cross_entropy(logits, torch.zeros(logits.shape[0], dtype=torch.long))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(f"{loss:.4f} {(logits.argmax(1) == 0).float().mean():.2f}")
anchor, positive, negative = encoder(base), encoder(base + 0.1), encoder(base.flip(0))
print(nn.TripletMarginLoss(margin=1.0, p=2)(anchor, positive, negative))
print(
    nn.TripletMarginWithDistanceLoss(distance_function=lambda a, b: 1 - F.cosine_similarity(a, b))(
        anchor, positive, negative
    )
)


class Coupling(nn.Module):
    def __init__(self, mask):
        super().__init__()
        self.register_buffer("mask", mask)
        self.net = nn.Sequential(nn.Linear(2, 8), nn.Tanh(), nn.Linear(8, 4))

    def forward(self, x):
        s, t = self.net(x * self.mask).chunk(2, 1)
        s, t = torch.tanh(s) * (1 - self.mask), t * (1 - self.mask)
        return x * s.exp() + t, s.sum(1)


flow = nn.ModuleList(Coupling(torch.tensor([float(i % 2), float((i + 1) % 2)])) for i in range(3))
prior = torch.distributions.MultivariateNormal(torch.zeros(2), torch.eye(2))
optimizer = torch.optim.Adamax(flow.parameters(), lr=0.02)
x = torch.randn(32, 2) * torch.tensor([0.3, 1.0]) + 1
for _ in range(5):
    z, log_det = x, torch.zeros(32)
    for layer in flow:
        z, d = layer(z)
        log_det = log_det + d
    loss = -(prior.log_prob(z) + log_det).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(f"{loss.item():.4f}")
