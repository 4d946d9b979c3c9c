"""Bin counts and histograms."""

import math
from typing import Any

import numpy as np

from cygrad._kernels.cpu.base import chunks
from cygrad._kernels.cpu.base.arrays import private
from cygrad._kernels.cpu.base.numpy_fallback import silent
from cygrad._kernels.cpu.base.reduce import amax, amin
from cygrad._kernels.cpu.indexing.add_rows import counted
from cygrad._kernels.device.dispatch import dispatching


def bincount(weights, numbers, least):
    """Count each number, or sum its weights: in float32 for float32 weights, else in float64.

    The result has `least` elements: all numbers must be smaller.
    """
    if weights is None:
        found = counted(numbers, least)
        if found is not None:
            return found
    numbers = private(numbers)
    if numbers.size and amin(numbers) < 0:
        raise RuntimeError("bincount only supports 1-d non-negative integral inputs.")
    if weights is None:
        return np.bincount(numbers, minlength=least)
    found = np.bincount(numbers, weights, least)
    return found.astype(weights.dtype, copy=False) if weights.dtype == np.float32 else found


@silent
def count_evenly(array, bins, low, high):
    """Count the elements in equal bins of a range."""
    flat = array.reshape(-1)
    if flat.size <= chunks.SIZE:
        return _evenly(flat, bins, low, high).astype(array.dtype)
    starts = range(0, flat.size, chunks.SIZE)
    counts = (_evenly(flat[start : start + chunks.SIZE], bins, low, high) for start in starts)
    return sum(counts, np.zeros(bins, np.int64)).astype(array.dtype)


def _evenly(values, bins, low, high):
    values = private(values)
    if not values.size or not (amin(values) >= low and amax(values) <= high):  # NaN is in no bin
        values = values[(values >= low) & (values <= high)]
    places = ((values - values.dtype.type(low)) * bins / values.dtype.type(high - low)).astype(np.int64)
    return np.bincount(np.minimum(places, bins - 1), minlength=bins)


def _interval(values, edge, count):
    """The index of the bin that contains each value, if any does; the last bin includes its end."""
    step = (edge[-1] - edge[0]) / count
    if count < 4 or not (np.abs(edge[1:] - edge[:-1] - step) <= 1e-3 * abs(step)).all():
        return np.minimum(np.searchsorted(edge, values, "right") - 1, count - 1)
    # evenly spaced edges: guess, then correct by one
    places = np.clip((values - edge[0]) / step, 0, count - 1).astype(np.int64)
    places -= values < edge[places]
    places += values >= edge[places + 1]
    return np.minimum(places, count - 1)


@silent
def histogram(points, edges, weights, density):
    """Count the rows, or sum their weights, in the bins between the edges along each column."""
    edges = tuple(map(private, edges))
    shape = tuple(len(edge) - 1 for edge in edges)
    counts: Any = 0
    for start in range(0, max(len(points), 1), chunks.SIZE):
        part = slice(start, start + chunks.SIZE)
        counts = counts + _counts(private(points[part]), edges, shape, None if weights is None else weights[part])
    found = counts.reshape(shape).astype(points.dtype)
    if density:
        np.divide(found, found.sum(), out=found)  # without dimensions, too, an array
        for d, edge in enumerate(edges):
            found = found / np.diff(edge).reshape((-1,) + (1,) * (len(shape) - 1 - d))
    return found


def _counts(points, edges, shape, weights):
    """`histogram` counts for some of the rows, flattened."""
    inside = np.ones(len(points), bool)
    flat = np.zeros(len(points), np.int64)
    for values, edge, count in zip(points.T, edges, shape):
        inside &= (values >= edge[0]) & (values <= edge[-1])
        flat = flat * count + _interval(values, edge, count)
    if not inside.all():
        flat, weights = flat[inside], None if weights is None else weights[inside]
    return np.bincount(flat, weights, math.prod(shape))


dispatching(globals(), "bincount count_evenly histogram")
