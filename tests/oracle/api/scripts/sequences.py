"""Packed sequences: attention over an encoder of a GRU, and CTC over an LSTM with projections."""

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence, pad_sequence, pack_sequence, unpad_sequence
from shared import R, fix, ri, rn, show


class Enc(nn.Module):
    def __init__(s):
        super().__init__()
        s.e = nn.Embedding(12, 6, padding_idx=0)
        s.r = nn.GRU(6, 8, 2, bidirectional=True, batch_first=True)

    def forward(s, x, l):
        p = pack_padded_sequence(s.e(x), l.cpu(), batch_first=True, enforce_sorted=False)
        o, h = s.r(p)
        o, ol = pad_packed_sequence(o, batch_first=True, padding_value=-1.0, total_length=7)
        return o, h.view(2, 2, -1, 8).sum(1)


class Att(nn.Module):
    def __init__(s):
        super().__init__()
        s.w = nn.Linear(16, 8, bias=False)

    def forward(s, q, k, mask):
        sc = torch.bmm(s.w(k), q.unsqueeze(2)).squeeze(2).masked_fill(~mask, float("-inf"))
        a = F.softmax(sc, dim=1)
        return torch.einsum("bt,btd->bd", a, k), a


class Dec(nn.Module):
    def __init__(s):
        super().__init__()
        s.e = nn.Embedding(12, 6, padding_idx=0)
        s.a = Att()
        s.r = nn.LSTMCell(6 + 16, 8)
        s.o = nn.Linear(8, 12)

    def forward(s, y, h, eo, mask, tf=True):
        hx, cx = h[-1], torch.zeros_like(h[-1])
        outs = []
        inp = y[:, 0]
        for t in range(y.size(1) - 1):
            c, a = s.a(hx, eo, mask)
            hx, cx = s.r(torch.cat([s.e(inp), c], 1), (hx, cx))
            lo = s.o(hx)
            outs.append(lo)
            inp = y[:, t + 1] if tf else lo.argmax(1)
        return torch.stack(outs, 1)


enc, dec = fix(Enc(), 1), fix(Dec(), 2)
with torch.no_grad():
    enc.e.weight[0].zero_()
    dec.e.weight[0] = 0
opt = torch.optim.AdamW(
    [{"params": enc.parameters()}, {"params": dec.parameters(), "lr": 5e-3, "weight_decay": 0.0}], lr=1e-2
)
crit = nn.CrossEntropyLoss(ignore_index=0, label_smoothing=0.1)
seqs = [torch.from_numpy(R.integers(1, 12, n)) for n in (3, 7, 5, 1)]
x = pad_sequence(seqs, batch_first=True)
l = torch.tensor([len(s) for s in seqs])
mask = torch.arange(7)[None] < l[:, None]
y = ri(12, 4, 6).clamp(min=1)
for e in range(10):
    opt.zero_grad(set_to_none=True)
    eo, h = enc(x, l)
    lo = dec(y, h, eo, mask)
    loss = crit(lo.flatten(0, 1), y[:, 1:].reshape(-1))
    loss.backward()
    opt.step()
    print("%.4f" % loss.item())
eo, h = enc(x, l)
show("o", eo)
show("greedy", dec(y, h, eo, mask, False).argmax(-1))
p = pack_sequence(seqs, enforce_sorted=False)
show("data", p.data)
show("bs", p.batch_sizes)
show("si", p.sorted_indices)
print([u.tolist() for u in unpad_sequence(x, l, batch_first=True)])
show("g", enc.e.weight.grad[0])
print(p.data.dtype, p.is_cuda)


class M(nn.Module):
    def __init__(s):
        super().__init__()
        s.c = nn.Sequential(
            nn.Conv1d(10, 12, 3, padding=1), nn.BatchNorm1d(12), nn.Hardtanh(0, 20, inplace=True), nn.MaxPool1d(2, 1)
        )
        s.r = nn.LSTM(12, 8, 2, bidirectional=True, proj_size=5, batch_first=True)
        s.o = nn.Linear(10, 6)

    def forward(s, x, l):
        h = s.c(x.transpose(1, 2)).transpose(1, 2)
        p = nn.utils.rnn.pack_padded_sequence(h, l, batch_first=True, enforce_sorted=False)
        o, (hn, cn) = s.r(p)
        o, _ = nn.utils.rnn.pad_packed_sequence(o, batch_first=True)
        return F.log_softmax(s.o(o), -1), hn, cn


m = fix(M())
o = torch.optim.Adam(m.parameters(), 0.01)
x = rn(3, 14, 10)
l = torch.tensor([13, 9, 11])
tg = torch.cat([ri(5, n) + 1 for n in (4, 3, 2)])
tl = torch.tensor([4, 3, 2])
ctc = nn.CTCLoss(blank=0, zero_infinity=True)
for i in range(6):
    lp, hn, cn = m(x, l)
    loss = ctc(lp.transpose(0, 1), tg, l, tl)
    o.zero_grad()
    loss.backward()
    gn = nn.utils.clip_grad_norm_(m.parameters(), 3.0, error_if_nonfinite=True)
    o.step()
    print("%.4f %.4f" % (loss.item(), gn.item()))
show("hn", hn)
show("cn", cn)
best = lp.argmax(-1)
print([torch.unique_consecutive(b).tolist() for b in best])
w = rn(2, 400)
S = torch.stft(w, 64, 16, window=torch.hann_window(64), return_complex=True)
show("S", S.abs())
show("inv", torch.istft(S, 64, 16, window=torch.hann_window(64), length=400))
mel = torch.clamp(torch.matmul(torch.linspace(0, 1, 33 * 4).view(4, 33), S.abs() ** 2), min=1e-10).log10()
show("mel", mel)
rnn = fix(nn.RNN(3, 4, nonlinearity="relu"))
show("r", rnn(rn(5, 3))[0])
g = fix(nn.GRUCell(3, 4))
h = torch.zeros(2, 4)
for t in range(3):
    h = g(rn(2, 3), h)
show("g", h)
