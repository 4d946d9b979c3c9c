"""Discrete Fourier transforms on GPUs, by cuFFT; takes the arguments of `_kernels/cpu/signal/fourier.py`.

cuFFT uses up the input of a transform to real numbers as its workspace. Such a transform therefore only ever gets an
array that nobody else can have: one that was made here.
"""

import math

import numpy as np

from cygrad._kernels.cpu.signal.fourier import halved
from cygrad._kernels.device.cupy_library import cupy
from cygrad._kernels.gpu.libraries.cufft import transform

MOST_DIMS = 3  # of one transform of cuFFT


def c2c(a, dims, norm, forward):
    """Transform along `dims`, or apply the inverse transform."""
    if not dims or not a.size:
        return a.astype(_complex(a.dtype), order="C")
    found = _along(_single(a), sorted(dims), _complex(a.dtype), forward)
    return _scaled(found, norm, forward, _points(a, dims))


def r2c(a, dims, norm, onesided):
    """Transform real numbers; `onesided` keeps the first half of the last dimension."""
    if not onesided or not a.size:
        return _whole(a, dims, norm, onesided)
    a = _single(a)
    before, group = _last_group(dims)
    moved, is_at_end, _ = _moved(a, group, a.dtype)
    if moved.data.ptr % (2 * moved.dtype.itemsize):  # cuFFT reads real numbers in pairs
        moved = moved.copy()
    found = _back(transform(moved, len(group), is_at_end, "r2c"), group, is_at_end)
    found = _along(found, before, found.dtype, True, is_own=True)
    return _scaled(found, norm, True, _points(a, dims))


def _whole(a, dims, norm, onesided):
    found = c2c(a, dims, norm, True)
    if not onesided:
        return found
    half = (slice(None),) * dims[-1] + (slice(a.shape[dims[-1]] // 2 + 1),)
    return cupy().ascontiguousarray(found[half])


def c2r(a, dims, norm, length, pairs=1):
    """Real inverse of the one-sided transform; `length` is the size of the last of `dims` in the result."""
    kind = _complex(a.dtype)
    if not a.size:
        return cupy().empty([length if d == dims[-1] else n for d, n in enumerate(a.shape)], kind.char.lower())
    a, is_own = _single(a), False
    if pairs != 1:
        a, is_own = a * halved(length, pairs, a, dims[-1], a.real.dtype), True
    before, group = _last_group(dims)
    if before:
        a, is_own = _along(a, before, kind, False, is_own), True
    moved, is_at_end, _ = _moved(a, group, kind, copy=not is_own)
    found = _back(transform(moved, len(group), is_at_end, "c2r", length, is_own=True), group, is_at_end)
    return _scaled(found, norm, False, _points(found, dims))


def _single(a):
    """Convert half precision to float32, since CuPy would return complex128 for bfloat16."""
    return a.astype(np.float32) if a.dtype.itemsize == 2 and a.dtype.kind in "fV" else a


def _complex(dtype):
    """The dtype of complex results for numbers of a dtype."""
    return np.dtype("F") if dtype.itemsize == 2 and dtype.kind in "fV" else np.result_type(dtype, np.complex64)


def _points(a, dims):
    return math.prod(a.shape[d] for d in dims)


def _scaled(a, norm, forward, points):
    """Scale a result in place."""
    if norm == "ortho":
        a *= 1 / math.sqrt(points)
    elif (norm == "backward") != forward:
        a *= 1 / points
    return a


def _last_group(dims):
    """Split dimensions into those to transform apart, ascending, and a group to transform at once with the last."""
    before = sorted(dims[:-1])
    split = max(len(before) - MOST_DIMS + 1, 0)
    return before[:split], (*before[split:], dims[-1])


def _along(a, dims, kind, forward, is_own=False):
    """Transform along ascending `dims`, in place if `is_own`, with results of dtype `kind`."""
    while dims:
        group, dims = tuple(dims[-MOST_DIMS:]), dims[:-MOST_DIMS]
        moved, is_at_end, is_copy = _moved(a, group, kind)
        found = transform(moved, len(group), is_at_end, "c2c", None, forward, is_own or is_copy)
        a, is_own = _back(found, group, is_at_end), True
    return a


def _moved(a, group, kind, copy=False):
    """Return (the array in C order and of dtype `kind`, whether `group` is at its end, whether it is new memory).

    Dimensions that are neither the last nor the first become the last.
    """
    first, is_at_end = a.ndim - len(group), True
    if group == tuple(range(len(group))) and first:
        is_at_end = False
    elif group != tuple(range(first, a.ndim)):
        a = cupy().moveaxis(a, group, range(first, a.ndim))
    dense = a.astype(kind, order="C") if copy or a.dtype != kind else cupy().ascontiguousarray(a)
    return dense, is_at_end, dense.data.ptr != a.data.ptr


def _back(a, group, is_at_end):
    """Undo the moving of `_moved`."""
    places = tuple(range(a.ndim - len(group), a.ndim))
    return cupy().moveaxis(a, places, group) if is_at_end and group != places else a
