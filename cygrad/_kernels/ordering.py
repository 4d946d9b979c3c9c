"""Orders along an axis. nan counts as larger than all numbers, and equal elements keep their order.

Large arrays are taken part by part, as indices have eight bytes each and NumPy copies what it sorts.
"""

import numpy as np

from cygrad._kernels.stacks import along


def one(a, axis):
    """The shape with length 1 along an axis."""
    return a.shape[:axis] + (1,) + a.shape[axis + 1 :]


# -- of all elements ------------------------------------------------------------------------------


@along
def sorted_along(a, axis, descending=False):
    """(the elements in order along an axis, their indices)."""
    return _sorted(a, axis, descending)


def _sorted(a, axis, descending):
    if descending:
        values, order = _sorted(np.flip(a, axis), axis, False)
        np.subtract(a.shape[axis] - 1, order, out=order)
        return np.ascontiguousarray(np.flip(values, axis)), np.ascontiguousarray(np.flip(order, axis))
    if a.dtype.kind == "f":
        # NumPy's vectorised sort is several times faster and knows no order of equals: seldom are there any.
        order = np.argsort(a, axis)
        values = np.take_along_axis(a, order, axis)
        if _repair(*(np.moveaxis(array, axis, -1) for array in (a, values, order))):
            return values, order
        del values, order
    order = np.argsort(a, axis, kind="stable")
    return np.take_along_axis(a, order, axis), order


def _repair(a, values, order):
    """Sort the rows with equal elements again, so that these keep their order; False where all are to be sorted again.

    A nan may have others beside it.
    """
    again = ~(values[..., 1:] > values[..., :-1]).all(-1)
    if again.all():
        return False
    if again.any():
        rows = a[again]
        order[again] = stable = np.argsort(rows, -1, kind="stable")
        values[again] = np.take_along_axis(rows, stable, -1)
    return True


# -- of some --------------------------------------------------------------------------------------


@along
def first_along(a, axis, k, largest):
    """(the k largest or smallest elements along an axis, in order, their indices)."""
    n = a.shape[axis]
    if not 0 < k < n // 8:
        return tuple(np.take(found, range(k), axis) for found in _sorted(a, axis, largest))
    part = np.argpartition(a, n - k if largest else k - 1, axis)  # much fewer than all: no need to sort the rest
    part = np.sort(np.take(part, range(n - k, n) if largest else range(k), axis), axis)
    values, order = _sorted(np.take_along_axis(a, part, axis), axis, largest)
    return values, np.take_along_axis(part, order, axis)


@along
def kth_along(a, axis, k):
    """The index of the k-th smallest element along an axis, counted from 0; 0 if there are no elements."""
    return np.take(np.argpartition(a, k, axis), [k], axis) if a.size else np.zeros(one(a, axis), np.int64)


@along
def median_along(a, axis):
    """The index of the lower median along an axis; where there is a nan, of the first."""
    order = middle_along(a, axis)
    if a.dtype.kind != "f" or not a.shape[axis]:
        return order
    is_nan = np.isnan(a)
    return np.where(is_nan.any(axis, keepdims=True), np.argmax(is_nan, axis, keepdims=True), order)


@along
def middle_along(a, axis):
    """The index of the lower median along an axis, nans apart; 0 for an axis of length 0."""
    length = a.shape[axis]
    if not a.size:
        return np.zeros(one(a, axis), np.int64)
    missing = np.isnan(a).sum(axis, keepdims=True) if a.dtype.kind == "f" else 0
    if not np.any(missing):
        place = (length - 1) // 2
        return np.take(np.argpartition(a, place, axis), [place], axis)
    places = np.maximum(length - missing - 1, 0) // 2
    return np.take_along_axis(np.argsort(a, axis, kind="stable"), places, axis)


@along
def most_frequent(a, axis):
    """The index of the last of the most frequent elements along an axis; of several, the smallest."""
    if not a.size:
        return np.zeros(one(a, axis), np.int64)
    order = np.argsort(a, axis, kind="stable")
    ordered = np.moveaxis(np.take_along_axis(a, order, axis), axis, -1)
    places = np.arange(ordered.shape[-1])
    begins = np.ones(ordered.shape, bool)
    np.not_equal(ordered[..., 1:], ordered[..., :-1], out=begins[..., 1:])
    del ordered
    lengths = np.where(begins, places, 0)
    np.maximum.accumulate(lengths, -1, out=lengths)
    np.subtract(places, lengths, out=lengths)
    last = np.moveaxis(np.argmax(lengths, -1, keepdims=True), -1, axis)
    return np.take_along_axis(order, last, axis)
