"""Counts and histograms on GPUs; see `_kernels/cpu/reduction/histograms.py`."""

import math

import numpy as np

from cygrad._kernels.device.cupy_library import cupy
from cygrad._kernels.gpu.indexing.scatter import add_rows
from cygrad._kernels.gpu.reduction.searching import searchsorted


def bincount(weights, numbers, least):
    """Count occurrences of each number, or sum their weights. Waits for the GPU to find the largest number."""
    if weights is None:
        return cupy().bincount(numbers, None, least).astype(np.int64, copy=False)
    found = cupy().bincount(numbers, weights, least)
    return found.astype(weights.dtype, copy=False) if weights.dtype == np.float32 else found


def _counted(places, weights, count):
    """Count, or sum the weights of, the places equal to each number below `count`; others are ignored."""
    out = cupy().zeros((count, 1), np.int64 if weights is None else np.float64)
    ones = cupy().ones((places.size, 1), np.int64) if weights is None else weights.reshape(-1, 1)
    add_rows(out, places.reshape(-1), ones)
    return out[:, 0]


def count_evenly(array, bins, low, high):
    """Count elements in equal bins of a range."""
    flat = array.reshape(-1)
    first, width = array.dtype.type(low), array.dtype.type(high - low)
    inside = (flat >= first) & (flat <= array.dtype.type(high))
    places = (cupy().where(inside, flat - first, array.dtype.type(0)) * bins / width).astype(np.int64)
    places = cupy().where(inside, cupy().minimum(places, bins - 1), -1)
    return _counted(places, None, bins).astype(array.dtype)


def histogram(points, edges, weights, density):
    """Count rows, or sum their weights, in the bins between the edges of each column."""
    shape = tuple(len(edge) - 1 for edge in edges)
    inside = cupy().ones(len(points), bool)
    flat = cupy().zeros(len(points), np.int64)
    for values, edge, count in zip(points.T, edges, shape):
        inside &= (values >= edge[0]) & (values <= edge[-1])
        flat = flat * count + cupy().minimum(searchsorted(edge, values, "right") - 1, count - 1)
    counts = _counted(cupy().where(inside, flat, -1), weights, math.prod(shape))
    found = counts.reshape(shape).astype(points.dtype)
    if density:
        found = found / found.sum()
        for d, edge in enumerate(edges):
            found = found / cupy().diff(edge).reshape((-1,) + (1,) * (len(shape) - 1 - d))
    return found
