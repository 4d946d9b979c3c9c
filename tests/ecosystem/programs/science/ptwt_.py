"""Wavelet transforms in one and two dimensions, packets, the continuous transform, and inverses with gradients."""

import ptwt
import pywt
import torch

torch.manual_seed(0)
x = torch.randn(2, 32, dtype=torch.float64, requires_grad=True)
for wavelet in ("haar", "db3"):
    found = ptwt.wavedec(x, pywt.Wavelet(wavelet), mode="zero", level=2)
    back = ptwt.waverec(found, pywt.Wavelet(wavelet))
    assert torch.allclose(back, x)
    (grad,) = torch.autograd.grad(sum(c.abs().sum() for c in found), x)
    print(wavelet, *[c.abs().sum().item() for c in found], grad.norm().item())
image = torch.randn(1, 16, 16, dtype=torch.float64)
coefficients = ptwt.wavedec2(image, "db2", level=2, mode="reflect")
print(coefficients[0].sum().item(), *[d.abs().sum().item() for d in coefficients[1]])
assert torch.allclose(ptwt.waverec2(coefficients, "db2"), image)
packet = ptwt.WaveletPacket(data=x.detach(), wavelet="haar", mode="zero", maxlevel=2)
print(packet["aa"].abs().sum().item(), packet["dd"].abs().sum().item())
transform = ptwt.cwt(torch.sin(torch.linspace(0, 20, 64, dtype=torch.float64)), torch.arange(1, 6), "morl")
print(transform[0].abs().sum().item())
matrix = ptwt.MatrixWavedec("db2", 2)
print(*[c.abs().sum().item() for c in matrix(x.detach())])
