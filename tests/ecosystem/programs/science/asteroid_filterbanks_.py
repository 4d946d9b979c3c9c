"""Filterbanks: analytic and learned ones take sound apart and put it together again."""

import torch
from asteroid_filterbanks import STFTFB, AnalyticFreeFB, FreeFB, ParamSincFB, make_enc_dec
from asteroid_filterbanks.transforms import angle, from_magphase, mag

torch.manual_seed(0)
x = torch.randn(2, 1, 800)
encoder, decoder = make_enc_dec("stft", n_filters=64, kernel_size=64, stride=32)
spectrum = encoder(x)
print("stft", mag(spectrum).sum().item(), decoder(spectrum).square().mean().item())
encoder, decoder = make_enc_dec("free", n_filters=16, kernel_size=16, stride=8)
optimizer = torch.optim.Adam([*encoder.parameters(), *decoder.parameters()], lr=1e-2)
losses = []
for _ in range(20):
    loss = (decoder(encoder(x), length=800) - x).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print("losses", losses[0], losses[-1])
assert losses[-1] < 0.9 * losses[0]
for bank in (STFTFB, AnalyticFreeFB, FreeFB, ParamSincFB):
    filters = bank(n_filters=32, kernel_size=33 if bank is ParamSincFB else 32).filters()
    print(bank.__name__, tuple(filters.shape), filters.norm().item())
assert torch.allclose(from_magphase(mag(spectrum), angle(spectrum)), spectrum, atol=1e-5)
