"""Reductions on GPUs; the arguments are those of `_kernels/reduce.pyx`."""

import numpy as np

from cygrad._kernels.gpu.elementwise import choose
from cygrad._kernels.gpu.library import cupy

_TYPES: dict = {np.dtype(char).num: np.dtype(char) for char in "?bBhHiIlLqQefdFD"}


def sum(a, axes=None, keepdim=False, dtype=None):
    """The sum over `axes`, None for all; whole numbers and truth values are summed as int64."""
    return _summed(cupy().sum, a, axes, _type(dtype) or _wide(a), keepdim)


def prod(a, axes=None, keepdim=False, dtype=None):
    """The product, likewise."""
    return _summed(cupy().prod, a, axes, _type(dtype) or _wide(a), keepdim)


def _summed(function, a, axes, dtype, keepdim=False):
    """A sum of half precision is added up in single: CuPy adds up float16 by itself where CUB does the work."""
    if dtype.itemsize == 2 and dtype.kind in "fV":
        return function(a, axes, np.float32, keepdims=keepdim).astype(dtype)
    return function(a, axes, dtype, keepdims=keepdim)


def _type(dtype):
    """A type that may be given by its number, -1 for none."""
    return _TYPES.get(dtype) if isinstance(dtype, int) else dtype


def _wide(a):
    return np.dtype(np.int64) if a.dtype.kind in "biu" else a.dtype


def mean(a, axes=None, keepdim=False, dtype=None):
    """The mean over `axes`; nan of no elements."""
    return _summed(cupy().mean, a, axes, _type(dtype) or a.dtype, keepdim)


def sum_to(a, shape):
    """The sum over what broadcasting would repeat to make `a` out of an array of `shape`."""
    before = a.ndim - len(shape)
    axes = tuple(range(before)) + tuple(
        before + i for i, length in enumerate(shape) if length == 1 and a.shape[before + i] != 1
    )
    return (_summed(cupy().sum, a, axes, a.dtype) if axes else a).reshape(shape)


def var(a, axes=None, correction=1, keepdim=False):
    """The sum of squares around the mean, divided by the number of elements less `correction`."""
    centred = a - cupy().mean(a, axes, keepdims=True)
    squares = centred.real**2 + centred.imag**2 if a.dtype.kind == "c" else centred * centred
    total = cupy().sum(squares, axes, keepdims=keepdim)
    count = a.size // max(total.size, 1)
    return total / max(count - correction, 0)


def norm(a, p=2, axes=None, keepdim=False):
    """(sum |a|^p)^(1/p); the largest and smallest |a| for p = inf and -inf, how many are not 0 for p = 0."""
    size = cupy().abs(a)
    if p == np.inf:
        return amax(size, axes, keepdim)
    if p == -np.inf:
        return amin(size, axes, keepdim)
    if p == 0:
        return cupy().sum(size != 0, axes, size.dtype, keepdims=keepdim)
    if p == 1:
        return cupy().sum(size, axes, size.dtype, keepdims=keepdim)
    if p == 2:
        return cupy().sqrt(cupy().sum(size * size, axes, size.dtype, keepdims=keepdim))
    return cupy().sum(size**p, axes, size.dtype, keepdims=keepdim) ** (1 / p)


def logsumexp(a, axes=None, keepdim=False):
    """log(sum(exp(a))), without overflow."""
    if not a.size:
        return cupy().log(cupy().sum(a, axes, keepdims=keepdim))
    largest = cupy().amax(a, axes, keepdims=True)
    largest = choose(cupy().isfinite(largest), largest, a.dtype.type(0))
    total = cupy().log(cupy().sum(cupy().exp(a - largest), axes, keepdims=keepdim))
    return total + largest.reshape(total.shape)


def amax(a, axes=None, keepdim=False):
    """The largest element; nan where there is one."""
    return cupy().amax(a, axes, keepdims=keepdim)


def amin(a, axes=None, keepdim=False):
    """The smallest element; nan where there is one."""
    return cupy().amin(a, axes, keepdims=keepdim)


def all_(a, axes=None, keepdim=False):
    """Whether no element is 0; bytes stay bytes."""
    return _as_bytes(a, cupy().all(a, axes, keepdims=keepdim))


def any_(a, axes=None, keepdim=False):
    """Whether some element is not 0; bytes stay bytes."""
    return _as_bytes(a, cupy().any(a, axes, keepdims=keepdim))


def _as_bytes(a, found):
    return found.astype(a.dtype) if a.dtype == np.uint8 else found
