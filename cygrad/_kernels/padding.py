"""Arrays with longer or shorter axes. Counts are (before, after) for the last axis, then the one before it, ..."""

from functools import lru_cache

import numpy as np

from cygrad._kernels import blocks, scatter
from cygrad._kernels.arrays import fill
from cygrad._kernels.copying import copy_into, empty_of
from cygrad._kernels.stacks import along

MODES = ("reflect", "replicate", "circular")


def constant(array, counts, value):
    """With `value` in the places that are added."""
    shape, source, target = _spans(array.shape, counts)
    out = empty_of(shape, array)
    if isinstance(out, np.ndarray):
        fill(out, value)
    else:
        out.fill(value)
    copy_into(out[target], array if source is None else array[source])
    return out


@lru_cache(256)
def _spans(shape, counts):
    """(the shape with more at the ends, what is kept or None for all, where that goes)."""
    lengths, source, target = list(shape), [slice(None)] * len(shape), [slice(None)] * len(shape)
    for axis, before, after in _each_axis(len(shape), counts):
        lengths[axis] += before + after
        source[axis] = slice(max(-before, 0), shape[axis] + min(after, 0))
        target[axis] = slice(max(before, 0), lengths[axis] - max(after, 0))
    return tuple(lengths), (*source, ...) if min(counts, default=0) < 0 else None, (*target, ...)


def _each_axis(ndim, counts):
    for i, pair in enumerate(zip(counts[::2], counts[1::2])):
        yield ndim - 1 - i, *pair


def by_elements(array, mode, counts):
    """With elements of the array in the places that are added."""
    if array.size <= blocks.FEW and isinstance(array, np.ndarray):
        for axis, before, after in _each_axis(array.ndim, counts):
            array = array.take(_few_places(mode, array.shape[axis], before, after), axis)
        return array
    if min(counts) < 0 or not isinstance(array, np.ndarray):  # some places mirror what is taken away
        for axis, before, after in _each_axis(array.ndim, counts):
            array = np.take(array, _places(mode, array.shape[axis], before, after, array), axis)
        return array
    shape, middle = list(array.shape), [slice(None)] * array.ndim
    for axis, before, after in _each_axis(array.ndim, counts):
        shape[axis] += before + after
        middle[axis] = slice(before, before + array.shape[axis])
    out = empty_of(shape, array)
    copy_into(out[(*middle, ...)], array)
    # what lies along the first dimension is taken in parts, as NumPy copies what it does not see to be apart
    step = max(1, len(out) * blocks.SIZE // max(out.size, 1)) if shape[0] == array.shape[0] else len(out)
    for start in range(0, len(out), step):
        middle[0] = slice(start, start + step) if step < len(out) else middle[0]
        _fill(out, middle, array.shape, mode, counts)
    return out


def _fill(out, middle, shape, mode, counts):
    """Put the elements that are added around the middle, axis by axis."""
    for axis, before, after in _each_axis(len(shape), counts):
        places = _places(mode, shape[axis], before, after, out) + before
        for target in (*range(before), *range(before + shape[axis], out.shape[axis])):
            out[(*middle[:axis], target)] = out[(*middle[:axis], places[target])]


def sum_back(values, mode, counts, shape):
    """Zeros of `shape` to which `values` are added where `by_elements` would have read them."""
    return _sum_back(values, [axis for axis, *_ in _each_axis(len(shape), counts)], mode, counts, shape)


@along
def _sum_back(values, axes, mode, counts, shape):
    for axis, before, after in _each_axis(len(shape), counts):
        zeros = np.zeros((*values.shape[:axis], shape[axis], *values.shape[axis + 1 :]), values.dtype, like=values)
        values = scatter.index_add(zeros, axis, _places(mode, shape[axis], before, after, values), values)
    return values


def _places(mode, length, before, after, like):
    """Which element stands where along an axis; an array beside another."""
    places = np.arange(-before, length + after, like=like)
    if mode == "circular":  # what is left comes round
        first, last = max(-before, 0), length + min(after, 0)
        return first + (places - first) % max(last - first, 1)
    if mode == "replicate":
        return places.clip(0, length - 1)
    places = np.abs(places)
    return np.where(places >= length, 2 * (length - 1) - places, places)


@lru_cache(64)
def _few_places(mode, length, before, after):
    return _places(mode, length, before, after, None)
