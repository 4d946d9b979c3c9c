"""argmax, argmin and count_nonzero, in int64.

`axis` None means the flattened array.
"""

import numpy as np

from cygrad._kernels.cpu.base.arrays import cast
from cygrad._kernels.cpu.base.reduce import amax, amin
from cygrad._kernels.cpu.base.reduce import sum as sum_of_array
from cygrad._kernels.cpu.indexing import axis_ops
from cygrad._kernels.device.dispatch import dispatching

_BOOL = np.dtype(bool).num


def count_nonzero(a, axes=None, keepdim=False):
    """Count the nonzero elements over `axes`."""
    if axes is None and not keepdim:
        return np.asarray(axis_ops.count_nonzero(a))
    return sum_of_array(cast(a, _BOOL), axes, keepdim)


def argmax(a, axis=None, keepdim=False):
    """Index of the first NaN, else of the first largest element, along `axis`. No elements: ``ValueError``."""
    return _position(a.argmax, a, axis, keepdim)


def argmin(a, axis=None, keepdim=False):
    """Index of the first NaN, else of the first smallest element, along `axis`. No elements: ``ValueError``."""
    return _position(a.argmin, a, axis, keepdim)


def _position(find, a, axis, keepdim):
    if not a.size and (axis is None or not a.shape[axis]):
        raise ValueError("the position of the largest or smallest of no elements")
    return np.asarray(find(axis, keepdims=True) if keepdim else find(axis), np.int64)


def max_with_indices(a, axis, keepdim=False):
    """(amax, argmax) along `axis`."""
    return amax(a, (axis,), keepdim), _position(a.argmax, a, axis, keepdim)


def min_with_indices(a, axis, keepdim=False):
    """(amin, argmin) along `axis`."""
    return amin(a, (axis,), keepdim), _position(a.argmin, a, axis, keepdim)


dispatching(globals(), "count_nonzero argmax argmin max_with_indices min_with_indices")
