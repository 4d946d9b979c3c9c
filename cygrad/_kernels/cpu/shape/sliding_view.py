"""Sliding windows along an axis (unfold)."""

import numpy as np

from cygrad._kernels.cpu.base.numpy_fallback import silent
from cygrad._kernels.cpu.base.view_geometry import restride


def windows(array, axis, size, step):
    """A view of all windows of `size` elements along the axis, `step` apart; the window elements are the last axis."""
    shape, strides = [*array.shape, size], [*array.strides, array.itemsize]
    if len(shape) > 1:
        strides[-1] = strides[axis]
        strides[axis] *= step
        shape[axis] = (shape[axis] - size) // step + 1
    return restride(array, tuple(shape), tuple(strides), 0)


@silent
def sum_windows(values, shape, axis, size, step):
    """Zeros of `shape` with `values` added at the positions that `windows` would show."""
    out = np.zeros(shape, values.dtype, like=values)
    shown = windows(out, axis, size, step)
    if not shape or size <= shown.shape[axis]:
        for i in range(size):  # the same element of all windows has distinct positions
            shown[..., i] += values[..., i]
        return out
    for i in range(shown.shape[axis]):
        where = (slice(None),) * axis + (i,)
        shown[where] += values[where]
    return out
