"""Discrete Fourier transforms on GPUs, by cuFFT; the arguments are those of `_kernels/fourier.py`."""

import numpy as np

from cygrad._kernels.cpu.signal.fourier import halved
from cygrad._kernels.device.cupy_library import cupy


def _single(a):
    """Half precision as float32: of bfloat16 CuPy would make complex128."""
    return a.astype(np.float32) if a.dtype.itemsize == 2 and a.dtype.kind in "fV" else a


def c2c(a, dims, norm, forward):
    """The transform along `dims`, or its inverse."""
    a = _single(a)
    if not dims or not a.size:
        return a.astype(np.result_type(a.dtype, np.complex64))
    transform = cupy().fft.fftn if forward else cupy().fft.ifftn
    return transform(a, axes=dims, norm=norm)


def r2c(a, dims, norm, onesided):
    """The transform of real numbers, of whose last dimension `onesided` keeps the first half."""
    a = _single(a)
    return cupy().fft.rfftn(a, axes=dims, norm=norm) if onesided and a.size else _whole(a, dims, norm, onesided)


def _whole(a, dims, norm, onesided):
    found = c2c(a, dims, norm, True)
    if not onesided:
        return found
    half = (slice(None),) * dims[-1] + (slice(a.shape[dims[-1]] // 2 + 1),)
    return cupy().ascontiguousarray(found[half])


def c2r(a, dims, norm, length, pairs=1):
    """The real inverse of the one-sided transform; `length` is that of the last of `dims`."""
    if pairs != 1:
        a = a * halved(length, pairs, a, dims[-1], a.real.dtype)
    lengths = [a.shape[dim] for dim in dims[:-1]] + [length]
    if not a.size:
        shape = list(a.shape)
        shape[dims[-1]] = length
        return cupy().empty(shape, a.real.dtype)
    return cupy().fft.irfftn(a, lengths, dims, norm)
