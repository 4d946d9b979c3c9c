"""Attention in many forms: kernels, biases, caches, groups, rotary and relative positions, flexible scores."""

import math

import torch
import torch.nn as nn
import torch.nn.functional as F
from shared import told
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.attention.bias import CausalBias, causal_lower_right, causal_upper_left
from torch.nn.attention.flex_attention import (
    and_masks,
    create_block_mask,
    create_mask,
    flex_attention,
    noop_mask,
    or_masks,
)

torch.manual_seed(0)
q, k, v = (torch.randn(2, 4, 6, 8, requires_grad=True) for _ in range(3))
plain = F.scaled_dot_product_attention(q, k, v)
print(plain.sum(), plain[0, 0, 0].detach())
with sdpa_kernel(SDPBackend.MATH):
    print(torch.allclose(F.scaled_dot_product_attention(q, k, v), plain, atol=1e-6))
with sdpa_kernel([SDPBackend.FLASH_ATTENTION, SDPBackend.MATH]):
    print(torch.allclose(F.scaled_dot_product_attention(q, k, v, is_causal=True)[:, :, -1], plain[:, :, -1], atol=1e-6))
print(SDPBackend.MATH.name, SDPBackend.EFFICIENT_ATTENTION)
short = q[:, :, :3]
for bias in (causal_upper_left(3, 6), causal_lower_right(3, 6)):
    out = F.scaled_dot_product_attention(short, k, v, attn_mask=bias)
    print(isinstance(bias, CausalBias), bias.variant.name, out.sum())
print(
    F.scaled_dot_product_attention(q, k[:, :2], v[:, :2], enable_gqa=True).sum(),
    F.scaled_dot_product_attention(q, k, v, scale=0.1).sum(),
)
mask = torch.rand(2, 1, 6, 6) > 0.3
(g,) = torch.autograd.grad(F.scaled_dot_product_attention(q, k, v, attn_mask=mask).square().sum(), q)
print(
    g.norm(), F.scaled_dot_product_attention(q, k, v, attn_mask=torch.zeros(6, 6).masked_fill(~mask[0, 0], -1e9)).sum()
)
told(lambda: F.scaled_dot_product_attention(q, k, v, attn_mask=mask, is_causal=True).sum().detach())
told(lambda: F.scaled_dot_product_attention(q, k.double(), v))
told(lambda: F.scaled_dot_product_attention(q, k, v, attn_mask=torch.ones(6, 6, dtype=torch.int64)))
print(F.scaled_dot_product_attention(q, k, v, attn_mask=torch.zeros(6, 6, dtype=torch.bool))[0, 0, 0, :2].detach())


def relative(score, b, h, q_idx, kv_idx):
    return score + 0.1 * (q_idx - kv_idx)


def causal(b, h, q_idx, kv_idx):
    return q_idx >= kv_idx


def window(b, h, q_idx, kv_idx):
    return (q_idx - kv_idx).abs() <= 2


def alibi(score, b, h, q_idx, kv_idx):
    return score + torch.exp2(-((h + 1) * 8.0 / 4)) * (kv_idx - q_idx)


q, k, v = q.detach(), k.detach(), v.detach()  # PyTorch's has no gradients on the CPU
print(flex_attention(q, k, v).sub(plain).abs().max() < 1e-5)
print(flex_attention(q, k, v, score_mod=relative).sum(), flex_attention(q, k, v, score_mod=alibi).sum())
print(flex_attention(q, k, v, score_mod=lambda s, b, h, i, j: 20 * torch.tanh(s / 20)).sum())
block = create_block_mask(and_masks(causal, window), B=None, H=None, Q_LEN=6, KV_LEN=6, device="cpu", BLOCK_SIZE=2)
print(block.shape, block.sparsity(), block.to_dense())
print(flex_attention(q, k, v, block_mask=block).sum(), create_mask(or_masks(causal, window), 1, 1, 4, 4)[0, 0])
document = torch.tensor([0, 0, 0, 1, 1, 1])
packed = create_block_mask(lambda b, h, i, j: (document[i] == document[j]) & (i >= j), None, None, 6, 6, device="cpu")
out, lse = flex_attention(q, k, v, block_mask=packed, return_lse=True)
print(out.sum(), lse.shape, lse.sum(), noop_mask(torch.tensor(0), 0, 0, 0))


def rotary(x, positions, base=10000.0):
    inv = 1.0 / base ** (torch.arange(0, x.shape[-1], 2).float() / x.shape[-1])
    angles = torch.outer(positions.float(), inv)
    rotated = torch.view_as_complex(x.float().reshape(*x.shape[:-1], -1, 2)) * torch.polar(
        torch.ones_like(angles), angles
    )
    return torch.view_as_real(rotated).flatten(3).type_as(x)


def rotate_half(x):
    a, b = x.chunk(2, dim=-1)
    return torch.cat((-b, a), dim=-1)


positions = torch.arange(6)
a, b = rotary(q, positions), rotary(q, positions + 3)
print(torch.allclose(a @ a.mT, b @ b.mT, atol=1e-4), a.sum(), (q * 0.5 + rotate_half(q) * 0.5).sum())


class Cached(nn.Module):
    """Attention of groups with rotary positions and a cache, as in language models."""

    def __init__(self, n=16, heads=4, groups=2):
        super().__init__()
        self.heads, self.groups, self.size = heads, groups, n // heads
        self.wq, self.wk, self.wv, self.wo = (nn.Linear(n, m, bias=False) for m in (n, n // 2, n // 2, n))
        self.register_buffer("k", torch.zeros(1, groups, 8, self.size), persistent=False)
        self.register_buffer("v", torch.zeros(1, groups, 8, self.size), persistent=False)
        self.norm = nn.RMSNorm(n)

    def forward(self, x, start, cached=True):
        B, T, _ = x.shape
        x = self.norm(x)
        q, k, v = (
            w(x).view(B, T, h, self.size).transpose(1, 2)
            for w, h in ((self.wq, self.heads), (self.wk, self.groups), (self.wv, self.groups))
        )
        at = torch.arange(start, start + T)
        q, k = rotary(q, at), rotary(k, at)
        if cached:
            self.k[:, :, at], self.v[:, :, at] = k.detach(), v.detach()
            k, v = self.k[:, :, : start + T], self.v[:, :, : start + T]
        k, v = (t.repeat_interleave(self.heads // self.groups, dim=1) for t in (k, v))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=T > 1)
        return self.wo(y.transpose(1, 2).reshape(B, T, -1))


layer, x = Cached(), torch.randn(1, 5, 16)
whole = layer(x, 0, cached=False)
with torch.no_grad():
    steps = torch.cat([layer(x[:, i : i + 1], i) for i in range(5)], dim=1)
print(torch.allclose(whole, steps, atol=1e-5), whole.sum(), list(layer.state_dict()))


class Linear(nn.Module):
    def forward(self, q, k, v):
        q, k = F.elu(q) + 1, F.elu(k) + 1
        kv = torch.einsum("bhnd,bhne->bhnde", k, v).cumsum(dim=2)
        z = torch.einsum("bhnd,bhnd->bhn", q, k.cumsum(dim=2))
        return torch.einsum("bhnd,bhnde->bhne", q, kv) / z.unsqueeze(-1)


q.requires_grad_()
print(Linear()(q, k, v).sum(), torch.autograd.grad(Linear()(q, k, v).sum(), q)[0].norm())
table = nn.Parameter(torch.randn(11, 4))
index = torch.arange(6)[:, None] - torch.arange(6)[None, :] + 5
shifted = F.pad(torch.arange(12.0).view(1, 3, 4), (1, 0)).view(1, 5, 3)[:, 1:].view_as(torch.empty(1, 3, 4))
print(F.scaled_dot_product_attention(q, k, v, attn_mask=table[index].permute(2, 0, 1)).sum(), shifted)
m = nn.MultiheadAttention(8, 2, kdim=6, vdim=4, bias=False, add_zero_attn=True)
out, weights = m(torch.randn(3, 2, 8), torch.randn(5, 2, 6), torch.randn(5, 2, 4), key_padding_mask=torch.zeros(2, 5))
print(out.sum(), weights.shape, m)
encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), 2).eval()
padding = torch.tensor([[False] * 4, [False, False, True, True]])
with torch.no_grad():
    print(encoder(torch.ones(2, 4, 8), src_key_padding_mask=padding).sum((1, 2)))
decoder = nn.TransformerDecoder(
    nn.TransformerDecoderLayer(8, 2, 16, 0.0, activation=F.gelu, norm_first=True), 1, nn.LayerNorm(8)
)
print(
    decoder(
        torch.randn(3, 2, 8),
        torch.randn(4, 2, 8),
        tgt_is_causal=True,
        tgt_mask=nn.Transformer.generate_square_subsequent_mask(3),
    ).sum()
)
print(
    math.isclose(
        plain.sum().item(),
        F.scaled_dot_product_attention(q.double(), k.double(), v.double()).sum().item(),
        rel_tol=1e-4,
    )
)
