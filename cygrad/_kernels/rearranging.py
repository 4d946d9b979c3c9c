"""Repeating and moving the elements of arrays. All results are new arrays."""

import numpy as np

from cygrad._kernels.copying import copy


def repeat(array, times):
    """The whole array `times[i]` times along each axis; there may be more of them than axes."""
    return np.ascontiguousarray(np.tile(array, times)).reshape(_repeated_shape(array.shape, times))


def _repeated_shape(shape, times):
    shape = (1,) * (len(times) - len(shape)) + shape
    return tuple(length * count for length, count in zip(shape, times))


def sum_repeats(array, times, shape):
    """The sum of the copies that `repeat` makes of an array of that shape."""
    shape = (1,) * (len(times) - len(shape)) + shape
    interleaved = [length for pair in zip(times, shape) for length in pair]
    axes = tuple(range(0, 2 * len(shape), 2))
    return np.asarray(array.reshape(interleaved).sum(axes, dtype=array.dtype))


def flip(array, axes):
    """In reverse order along some axes."""
    return copy(np.asarray(np.flip(array, axes)))


def roll(array, shifts, axes):
    """Moved along axes, what leaves at one end coming in at the other; without axes the flat array is moved."""
    if not axes:
        return np.ascontiguousarray(np.roll(array, shifts[0])).reshape(array.shape)
    return np.ascontiguousarray(np.roll(array, shifts, axes))


def rot90(array, k, axes):
    """Turned by `k` right angles in the plane of two axes."""
    return copy(np.asarray(np.rot90(array, k, axes)))
