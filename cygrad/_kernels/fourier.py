"""Discrete Fourier transforms of arrays, by NumPy's loops, in the precision of the input.

`norm` is NumPy's and PyTorch's word for the scale: "backward" scales the inverse transform by 1/n, "forward" the
forward one, "ortho" both by 1/sqrt(n).

The loops are called themselves where they are found, since `numpy.fft` hands them the scale 1 as an integer: that makes
them compute in double precision through buffers, at five times the time for complex64.
"""

import math
from typing import Any

import numpy as np

from cygrad._kernels.dispatch import dispatching
from cygrad._kernels.gpu.library import module_of
from cygrad._kernels.stacks import along

loops: Any = getattr(np.fft, "_pocketfft_umath", None)


# -- along one dimension ---------------------------------------------------------------------------


def _fft(a, dim, factor, forward, out):
    """The transform of complex numbers, or the inverse one, times `factor`; into `out`, which may be `a`."""
    if loops is None:
        return np.fft.fft(a, axis=dim) * factor if forward else np.fft.ifft(a, axis=dim, norm="forward") * factor
    loop = loops.fft if forward else loops.ifft
    return loop(a, factor, axes=[(dim,), (), (dim,)], out=out)


def _rfft(a, dim, factor):
    """The one-sided transform of real numbers, times `factor`."""
    if loops is None:
        return np.fft.rfft(a, axis=dim) * factor
    length = a.shape[dim]
    loop = loops.rfft_n_odd if length % 2 else loops.rfft_n_even
    out = np.empty(_resized(a.shape, dim, length // 2 + 1), _complex(a.dtype))
    return loop(a, factor, axes=[(dim,), (), (dim,)], out=out)


def _irfft(a, dim, factor, length):
    """The real inverse of `_rfft`, times `factor`."""
    if loops is None:
        return np.fft.irfft(a, length, dim, "forward") * factor
    out = np.empty(_resized(a.shape, dim, length), a.real.dtype)
    return loops.irfft(a, factor, axes=[(dim,), (), (dim,)], out=out)


def _resized(shape, dim, length):
    return (*shape[:dim], length, *shape[dim + 1 :])


def _complex(dtype):
    return np.result_type(dtype, np.complex64)


def _factor(norm, forward, points, dtype):
    """What the sum is multiplied with, in the type of the real parts."""
    if norm == "ortho":
        return dtype.type(1 / math.sqrt(points))
    return dtype.type(1 if (norm == "backward") == forward else 1 / points)


# -- along several ---------------------------------------------------------------------------------


def c2c(a, dims, norm, forward, is_own=False):
    """The transform along `dims`, or its inverse, which may overwrite `a` if that `is_own`."""
    kind = _complex(a.dtype)
    if a.dtype != kind or not dims:
        a = out = a.astype(kind, order="C")
    else:
        out = a if is_own and loops is not None else np.empty(a.shape, kind)
    factor = _factor(norm, forward, math.prod(a.shape[d] for d in dims), a.real.dtype)
    for dim in reversed(dims):
        a, factor = _fft(a, dim, factor, forward, out), a.real.dtype.type(1)
    return a


def r2c(a, dims, norm, onesided):
    """The transform of real numbers, of whose last dimension `onesided` keeps the first half."""
    if not onesided:
        return c2c(a, dims, norm, True)
    factor = _factor(norm, True, math.prod(a.shape[d] for d in dims), a.dtype)
    half = _rfft(a, dims[-1], factor)
    for dim in reversed(dims[:-1]):
        half = _fft(half, dim, half.real.dtype.type(1), True, half)
    return half


@along
def c2r(a, dims, norm, length, is_own=False):
    """The real inverse of the one-sided transform; `length` is that of the last of `dims`. See `c2c` for `is_own`."""
    factor = _factor(norm, False, math.prod(a.shape[d] for d in dims[:-1]) * length, a.real.dtype)
    a = c2c(a, dims[:-1], "forward", False, is_own) if len(dims) > 1 else a.astype(_complex(a.dtype), copy=False)
    return _irfft(a, dims[-1], factor, length)


def halved(length, by, beside, dim, dtype):
    """`by` for the frequencies that the one-sided transform keeps of a pair, 1 for the others; to multiply `beside`."""
    weights = module_of(beside).ones(length // 2 + 1, dtype)
    of_pairs(weights, 0, length)[...] = by
    return weights.reshape([-1 if i == dim else 1 for i in range(beside.ndim)])


def of_pairs(a, dim, length):
    """The frequencies that stand for two, along a dimension of a one-sided transform of that length."""
    return a[(slice(None),) * dim + (slice(1, (length + 1) // 2),)]


def lengthened(a, dim, length):
    """Zeros behind the elements along a dimension."""
    shape = list(a.shape)
    shape[dim] = length
    result = np.zeros(shape, a.dtype, like=a)
    result[(slice(None),) * dim + (slice(a.shape[dim]),)] = a
    return result


def frequencies(library, length, spacing, onesided):
    """The frequencies of a transform, in cycles per unit of `spacing`."""
    if onesided:
        steps = library.arange(length // 2 + 1)
    else:
        steps = library.arange(length)
        steps[(length + 1) // 2 :] -= length
    with np.errstate(all="ignore"):
        return steps * (np.float64(1) / np.float64(length * spacing))


dispatching(globals(), "r2c")
