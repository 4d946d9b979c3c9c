"""Forms of the kernels in `cpu/signal`: Fourier transforms."""

from cygrad._kernels.meta.array import ndarray
from cygrad._kernels.meta.forms.describing import complex_type, real_type


def _resized(shape, dim, length):
    return (*shape[:dim], length, *shape[dim + 1 :])


def c2c(kernel, a, dims, norm, forward, is_own=False):
    return ndarray(a.shape, complex_type(a.dtype))


def r2c(kernel, a, dims, norm, onesided, length=None):
    last = dims[-1] if dims else 0
    shape = _resized(a.shape, last, a.shape[last] // 2 + 1) if onesided else a.shape
    return ndarray(shape, complex_type(a.dtype))


conjugate_of_r2c = r2c


def c2r(kernel, a, dims, norm, length, pairs=1, of_conjugate=False):
    return ndarray(_resized(a.shape, dims[-1], length), real_type(a.dtype))


def from_conjugate_of_r2c(kernel, g, dims, norm, onesided, length):
    return ndarray(_resized(g.shape, dims[-1], length) if onesided else g.shape, real_type(g.dtype))


def real_of_c2c(kernel, a, dims, norm, forward):
    return ndarray(a.shape, real_type(a.dtype))


def real_of_r2c(kernel, a, dims, norm):
    return ndarray(_resized(a.shape, dims[-1], a.shape[dims[-1]] // 2 + 1), real_type(a.dtype))


def windowed_r2c(kernel, sections, window, norm):
    return ndarray((*sections.shape[:-1], sections.shape[-1] // 2 + 1), complex_type(sections.dtype))
