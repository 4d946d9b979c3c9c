"""Forms of the kernels in `cpu/image`: convolution, windows, pooling, sampling at grids, resampling."""

import math

import numpy as np

from cygrad._kernels.meta.array import ndarray


def correlate(kernel, x, w, b, where, groups):
    return ndarray((len(x), len(w), *where.size), x.dtype)


def spread(kernel, g, w, b, where, groups):
    return ndarray((len(g), w.shape[1] * groups, *where.image), g.dtype)


def filter_gradient(kernel, x, g, where, groups):
    return ndarray((g.shape[1], x.shape[1] // groups, *where.kernel), x.dtype)


def unfold(kernel, x, where):
    return ndarray((len(x), x.shape[1] * math.prod(where.kernel), math.prod(where.size)), x.dtype)


def fold(kernel, columns, where):
    return ndarray((len(columns), columns.shape[1] // math.prod(where.kernel), *where.image), columns.dtype)


def of_windows(kernel, x, where, with_places):
    shape = x.shape[: x.ndim - len(where.size)] + where.size
    return ndarray(shape, x.dtype), ndarray(shape, np.int64) if with_places else None


def of_places(kernel, x, dims, indices):
    shape = (*x.shape[: x.ndim - dims], *(table.shape[-2] for table in indices))
    return ndarray(shape, x.dtype), ndarray(shape, np.int64)


def unpooled(kernel, planes, places, count):
    return ndarray((len(planes), count), planes.dtype)


def sample(kernel, x, grid, *how):
    return ndarray((*x.shape[:2], *grid.shape[1:-1]), x.dtype)


def take_columns(kernel, x, places):
    return ndarray((*x.shape[:2], places.shape[1]), x.dtype)


def add_columns(kernel, g, places, size):
    return ndarray((*g.shape[:2], size), g.dtype)


def mapped(kernel, a, tables, divisor, back):
    first = a.ndim - len(tables)
    sizes = [n if t is None else t.size if back else len(t) for n, t in zip(a.shape[first:], tables)]
    return ndarray((*a.shape[:first], *sizes), a.dtype)
