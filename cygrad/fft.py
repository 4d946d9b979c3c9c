"""Discrete Fourier transforms, under the names of PyTorch's `torch.fft`."""

from cygrad._ops.signal.fourier import (
    fft,
    fft2,
    fftn,
    hfft,
    hfft2,
    hfftn,
    ifft,
    ifft2,
    ifftn,
    ihfft,
    ihfft2,
    ihfftn,
    irfft,
    irfft2,
    irfftn,
    rfft,
    rfft2,
    rfftn,
)
from cygrad._ops.signal.frequencies import fftfreq, fftshift, ifftshift, rfftfreq

__all__ = [name for name in dir() if not name.startswith("_")]
