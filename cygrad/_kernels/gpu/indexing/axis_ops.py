"""Scans, placement and nonzero along axes on GPUs; takes the arguments of `_kernels/cpu/indexing/axis_ops.py`."""

import numpy as np

from cygrad._kernels.device.cupy_library import cupy
from cygrad._kernels.gpu.indexing.scatter import write_along


def cumsum(a, axis, reverse=False):
    """Cumulative sum along an axis, from the end if `reverse`. Half and single precision accumulate in double."""
    if a.ndim == 0:
        return a.copy()
    wide = a.astype(np.float64) if a.dtype.itemsize <= 4 and a.dtype.kind in "fV" else a
    found = cupy().flip(cupy().cumsum(cupy().flip(wide, axis), axis), axis) if reverse else cupy().cumsum(wide, axis)
    return cupy().ascontiguousarray(found.astype(a.dtype, copy=False))


def cumsum_within(a, axis):
    """Cumulative sum in place."""
    a[...] = cumsum(a, axis)


def cumprod(a, axis):
    """Cumulative product along an axis."""
    if a.ndim == 0:
        return a.copy()
    wide = a.astype(np.float32) if a.dtype.itemsize == 2 and a.dtype.kind in "fV" else a  # CuPy's lacks bfloat16
    return cupy().cumprod(wide, axis).astype(a.dtype, copy=False)


def cumprod_within(a, axis):
    """Cumulative product in place."""
    a[...] = cumprod(a, axis)


def place_along(values, index, shape, axis, keepdim):
    """Scatter `values` to the positions `index` along an axis of zeros of that shape; inverse of `select_along`."""
    if not shape:
        return values.copy()
    out = cupy().zeros(shape, values.dtype)
    if not keepdim:
        values, index = cupy().expand_dims(values, axis), cupy().expand_dims(index, axis)
    write_along(out, index, values, axis)
    return out


def nonzero(a):
    """Return the indices of nonzero elements, int64 (count, dimensions). Waits for the GPU to count them."""
    found = cupy().nonzero(cupy().atleast_1d(a))
    if a.ndim == 0:
        return cupy().empty((len(found[0]), 0), np.int64)
    return cupy().stack(found, 1)
