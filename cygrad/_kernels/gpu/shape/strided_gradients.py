"""Gradients of views that contain one memory location several times, on GPUs; see `cpu/shape/strided_gradients.py`."""

import numpy as np

from cygrad._kernels.cpu.base.half_sums import sum_type
from cygrad._kernels.cpu.shape.strided_gradients import extent, extent_of_both
from cygrad._kernels.device.cupy_library import cupy
from cygrad._kernels.gpu.indexing.scatter import add_rows


def sum_by_place(g, view, base):
    """Sum the elements of `g` at each location, and divide each sum equally among the elements of `base` there."""
    low, high = extent_of_both(g.dtype, view, base)
    reach = (high - low) // g.dtype.itemsize
    return _shares(_sums(g, _numbers(view[0], view[1], view[2], low, g.dtype.itemsize), reach), base, low, g.dtype)


def mean_by_place(a, base):
    """Transpose of dividing equally among the elements at one location: each gets their mean."""
    low, high = extent(base[0], base[1], a.dtype.itemsize)
    reach = (high - low) // a.dtype.itemsize
    return _shares(_sums(a, _numbers(base[0], base[1], 0, low, a.dtype.itemsize), reach), base, low, a.dtype)


def _shares(totals, base, low, dtype):
    places = _numbers(base[0], base[1], 0, low, dtype.itemsize)
    ones = cupy().ones(places.size, totals.real.dtype)
    return (totals[places] / _sums(ones, places, totals.size)[places]).astype(dtype, copy=False).reshape(base[0])


def _numbers(shape, strides, offset, low, itemsize):
    """Return, as a flat array, the index of each element in the memory that begins at `low`."""
    places = cupy().full((), offset - low, np.int64)
    for length, stride in zip(shape, strides):
        places = places[..., None] + cupy().arange(length) * stride
    return places.reshape(-1) // itemsize


def _sums(values, places, reach):
    totals = cupy().zeros((max(reach, 1), 1), sum_type(values.dtype))
    add_rows(totals, places, values.reshape(-1, 1))
    return totals[:, 0]
