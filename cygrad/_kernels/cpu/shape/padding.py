"""Padding and cropping of axes. Counts are (before, after) for the last axis, then the one before it, ..."""

from functools import lru_cache

import numpy as np

from cygrad._kernels.cpu.base import chunks
from cygrad._kernels.cpu.base.arrays import fill
from cygrad._kernels.cpu.base.copying import contiguous, copy_into, empty_of
from cygrad._kernels.cpu.base.numpy_fallback import silent
from cygrad._kernels.cpu.base.stack_chunks import along
from cygrad._kernels.cpu.indexing import scatter
from cygrad._kernels.tape.calls import noted

MODES = ("reflect", "replicate", "circular")
MOST_APART = 7  # positions that are copied one by one


@noted
def constant(array, counts, value):
    """Pad with `value`."""
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
    """Return (padded shape, slices that are kept or None for all, slices where they go)."""
    lengths, source, target = list(shape), [slice(None)] * len(shape), [slice(None)] * len(shape)
    for axis, before, after in _each_axis(len(shape), counts):
        lengths[axis] += before + after
        source[axis] = slice(max(-before, 0), shape[axis] + min(after, 0))
        target[axis] = slice(max(before, 0), lengths[axis] - max(after, 0))
    return tuple(lengths), (*source, ...) if min(counts, default=0) < 0 else None, (*target, ...)


def _each_axis(ndim, counts):
    for i, pair in enumerate(zip(counts[::2], counts[1::2])):
        yield ndim - 1 - i, *pair


@noted
def by_elements(array, mode, counts):
    """Pad with elements of the array."""
    if array.size <= chunks.FEW and isinstance(array, np.ndarray):
        for axis, before, after in _each_axis(array.ndim, counts):
            array = array.take(_few_places(mode, array.shape[axis], before, after), axis)
        return array
    if min(counts) < 0 or not isinstance(array, np.ndarray):  # added elements may mirror removed ones
        for axis, before, after in _each_axis(array.ndim, counts):
            array = np.take(array, _places(mode, array.shape[axis], before, after, array), axis)
        return array
    shape, middle = list(array.shape), [slice(None)] * array.ndim
    for axis, before, after in _each_axis(array.ndim, counts):
        shape[axis] += before + after
        middle[axis] = slice(before, before + array.shape[axis])
    out = empty_of(shape, array)
    copy_into(out[(*middle, ...)], array)
    # chunked along the first dimension: NumPy makes a copy if it cannot tell that source and target do not overlap
    step = max(1, len(out) * chunks.SIZE // max(out.size, 1)) if shape[0] == array.shape[0] else len(out)
    for start in range(0, len(out), step):
        middle[0] = slice(start, start + step) if step < len(out) else middle[0]
        _fill(out, middle, array.shape, mode, counts)
    return out


def _fill(out, middle, shape, mode, counts):
    """Copy the added elements around the middle, axis by axis."""
    for axis, before, after in _each_axis(len(shape), counts):
        for target, source in _edges(mode, shape[axis], before, after):
            out[(*middle[:axis], target)] = out[(*middle[:axis], source)]


@lru_cache(64)
def _edges(mode, length, before, after):
    """Pairs (target, source) to copy outside the middle: slices, or single positions if few, for longer inner loops."""
    end = before + length
    total = end + after
    if mode == "reflect":
        last = end - 2 - after
        sources = slice(2 * before, before, -1), slice(end - 2, last if last >= 0 else None, -1)
    elif mode == "replicate":
        sources = slice(before, before + 1), slice(end - 1, end)
    else:
        sources = slice(length, length + before), slice(before, before + after)
    pairs = list(zip((slice(0, before), slice(end, total)), sources))
    if before + after > MOST_APART:
        return [pair for pair in pairs if pair[0].start < pair[0].stop]
    places = range(total)
    return [
        (place, places[source][k % max(len(places[source]), 1)])
        for target, source in pairs
        for k, place in enumerate(places[target])
    ]


def sum_back(values, mode, counts, shape):
    """Zeros of `shape` with `values` added at the positions that `by_elements` would have read."""
    return _sum_back(values, [axis for axis, *_ in _each_axis(len(shape), counts)], mode, counts, shape)


@along
def _sum_back(values, axes, mode, counts, shape):
    for axis, before, after in _each_axis(len(shape), counts):
        if min(before, after) >= 0 and isinstance(values, np.ndarray):
            values = _folded(values, axis, mode, before, shape[axis], after)
            continue
        zeros = np.zeros((*values.shape[:axis], shape[axis], *values.shape[axis + 1 :]), values.dtype, like=values)
        values = scatter.index_add(zeros, axis, _places(mode, shape[axis], before, after, values), values)
    return values


@silent
def _folded(values, axis, mode, before, length, after):
    """The middle along an axis, with the elements outside it added at the positions they were copied from."""
    here = (slice(None),) * axis
    out = contiguous(values[(*here, slice(before, before + length))])
    for target, source in _edges(mode, length, before, after):
        added = values[(*here, target)]
        if isinstance(source, int):
            out[(*here, source - before)] += added
            continue
        if mode == "replicate":
            added = added.sum(axis, keepdims=True)
        stop = None if source.stop is None or source.stop < before else source.stop - before
        out[(*here, slice(source.start - before, stop, source.step))] += added
    return out


def _places(mode, length, before, after, like):
    """The source index of each position along an axis, as an array on the device of `like`."""
    places = np.arange(-before, length + after, like=like)
    if mode == "circular":  # the remaining elements repeat
        first, last = max(-before, 0), length + min(after, 0)
        return first + (places - first) % max(last - first, 1)
    if mode == "replicate":
        return places.clip(0, length - 1)
    places = np.abs(places)
    return np.where(places >= length, 2 * (length - 1) - places, places)


@lru_cache(64)
def _few_places(mode, length, before, after):
    return _places(mode, length, before, after, None)
