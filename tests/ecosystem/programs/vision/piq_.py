"""Measures of image quality of piq, with gradients: structure, spectra, gradients and total variation."""

import piq
import torch

torch.manual_seed(0)
x = torch.rand(2, 3, 48, 48)
y = (x + 0.1 * torch.randn(2, 3, 48, 48)).clamp(0, 1)
for name, measure in (
    ("ssim", lambda a, b: piq.ssim(a, b, data_range=1.0)),
    ("iw-ssim", lambda a, b: piq.information_weighted_ssim(a, b, data_range=1.0, scale_weights=torch.ones(2) / 2)),
    ("ms-ssim", lambda a, b: piq.multi_scale_ssim(a, b, scale_weights=torch.ones(2) / 2)),
    ("psnr", piq.psnr),
    ("vif", piq.vif_p),
    ("fsim", piq.fsim),
    ("srsim", piq.srsim),
    ("gmsd", piq.gmsd),
    ("ms-gmsd", piq.multi_scale_gmsd),
    ("vsi", piq.vsi),
    ("haarpsi", piq.haarpsi),
    ("mdsi", piq.mdsi),
    ("dss", piq.dss),
):
    z = y.clone().requires_grad_()
    value = measure(z, x)
    (grad,) = torch.autograd.grad(value, z)
    print(name, value.item(), grad.norm().item())
print(piq.total_variation(y).item())
