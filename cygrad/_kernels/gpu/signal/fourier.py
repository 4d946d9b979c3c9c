"""Discrete Fourier transforms on GPUs, by cuFFT; takes the arguments of `_kernels/cpu/signal/fourier.py`."""

import numpy as np

from cygrad._kernels.cpu.signal.fourier import halved
from cygrad._kernels.device.cupy_library import cupy


def _single(a):
    """Convert half precision to float32, since CuPy would return complex128 for bfloat16."""
    return a.astype(np.float32) if a.dtype.itemsize == 2 and a.dtype.kind in "fV" else a


def _aligned(a):
    """Copy real numbers unless their address suits cuFFT, which reads them in pairs."""
    return a.copy() if a.data.ptr % (2 * a.dtype.itemsize) else a


def c2c(a, dims, norm, forward):
    """Transform along `dims`, or apply the inverse transform."""
    a = _single(a)
    if not dims or not a.size:
        return a.astype(np.result_type(a.dtype, np.complex64))
    transform = cupy().fft.fftn if forward else cupy().fft.ifftn
    return transform(a, axes=dims, norm=norm)


def r2c(a, dims, norm, onesided):
    """Transform real numbers; `onesided` keeps the first half of the last dimension."""
    a = _single(a)
    if not onesided or not a.size:
        return _whole(a, dims, norm, onesided)
    return cupy().fft.rfftn(_aligned(a), axes=dims, norm=norm)


def _whole(a, dims, norm, onesided):
    found = c2c(a, dims, norm, True)
    if not onesided:
        return found
    half = (slice(None),) * dims[-1] + (slice(a.shape[dims[-1]] // 2 + 1),)
    return cupy().ascontiguousarray(found[half])


def c2r(a, dims, norm, length, pairs=1):
    """Real inverse of the one-sided transform; `length` is the size of the last of `dims` in the result."""
    if pairs != 1:
        a = a * halved(length, pairs, a, dims[-1], a.real.dtype)
    lengths = [a.shape[dim] for dim in dims[:-1]] + [length]
    if not a.size:
        shape = list(a.shape)
        shape[dims[-1]] = length
        return cupy().empty(shape, a.real.dtype)
    return cupy().fft.irfftn(a, lengths, dims, norm)
