"""Positions and counts on GPUs; the arguments are those of `_kernels/positions.py`."""

import numpy as np

from cygrad._kernels.device.cupy_library import cupy


def count_nonzero(a, axes=None, keepdim=False):
    """How many elements are not 0."""
    return cupy().sum(a != 0, axes, np.int64, keepdims=keepdim)


def argmax(a, axis=None, keepdim=False):
    """Where the largest element is; the first of several, or the first nan."""
    return _position(cupy().argmax, a, axis, keepdim)


def argmin(a, axis=None, keepdim=False):
    """Where the smallest element is; the first of several, or the first nan."""
    return _position(cupy().argmin, a, axis, keepdim)


def _places(function, a, axis):
    """CuPy gives `long long`, another type than NumPy's int64 where `long` has 64 bits, too."""
    return function(a, axis).view(np.int64)


def _position(function, a, axis, keepdim):
    found = _places(function, a, axis)
    if not keepdim:
        return found
    return found.reshape([1 if axis is None or i == axis % a.ndim else n for i, n in enumerate(a.shape)])


def max_with_indices(a, axis, keepdim=False):
    """The largest elements along an axis, and where they are."""
    return _with_indices(cupy().argmax, a, axis, keepdim)


def min_with_indices(a, axis, keepdim=False):
    """The smallest elements along an axis, and where they are."""
    return _with_indices(cupy().argmin, a, axis, keepdim)


def _with_indices(function, a, axis, keepdim):
    places = cupy().expand_dims(_places(function, a, axis), axis)
    values = cupy().take_along_axis(a, places, axis)
    return (values, places) if keepdim else (values.squeeze(axis), places.squeeze(axis))
