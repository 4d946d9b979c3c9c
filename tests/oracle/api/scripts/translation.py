"""Sequence to sequence: GRU with attention over packed sequences, then a transformer with masks."""

import math
import random
import time
import torch
import numpy as np
import torch.nn as nn
import torch.nn.functional as F
from torch import optim
from torch.nn.utils.rnn import pad_sequence, pack_padded_sequence, pad_packed_sequence
from torch.utils.data import Dataset, DataLoader
from typing import List, Tuple, Optional

PAD, SOS, EOS = 0, 1, 2
rng = np.random.default_rng(3)


class Reverse(Dataset):
    def __init__(self, n=64):
        self.items = [torch.tensor(rng.integers(3, 12, size=rng.integers(3, 8)).tolist()) for _ in range(n)]

    def __len__(self):
        return len(self.items)

    def __getitem__(self, i):
        s = self.items[i]
        return s, torch.cat([s.flip(0), torch.tensor([EOS])])


def collate(batch):
    batch.sort(key=lambda b: len(b[0]), reverse=True)
    src, tgt = zip(*batch)
    lens = torch.LongTensor([len(s) for s in src])
    return (
        pad_sequence(src, batch_first=True, padding_value=PAD),
        lens,
        pad_sequence(tgt, batch_first=True, padding_value=PAD),
    )


class Encoder(nn.Module):
    def __init__(self, v, e, h):
        super().__init__()
        self.emb = nn.Embedding(v, e, padding_idx=PAD)
        self.rnn = nn.GRU(e, h, batch_first=True, bidirectional=True)
        self.fc = nn.Linear(2 * h, h)

    def forward(self, x, lens):
        packed = pack_padded_sequence(self.emb(x), lens.cpu(), batch_first=True, enforce_sorted=True)
        out, h = self.rnn(packed)
        out, _ = pad_packed_sequence(out, batch_first=True)
        return out, torch.tanh(self.fc(torch.cat((h[-2], h[-1]), dim=1)))


class Attn(nn.Module):
    def __init__(self, h):
        super().__init__()
        self.W = nn.Linear(3 * h, h)
        self.v = nn.Parameter(torch.rand(h))

    def forward(self, s, enc, mask):
        T = enc.shape[1]
        e = torch.tanh(self.W(torch.cat([s.unsqueeze(1).repeat(1, T, 1), enc], dim=2)))
        a = (e @ self.v).masked_fill(mask == 0, -1e10)
        return F.softmax(a, dim=1)


class Decoder(nn.Module):
    def __init__(self, v, e, h):
        super().__init__()
        self.emb = nn.Embedding(v, e)
        self.attn = Attn(h)
        self.rnn = nn.GRUCell(e + 2 * h, h)
        self.out = nn.Linear(3 * h + e, v)

    def forward(self, y, s, enc, mask):
        emb = self.emb(y)
        a = self.attn(s, enc, mask)
        ctx = torch.bmm(a.unsqueeze(1), enc).squeeze(1)
        s = self.rnn(torch.cat((emb, ctx), 1), s)
        return self.out(torch.cat((s, ctx, emb), 1)), s, a


class S2S(nn.Module):
    def __init__(self, v=12, e=8, h=16):
        super().__init__()
        self.enc, self.dec, self.v = Encoder(v, e, h), Decoder(v, e, h), v

    def forward(self, src, lens, tgt, tf=0.5):
        B, T = tgt.shape
        outs = torch.zeros(T, B, self.v, device=src.device)
        enc, s = self.enc(src, lens)
        mask = src != PAD
        y = torch.full((B,), SOS, dtype=torch.long)
        for t in range(T):
            o, s, _ = self.dec(y, s, enc, mask)
            outs[t] = o
            y = tgt[:, t] if random.random() < tf else o.argmax(1)
        return outs


random.seed(0)
torch.manual_seed(0)
m = S2S()
for n, p in m.named_parameters():
    p.data.uniform_(-0.08, 0.08)
    p.data.copy_(torch.from_numpy(rng.uniform(-0.3, 0.3, tuple(p.shape))))
m.enc.emb.weight.data[PAD].fill_(0)
opt = optim.Adam(m.parameters(), lr=5e-3)
sch = optim.lr_scheduler.ReduceLROnPlateau(opt, mode="min", factor=0.5, patience=1)
crit = nn.CrossEntropyLoss(ignore_index=PAD, label_smoothing=0.1)
dl = DataLoader(Reverse(), batch_size=16, shuffle=False, collate_fn=collate)
for ep in range(6):
    tot = 0
    m.train()
    for src, lens, tgt in dl:
        opt.zero_grad()
        out = m(src, lens, tgt)
        loss = crit(out[:].reshape(-1, out.shape[-1]), tgt.transpose(0, 1).reshape(-1))
        loss.backward()
        nn.utils.clip_grad_norm_(m.parameters(), 1)
        opt.step()
        tot += loss.item() * src.size(0)
    sch.step(tot)
    print(
        f"Epoch: {ep + 1:02} | Loss: {tot / len(dl.dataset):.4f} | PPL: {math.exp(tot / len(dl.dataset)):7.3f} | lr {opt.param_groups[0]['lr']}"
    )
assert m.enc.emb.weight.grad[PAD].abs().sum() == 0


# transformer variant
class PE(nn.Module):
    def __init__(self, d, max_len=50, dropout=0.0):
        super().__init__()
        self.dropout = nn.Dropout(dropout)
        pos = torch.arange(max_len).unsqueeze(1)
        div = torch.exp(torch.arange(0, d, 2) * (-math.log(10000.0) / d))
        pe = torch.zeros(max_len, 1, d)
        pe[:, 0, 0::2] = torch.sin(pos * div)
        pe[:, 0, 1::2] = torch.cos(pos * div)
        self.register_buffer("pe", pe)

    def forward(self, x):
        return self.dropout(x + self.pe[: x.size(0)])


tr = nn.Transformer(d_model=16, nhead=2, num_encoder_layers=1, num_decoder_layers=1, dim_feedforward=32, dropout=0.0)
for p in tr.parameters():
    if p.dim() > 1:
        nn.init.xavier_uniform_(p)
    p.data.copy_(torch.from_numpy(rng.uniform(-0.3, 0.3, tuple(p.shape))))
emb = nn.Embedding.from_pretrained(torch.from_numpy(rng.standard_normal((12, 16))).float(), freeze=False)
pe = PE(16)
gen = nn.Linear(16, 12)
with torch.no_grad():
    for p in gen.parameters():
        p.copy_(torch.from_numpy(rng.uniform(-0.3, 0.3, tuple(p.shape))))
params = list(tr.parameters()) + list(emb.parameters()) + list(gen.parameters())
opt = torch.optim.NAdam(
    [{"params": tr.parameters(), "lr": 1e-3}, {"params": [*emb.parameters(), *gen.parameters()]}], lr=3e-3
)
sched = torch.optim.lr_scheduler.LambdaLR(opt, lambda s: min((s + 1) ** -0.5, (s + 1) * 4**-1.5))
for it, (src, lens, tgt) in enumerate(dl):
    src, tgt = src.t(), tgt.t()
    tin, tout = tgt[:-1], tgt[1:]
    mask = tr.generate_square_subsequent_mask(tin.size(0))
    out = tr(
        pe(emb(src) * math.sqrt(16)),
        pe(emb(tin)),
        tgt_mask=mask,
        src_key_padding_mask=(src == PAD).t(),
        tgt_key_padding_mask=(tin == PAD).t(),
        memory_key_padding_mask=(src == PAD).T,
    )
    loss = F.cross_entropy(gen(out).flatten(0, 1), tout.flatten(), ignore_index=PAD)
    opt.zero_grad()
    loss.backward()
    torch.nn.utils.clip_grad_norm_(params, 0.5, error_if_nonfinite=True)
    opt.step()
    sched.step()
    print(it, f"{loss:.5f}", [f"{x:.6f}" for x in sched.get_last_lr()])
