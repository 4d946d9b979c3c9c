"""Sums and differences of elements a fixed distance apart along an axis, and the transposes of these linear maps."""

import numpy as np

from cygrad._kernels.cpu.base.arrays import new_array
from cygrad._kernels.cpu.base.elementary import ADD, DIVIDE, MULTIPLY, SUBTRACT
from cygrad._kernels.cpu.base.reduce import sum as sum_of_array
from cygrad._kernels.cpu.base.stack_chunks import cut, parts_of
from cygrad._kernels.cpu.indexing.axis_ops import cumsum_within

COMBINE = {1: ADD, -1: SUBTRACT}


def _shifted(a, axis, apart):
    """Return views of all but the first and all but the last `apart` elements along the axis."""
    return cut(a, slice(apart, None), axis), cut(a, slice(a.shape[axis] - apart), axis)


def of_neighbours(a, axis, sign):
    """`a[i + 1] + sign * a[i]` along an axis."""
    return COMBINE[sign](*_shifted(a, axis, 1))


def to_neighbours(g, axis, sign):
    """The transpose of `of_neighbours`."""
    out = _longer(g, axis, 1)
    after, before = _shifted(out, axis, 1)
    after[...] = g
    COMBINE[sign](before, g, out=before)
    return out


def _longer(g, axis, count):
    """An array with `count` more elements along the axis. The first `count` are 0, the others uninitialized."""
    out = new_array((*g.shape[:axis], g.shape[axis] + count, *g.shape[axis + 1 :]), g.dtype.num)
    cut(out, slice(count), axis)[...] = 0
    return out


def integrals(a, axis, factor, count):
    """Trapezoidal rule: `factor` times the sum of all `count` elements along the axis, both ends weighted by half."""
    ends = COMBINE[1](_one(a, axis, 0), _one(a, axis, -1))
    MULTIPLY(ends, 0.5, out=ends)
    COMBINE[-1](sum_of_array(a, (axis,), True), ends, out=ends)
    return MULTIPLY(ends, factor, out=ends).squeeze(axis)


def from_integrals(g, axis, factor, count):
    """The transpose of `integrals`."""
    g = np.expand_dims(g, axis)
    out = new_array((*g.shape[:axis], count, *g.shape[axis + 1 :]), g.dtype.num)
    out[...] = g
    MULTIPLY(out, factor, out=out)
    for place in (0, -1):
        end = _one(out, axis, place)
        MULTIPLY(end, 0.5, out=end)
    return out


def running_integrals(a, axis, factor):
    """The cumulative sums of `factor * (a[i + 1] + a[i])`."""
    sums = of_neighbours(a, axis, 1)
    MULTIPLY(sums, factor, out=sums)
    cumsum_within(sums, axis)
    return sums


def from_running_integrals(g, axis, factor):
    """The transpose: cumulative sums from the end of sums of neighbors; the first element counts half."""
    out = to_neighbours(g, axis, 1)
    MULTIPLY(out, factor, out=out)
    cumsum_within(out, axis, True)
    first = cut(out, slice(1), axis)
    MULTIPLY(first, 0.5, out=first)
    return out


# weights of the first three elements, by order of the difference
ENDS = {1: (-1, 1, 0), 2: (-1.5, 2, -0.5)}


def central_differences(a, axis, step, order):
    """`(a[i + 1] - a[i - 1]) / (2 * step)`, with one-sided differences of that order at both ends."""
    out = new_array(a.shape, a.dtype.num)
    inner = cut(out, slice(1, -1), axis)
    COMBINE[-1](*_shifted(a, axis, 2), out=inner)
    DIVIDE(inner, 2 * step, out=inner)
    for here, sign in ((0, 1), (-1, -1)):
        end = _one(out, axis, here)
        end[...] = 0
        for k, w in enumerate(ENDS[order]):
            if w:
                end += _one(a, axis, here + sign * k) * (sign * w / step)
    return out


def from_central_differences(g, axis, step, order):
    """The transpose of `central_differences`."""
    out = new_array(g.shape, g.dtype.num)
    cut(out, slice(2), axis)[...] = 0
    after, before = _shifted(out, axis, 2)
    inner = cut(g, slice(1, -1), axis)
    after[...] = inner
    COMBINE[-1](before, inner, out=before)
    DIVIDE(out, 2 * step, out=out)
    for here, sign in ((0, 1), (-1, -1)):
        for k, w in enumerate(ENDS[order]):
            if w:
                place = _one(out, axis, here + sign * k)
                place += _one(g, axis, here) * (sign * w / step)
    return out


def each_difference(a, axes, steps, order):
    """Central differences along several axes."""
    return tuple(central_differences(a, axis, step, order) for axis, step in zip(axes, steps))


def from_each_difference(grads, axes, steps, order):
    """The transpose of `each_difference`."""
    total = None
    for g, axis, step in zip(grads, axes, steps):
        if g is None:
            continue
        if total is None:
            total = from_central_differences(g, axis, step, order)
            continue
        lengths = np.array(g.shape)
        lengths[axis] = 1
        for part in parts_of([slice(None)] * g.ndim, lengths, g.size):
            place = total[part]
            COMBINE[1](place, from_central_differences(g[part], axis, step, order), out=place)
    return total


def _one(a, axis, place):
    """A slice of one element along the axis; negative places count from the end."""
    place %= a.shape[axis]
    return cut(a, slice(place, place + 1), axis)
