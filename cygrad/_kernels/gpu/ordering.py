"""Orders along an axis on GPUs; see `_kernels/ordering.py`. CuPy's sort keeps the order of equal elements."""

import numpy as np

from cygrad._kernels.gpu.library import cupy
from cygrad._kernels.gpu.scans import running
from cygrad._kernels.ordering import one


def sorted_along(a, axis, descending=False):
    """(the elements in order along an axis, their indices)."""
    if descending:
        values, order = sorted_along(cupy().flip(a, axis), axis)
        order = a.shape[axis] - 1 - order
        return tuple(cupy().ascontiguousarray(cupy().flip(found, axis)) for found in (values, order))
    order = _order(a, axis)
    return cupy().take_along_axis(a, order, axis), order


def _order(a, axis):
    if not a.size:
        return cupy().zeros(a.shape, np.int64)
    return cupy().argsort(a, axis).astype(np.int64, copy=False)


def first_along(a, axis, k, largest):
    """(the k largest or smallest elements along an axis, in order, their indices)."""
    part = (slice(None),) * axis + (slice(0, k),)
    return tuple(cupy().ascontiguousarray(found[part]) for found in sorted_along(a, axis, largest))


def kth_along(a, axis, k):
    """The index of the k-th smallest element along an axis, counted from 0; 0 if there are no elements."""
    return _order(a, axis)[(slice(None),) * axis + (slice(k, k + 1),)] if a.size else _nothing(a, axis)


def _nothing(a, axis):
    return cupy().zeros(one(a, axis), np.int64)


def median_along(a, axis):
    """The index of the lower median along an axis; where there is a nan, of the first."""
    middle = kth_along(a, axis, (a.shape[axis] - 1) // 2)
    if a.dtype.kind != "f" or not a.size:
        return middle
    is_nan = cupy().isnan(a)
    first = cupy().expand_dims(cupy().argmax(is_nan, axis), axis).astype(np.int64, copy=False)
    return cupy().where(is_nan.any(axis, keepdims=True), first, middle)


def middle_along(a, axis):
    """The index of the lower median along an axis, nans apart; 0 for an axis of length 0."""
    if a.dtype.kind != "f" or not a.size:
        return kth_along(a, axis, (a.shape[axis] - 1) // 2)
    missing = cupy().isnan(a).sum(axis, keepdims=True)
    places = cupy().maximum(a.shape[axis] - missing - 1, 0) // 2
    return cupy().take_along_axis(_order(a, axis), places, axis)


def most_frequent(a, axis):
    """The index of the last of the most frequent elements along an axis; of several, the smallest."""
    if not a.size:
        return _nothing(a, axis)
    order = _order(a, axis)
    ordered = cupy().moveaxis(cupy().take_along_axis(a, order, axis), axis, -1)
    places = cupy().arange(ordered.shape[-1])
    begins = cupy().ones(ordered.shape, bool)
    begins[..., 1:] = ordered[..., 1:] != ordered[..., :-1]
    starts = running(">=", cupy().where(begins, places, 0), -1)
    last = cupy().expand_dims(cupy().argmax(places - starts, -1), -1)
    return cupy().take_along_axis(order, cupy().moveaxis(last, -1, axis), axis)


def median_of_all(a):
    """The lower median of all elements; nan if one is nan, or there are none."""
    if not a.size:
        return cupy().full((), np.nan if a.dtype.kind == "f" else np.iinfo(a.dtype).min, a.dtype)
    ordered = cupy().sort(a.reshape(-1))
    middle = ordered[(a.size - 1) // 2]
    return cupy().where(ordered[-1] != ordered[-1], ordered[-1], middle)  # a nan stands last


def nanmedian_of_all(a):
    """The lower median of all elements, nans apart; nan of none."""
    if not a.size or a.dtype.kind != "f":
        return median_of_all(a)
    place = cupy().maximum(a.size - cupy().isnan(a).sum() - 1, 0) // 2
    return cupy().take(cupy().sort(a.reshape(-1)), place)
