"""Forms of the kernels in `cpu/reduction`: positions of extrema, histograms, scans, sorting, searching."""

import numpy as np

from cygrad._kernels.meta.array import ndarray
from cygrad._kernels.meta.forms.describing import like_first, reduced_shape, refused

logcumsumexp = like_first
bincount = refused("bincount")
distinct = distinct_slices = refused("_unique2")
runs = runs_of_slices = refused("unique_consecutive")


def count_nonzero(kernel, a, axes=None, keepdim=False):
    return ndarray(reduced_shape(a.shape, axes, keepdim), np.int64)


argmax = argmin = count_nonzero


def max_with_indices(kernel, a, axis, keepdim=False):
    shape = reduced_shape(a.shape, axis, keepdim)
    return ndarray(shape, a.dtype), ndarray(shape, np.int64)


min_with_indices = max_with_indices


def count_evenly(kernel, array, bins, low, high):
    return ndarray((bins,), array.dtype)


def histogram(kernel, points, edges, weights, density):
    return ndarray(tuple(len(edge) - 1 for edge in edges), points.dtype)


def running_extremum(kernel, a, axis, largest):
    return ndarray(a.shape, a.dtype), ndarray(a.shape, np.int64)


def searchsorted(kernel, sequence, values, side):
    return ndarray(np.shape(values), np.int64)


def isin(kernel, elements, tests, unique, invert):
    return ndarray(np.shape(elements), np.bool_)


def sorted_along(kernel, a, axis, descending=False):
    return ndarray(a.shape, a.dtype), ndarray(a.shape, np.int64)


def order_along(kernel, a, axis, descending=False):
    return ndarray(a.shape, np.int64)


def first_along(kernel, a, axis, k, largest):
    shape = (*a.shape[:axis], k, *a.shape[axis + 1 :]) if a.ndim else ()
    return ndarray(shape, a.dtype), ndarray(shape, np.int64)


def kth_along(kernel, a, axis, k=0):
    return ndarray(reduced_shape(a.shape, axis, True), np.int64)


median_along = middle_along = most_frequent = kth_along


def median_of_all(kernel, a):
    return ndarray((), a.dtype)


nanmedian_of_all = median_of_all
