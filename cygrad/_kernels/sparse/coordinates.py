"""Coordinates of sparse arrays: checks, order, merging, look-up, and conversion to compressed rows.

A coordinate tuple is handled as one number, its position in the sparse dimensions read in row-major order. Everything
here works on arrays in main memory and on GPUs.
"""

import math

import numpy as np


def positions(indices, lengths):
    """Return the position of each column of `indices` in an array whose dimensions have these lengths."""
    found = np.zeros(indices.shape[1], np.int64, like=indices)
    for row, length in zip(indices, lengths):
        found = found * length + row
    return found


def coordinates_of(places, lengths):
    """Return the indices (dimensions, n) of positions: the inverse of `positions`."""
    found = np.empty((len(lengths), len(places)), np.int64, like=places)
    for axis in range(len(lengths) - 1, -1, -1):
        found[axis] = places % max(lengths[axis], 1)
        places = places // max(lengths[axis], 1)
    return found


def grouped(indices, lengths):
    """Merge equal coordinates: return (the distinct ones in order, which of them each column is).

    The second is None if nothing needs to be merged or moved.
    """
    places = positions(indices, lengths)
    if _ascend(places):
        return indices, None
    order = np.argsort(places, kind="stable")
    ordered = places[order]
    is_new = np.concatenate([np.ones(1, bool, like=ordered), ordered[1:] != ordered[:-1]])
    groups = np.empty(len(places), np.int64, like=places)
    groups[order] = np.cumsum(is_new) - 1
    return indices[:, order[is_new]], groups


def _ascend(places):
    return len(places) < 2 or bool((places[1:] > places[:-1]).all())


def first_of_each(groups, count):
    """Return for each of `count` groups the first place at which it occurs."""
    found = np.empty(count, np.int64, like=groups)
    found[groups[::-1]] = np.arange(len(groups) - 1, -1, -1, like=groups)
    return found


def looked_up(indices, wanted, lengths):
    """Return where each column of `wanted` is among coalesced `indices`, and whether it is there at all."""
    known, places = positions(indices, lengths), positions(wanted, lengths)
    if not len(known):
        return np.zeros(len(places), np.int64, like=places), np.zeros(len(places), bool, like=places)
    found = np.minimum(np.searchsorted(known, places), len(known) - 1)
    return found, known[found] == places


def nonzero_coordinates(array, sparse_dim):
    """Return where the first `sparse_dim` dimensions of a dense array hold anything but zeros."""
    if not sparse_dim:
        return np.zeros((0, int(bool((array != 0).any()))), np.int64, like=array)
    rows = array.reshape(*array.shape[:sparse_dim], math.prod(array.shape[sparse_dim:]))
    found = np.nonzero((rows != 0).any(-1))
    return np.stack(found).astype(np.int64, copy=False)


# -- compressed rows --


def bounds_of(rows, count, dtype=np.int64):
    """Return where each of `count` rows begins, and the last one ends, in ascending row numbers."""
    sizes = np.bincount(rows, minlength=count)
    return np.concatenate([np.zeros(1, np.int64, like=sizes), np.cumsum(sizes)]).astype(dtype)


def rows_of(bounds):
    """Return the row of each element: the inverse of `bounds_of`, for one matrix."""
    lengths = bounds[1:] - bounds[:-1]
    total = int(bounds[-1])
    found = np.zeros(total, np.int64, like=bounds)
    starts = bounds[1:-1]
    np.add.at(found, starts[starts < total], 1)
    return np.cumsum(found) if len(lengths) else found


def order_by(first, second, count):
    """Return the order of elements by `first`, and by `second`, below `count`, among equal ones."""
    return np.argsort(first * max(count, 1) + second, kind="stable")
