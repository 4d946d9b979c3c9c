"""Small networks trained for some steps with PyTorch's seeds: recurrent, convolutional, attention, generative."""

import math
import torch
import torch.nn as nn
import torch.nn.functional as F
from shared import told


def train(model, loss, steps=4, make=lambda p: torch.optim.Adam(p, lr=0.01)):
    o = make(model.parameters())
    seen = []
    for _ in range(steps):
        o.zero_grad()
        l = loss(model)
        l.backward()
        o.step()
        seen.append(round(l.item(), 4))
    print(type(model).__name__, seen, sum(p.numel() for p in model.parameters()))


torch.manual_seed(0)


class CharRNN(nn.Module):
    def __init__(self, kind, **kw):
        super().__init__()
        self.e = nn.Embedding(10, 6, padding_idx=0)
        self.r = getattr(nn, kind)(6, 8, num_layers=2, batch_first=True, bidirectional=True, **kw)
        self.o = nn.Linear(16, 10)

    def forward(self, x, lengths):
        p = nn.utils.rnn.pack_padded_sequence(self.e(x), lengths, batch_first=True, enforce_sorted=False)
        out, h = self.r(p)
        out, n = nn.utils.rnn.pad_packed_sequence(out, batch_first=True)
        return self.o(out), h


x, lengths = torch.randint(1, 10, (3, 5)), torch.tensor([5, 2, 4])
for kind, kw in (("LSTM", {}), ("GRU", {}), ("RNN", {"nonlinearity": "relu"}), ("LSTM", {"dropout": 0.3})):
    train(CharRNN(kind, **kw), lambda m: F.cross_entropy(m(x, lengths)[0].transpose(1, 2), x, ignore_index=0))


class LM(nn.Module):
    def __init__(self):
        super().__init__()
        self.e = nn.Embedding(12, 8)
        self.t = nn.TransformerEncoder(
            nn.TransformerEncoderLayer(8, 2, 16, 0.1, batch_first=True, norm_first=True), 2, enable_nested_tensor=False
        )
        self.o = nn.Linear(8, 12)

    def forward(self, x):
        pos = torch.arange(x.shape[1])[:, None] * torch.exp(torch.arange(0, 8, 2) * (-math.log(10000.0) / 8))
        pe = torch.stack([pos.sin(), pos.cos()], -1).flatten(1)
        return self.o(
            self.t(
                self.e(x) * math.sqrt(8) + pe,
                mask=nn.Transformer.generate_square_subsequent_mask(x.shape[1]),
                is_causal=True,
            )
        )


words = torch.randint(12, (2, 7))
train(LM(), lambda m: F.cross_entropy(m(words[:, :-1]).flatten(0, 1), words[:, 1:].flatten()))


class VAE(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.mu, self.lv, self.b = nn.Linear(12, 6), nn.Linear(6, 2), nn.Linear(6, 2), nn.Linear(2, 12)

    def forward(self, x):
        h = F.relu(self.a(x))
        mu, lv = self.mu(h), self.lv(h)
        z = mu + torch.randn_like(mu) * (0.5 * lv).exp()
        return torch.sigmoid(self.b(z)), mu, lv


data = torch.rand(5, 12)


def elbo(m):
    r, mu, lv = m(data)
    return F.binary_cross_entropy(r, data, reduction="sum") - 0.5 * torch.sum(1 + lv - mu.pow(2) - lv.exp())


train(VAE(), elbo)


class STN(nn.Module):
    def __init__(self):
        super().__init__()
        self.c = nn.Conv2d(1, 3, 3, padding=1)
        self.l = nn.Linear(3 * 16, 6)
        self.o = nn.Linear(64, 4)
        self.l.weight.data.zero_()
        self.l.bias.data.copy_(torch.tensor([1, 0, 0, 0, 1, 0.1]))

    def forward(self, x):
        t = self.l(F.max_pool2d(F.relu(self.c(x)), 2).flatten(1)).view(-1, 2, 3)
        return self.o(F.grid_sample(x, F.affine_grid(t, x.size(), align_corners=False), align_corners=False).flatten(1))


img, lab = torch.rand(4, 1, 8, 8), torch.tensor([0, 1, 2, 3])
train(STN(), lambda m: F.cross_entropy(m(img), lab, label_smoothing=0.1))
G = nn.Sequential(
    nn.ConvTranspose2d(4, 8, 4, 1, 0, bias=False),
    nn.BatchNorm2d(8),
    nn.ReLU(True),
    nn.ConvTranspose2d(8, 1, 4, 2, 1, bias=False),
    nn.Tanh(),
)
D = nn.Sequential(
    nn.Conv2d(1, 8, 4, 2, 1, bias=False),
    nn.BatchNorm2d(8),
    nn.LeakyReLU(0.2, True),
    nn.Conv2d(8, 1, 4, 1, 0, bias=False),
    nn.Sigmoid(),
)
for m in (*G, *D):
    if "Conv" in type(m).__name__:
        nn.init.normal_(m.weight, 0, 0.02)
    elif isinstance(m, nn.BatchNorm2d):
        nn.init.normal_(m.weight, 1, 0.02)
        nn.init.zeros_(m.bias)
og, od = (torch.optim.Adam(m.parameters(), lr=2e-4, betas=(0.5, 0.999)) for m in (G, D))
for _ in range(3):
    D.zero_grad()
    real = D(img).flatten()
    l1 = F.binary_cross_entropy(real, torch.ones(4))
    l1.backward()
    fake = G(torch.randn(4, 4, 1, 1))
    l2 = F.binary_cross_entropy(D(fake.detach()).flatten(), torch.zeros(4))
    l2.backward()
    od.step()
    G.zero_grad()
    l3 = F.binary_cross_entropy(D(fake).flatten(), torch.ones(4))
    l3.backward()
    og.step()
    print(f"{l1:.4f} {l2.item():.4f} {l3:.4f}")
x = img.clone().requires_grad_()
F.nll_loss(F.log_softmax(D[:3](x).mean((2, 3)), 1), lab).backward()
print(torch.clamp(x + 0.1 * x.grad.sign(), 0, 1).sum())
mha = nn.MultiheadAttention(8, 2, dropout=0.1, batch_first=True, add_bias_kv=True)
q = torch.randn(2, 3, 8)
out, w = mha(q, q, q, key_padding_mask=torch.tensor([[False, False, True], [False] * 3]), average_attn_weights=False)
print(out.sum(), w.shape, w[0, 0])
print(
    F.scaled_dot_product_attention(q, q, q, is_causal=True).sum(),
    F.scaled_dot_product_attention(q, q, q, attn_mask=torch.ones(3, 3).tril().bool()).sum(),
)
tr = nn.Transformer(8, 2, 1, 1, 16, 0.0, batch_first=True)
print(tr(q, q, tgt_mask=nn.Transformer.generate_square_subsequent_mask(3)).sum())
told(lambda: mha(q, q, torch.randn(2, 4, 8)))
told(lambda: nn.MultiheadAttention(8, 3))
told(lambda: nn.LSTM(3, 4)(torch.ones(2, 2, 5)))
told(lambda: nn.LSTM(3, 4)(torch.ones(2, 2, 3), torch.ones(1, 2, 4)))
told(lambda: nn.LSTM(3, 4)(torch.ones(3)))
told(lambda: nn.GRU(3, 4)(torch.ones(2, 2, 3), torch.ones(1, 3, 4)))
told(lambda: nn.LSTM(3, 4, dropout=2))
told(lambda: nn.RNN(3, 4, nonlinearity="x"))
told(lambda: nn.Conv2d(3, 4, 3)(torch.ones(1, 2, 5, 5)))
told(lambda: nn.Conv2d(3, 4, 7)(torch.ones(1, 3, 5, 5)))
told(lambda: nn.Conv2d(3, 4, 3, groups=2))
told(lambda: nn.Conv2d(3, 4, 3, padding="same", stride=2))
told(lambda: nn.BatchNorm2d(3)(torch.ones(2, 3)))
told(lambda: nn.BatchNorm1d(3)(torch.ones(1, 3)))
told(lambda: nn.LayerNorm(3)(torch.ones(2, 4)))
told(lambda: nn.GroupNorm(2, 3))
told(lambda: nn.Embedding(3, 2)(torch.tensor([3])))
told(lambda: nn.Embedding(3, 2)(torch.tensor([1.0])))
told(lambda: nn.Embedding(3, 2, padding_idx=5))
told(lambda: nn.MaxPool2d(2, padding=2)(torch.ones(1, 1, 4, 4)))
told(lambda: F.cross_entropy(torch.ones(2, 3), torch.tensor([0, 3])))
told(lambda: F.cross_entropy(torch.ones(2, 3), torch.tensor([0.0, 1.0])))
told(lambda: F.cross_entropy(torch.ones(2, 3), torch.tensor([0])))
told(lambda: F.nll_loss(torch.ones(2, 3), torch.tensor([0, 1], dtype=torch.int32)))
told(lambda: F.binary_cross_entropy(torch.tensor([1.5]), torch.tensor([1.0])))
told(lambda: F.binary_cross_entropy(torch.rand(2), torch.rand(3)))
told(lambda: F.mse_loss(torch.ones(2), torch.ones(2, 1), reduction="x"))
told(lambda: F.kl_div(torch.zeros(2, 2), torch.ones(2, 2) / 2, reduction="batchmean"))
told(
    lambda: (
        F.ctc_loss(
            torch.randn(5, 1, 3).log_softmax(2), torch.tensor([[1, 2]]), torch.tensor([5]), torch.tensor([2])
        ).item()
        > 0
    )
)
told(lambda: F.gumbel_softmax(torch.zeros(3), hard=True).sum())
told(lambda: F.one_hot(torch.tensor([0, 3]), 3))
told(lambda: F.interpolate(torch.ones(1, 1, 2, 2), scale_factor=2, size=3))
told(lambda: F.interpolate(torch.ones(1, 1, 2), 4, mode="bilinear"))
told(lambda: F.pad(torch.ones(2), (1, 1), mode="reflect"))
told(lambda: F.dropout(torch.ones(2), 1.5))
told(lambda: F.grid_sample(torch.ones(1, 1, 2, 2), torch.zeros(1, 2, 2, 3)))
