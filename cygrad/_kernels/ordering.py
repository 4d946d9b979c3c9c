"""Orders along an axis. nan counts as larger than all numbers, and equal elements keep their order."""

import numpy as np


def sorted_along(a, axis, descending=False):
    """(the elements in order along an axis, their indices)."""
    if descending:
        values, order = sorted_along(np.flip(a, axis), axis)
        last = a.shape[axis] - 1
        return np.ascontiguousarray(np.flip(values, axis)), np.ascontiguousarray(np.flip(last - order, axis))
    if a.dtype.kind == "f":
        # NumPy's vectorised sort is several times faster and knows no order of equals: seldom are there any.
        order = np.argsort(a, axis)
        values = np.take_along_axis(a, order, axis)
        _repair(*(np.moveaxis(array, axis, -1) for array in (a, values, order)))
        return values, order
    order = np.argsort(a, axis, kind="stable")
    return np.take_along_axis(a, order, axis), order


def _repair(a, values, order):
    """Sort the rows with equal elements again, so that these keep their order; a nan may have others beside it."""
    again = ~(values[..., 1:] > values[..., :-1]).all(-1)
    if again.any():
        rows = a[again]
        order[again] = stable = np.argsort(rows, -1, kind="stable")
        values[again] = np.take_along_axis(rows, stable, -1)


def middle_along(a, axis):
    """The index of the lower median along an axis, nans apart; 0 for an axis of length 0."""
    one = a.shape[:axis] + (1,) + a.shape[axis + 1 :]
    length = a.shape[axis]
    if not a.size:
        return np.zeros(one, np.int64)
    missing = np.isnan(a).sum(axis, keepdims=True) if a.dtype.kind == "f" else 0
    if not np.any(missing):
        place = (length - 1) // 2
        return np.take(np.argpartition(a, place, axis), [place], axis)
    places = np.maximum(length - missing - 1, 0) // 2
    return np.take_along_axis(np.argsort(a, axis, kind="stable"), places, axis)
