"""Signals: other sampling rates, filters, bands of frequencies and convolutions by FFT, with gradients."""

import julius
import torch

torch.manual_seed(0)
x = torch.randn(2, 1000, dtype=torch.float64, requires_grad=True)
made = {
    "resampled": julius.resample_frac(x, 4, 5),
    "low": julius.lowpass_filter(x, 0.1),
    "high": julius.highpass_filter(x, 0.2, stride=2),
    "band": julius.bandpass_filter(x, 0.1, 0.3, fft=False),
    "bands": julius.split_bands(x, 1000, n_bands=4),
    "delayed": julius.fftconv.fft_conv1d(x[:, None], torch.randn(1, 1, 65, dtype=torch.float64)),
    "unfolded": julius.core.unfold(x, 100, 50),
}
for name, y in made.items():
    (grad,) = torch.autograd.grad(y.square().mean(), x)
    print(name, tuple(y.shape), y.square().mean().item(), grad.norm().item())
assert torch.allclose(made["bands"].sum(0), x, atol=1e-6)
