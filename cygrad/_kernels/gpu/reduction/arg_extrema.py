"""Argmax, argmin and nonzero counts on GPUs; takes the arguments of `_kernels/cpu/reduction/arg_extrema.py`."""

import numpy as np

from cygrad._kernels.device.cupy_library import cupy


def count_nonzero(a, axes=None, keepdim=False):
    """Count the nonzero elements."""
    return cupy().sum(a != 0, axes, np.int64, keepdims=keepdim)


def argmax(a, axis=None, keepdim=False):
    """Return the index of the largest element: the first of several, or the first NaN."""
    return _position(cupy().argmax, a, axis, keepdim)


def argmin(a, axis=None, keepdim=False):
    """Return the index of the smallest element: the first of several, or the first NaN."""
    return _position(cupy().argmin, a, axis, keepdim)


def _places(function, a, axis):
    """View CuPy's `long long` results as NumPy's int64, a different dtype where `long` also has 64 bits."""
    return function(a, axis).view(np.int64)


def _position(function, a, axis, keepdim):
    found = _places(function, a, axis)
    if not keepdim:
        return found
    return found.reshape([1 if axis is None or i == axis % a.ndim else n for i, n in enumerate(a.shape)])


def max_with_indices(a, axis, keepdim=False):
    """Return the largest elements along an axis and their indices."""
    return _with_indices(cupy().argmax, a, axis, keepdim)


def min_with_indices(a, axis, keepdim=False):
    """Return the smallest elements along an axis and their indices."""
    return _with_indices(cupy().argmin, a, axis, keepdim)


def _with_indices(function, a, axis, keepdim):
    places = cupy().expand_dims(_places(function, a, axis), axis)
    values = cupy().take_along_axis(a, places, axis)
    return (values, places) if keepdim else (values.squeeze(axis), places.squeeze(axis))
