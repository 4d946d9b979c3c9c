"""Repeat, flip, roll and rotate arrays. All results are new arrays except those of `reverse`."""

from functools import lru_cache

import numpy as np

from cygrad._kernels.cpu.base.copying import copy, copy_into, empty_of
from cygrad._kernels.device.cupy_library import as_array, dense
from cygrad._kernels.device.dispatch import dispatching
from cygrad._kernels.tape.calls import noted


@noted
def repeat(array, times):
    """Repeat the whole array `times[i]` times along each axis; `times` may have more entries than there are axes."""
    shape = (1,) * (len(times) - array.ndim) + array.shape
    interleaved = tuple(n for pair in zip(times, shape) for n in pair)
    once = tuple(n for length in shape for n in (1, length))
    result = empty_of(tuple(count * length for count, length in zip(times, shape)), array)
    copy_into(result.reshape(interleaved), array.reshape(once))
    return result


def sum_repeats(array, times, shape):
    """Sum the copies that `repeat` makes of an array of that shape."""
    out = empty_of(shape, array)
    shape = (1,) * (len(times) - len(shape)) + shape
    interleaved = [length for pair in zip(times, shape) for length in pair]
    array.reshape(interleaved).sum(tuple(range(0, 2 * len(shape), 2)), array.dtype, out.reshape(shape))
    return out


def flip(array, axes):
    """Reverse some axes."""
    return copy(as_array(reverse(array, axes)))


def reverse(array, axes):
    """A view with some axes reversed."""
    parts = [slice(None)] * array.ndim
    for axis in axes:
        parts[axis] = slice(None, None, -1)
    return array[tuple(parts)]


def roll(array, shifts, axes):
    """Shift elements cyclically along axes; without axes, in the flattened array."""
    if not isinstance(array, np.ndarray):
        return dense(np.roll(array, shifts, axes or None)).reshape(array.shape)
    if not axes:
        return roll(dense(array).reshape(-1), shifts, (0,)).reshape(array.shape)
    result = empty_of(array.shape, array)
    for source, target in parts_of(array.shape, shifts, axes):
        copy_into(result[target], array[source])
    return result


@lru_cache(256)
def parts_of(shape, shifts, axes):
    """Return (source slices, target slices) for each block of elements that is moved."""
    parts: list[tuple[tuple, tuple]] = [((), ())]
    totals = [0] * len(shape)
    for shift, axis in zip(shifts, axes):
        totals[axis] += shift
    for length, total in zip(shape, totals):
        shift = total % max(length, 1)
        whole = [(slice(0, length - shift), slice(shift, length)), (slice(length - shift, length), slice(0, shift))]
        parts = [((*a, c), (*b, d)) for a, b in parts for c, d in (whole if shift else whole[:1])]
    return parts


def rot90(array, k, axes):
    """Rotate by `k` right angles in the plane of two axes."""
    first, second = axes
    turned = array.swapaxes(first, second) if k % 2 else array
    return copy(as_array(reverse(turned, ((), (first,), axes, (second,))[k % 4])))


def repeated_indices(counts, total):
    """Repeat each index of a vector of counts as often as its count; their sum is `total`, None if unknown."""
    return np.repeat(np.arange(counts.size, dtype=counts.dtype), counts)


dispatching(globals(), "repeated_indices")
