"""Distances between rows, cross products, and slices that are scaled down to a norm."""

import numpy as np

from cygrad._kernels.by_numpy import silent

BLOCK = 1 << 15  # differences that are computed at once
TINY = 1e-7  # added to the norm that a slice is divided by


@silent
def cdist(x, y, p, by_product):
    """The p-norm distances of the rows of `x` from the rows of `y`, along the last two axes."""
    if p == 2 and by_product and x.shape[-1]:
        squares = np.square(x).sum(-1)[..., :, None] + np.square(y).sum(-1)[..., None, :]
        squares -= 2 * np.matmul(x, y.swapaxes(-1, -2))
        return np.sqrt(np.maximum(squares, 0, out=squares), out=squares)
    difference = x[..., :, None, :] - y[..., None, :, :]
    if p == 2:
        return np.sqrt(np.einsum("...i,...i->...", difference, difference))
    if p == 0:
        return (difference != 0).sum(-1).astype(x.dtype)
    size = np.abs(difference)
    if p == np.inf:
        return size.max(-1, initial=0)
    if p == 1:
        return size.sum(-1)
    return ((size**p).sum(-1) ** (1 / p)).astype(x.dtype, copy=False)


def pdist(x, p):
    """The p-norm distances of each row from those after it, one after the other."""
    n = len(x)
    out = np.empty(n * (n - 1) // 2, x.dtype)
    start = 0
    step = max(1, BLOCK // max(x.size, 1))  # rows at a time; distances from those before are thrown away
    for first in range(0, n - 1, step):
        last = min(first + step, n - 1)
        found = cdist(x[first:last], x[first + 1 :], p, False)
        for row in range(last - first):
            stop = start + n - 1 - first - row
            out[start:stop] = found[row, row:]
            start = stop
    return out


@silent
def cross(a, b, axis):
    """The cross products of vectors along an axis."""
    a, b = np.broadcast_arrays(a, b)
    a, b = np.moveaxis(a, axis, 0), np.moveaxis(b, axis, 0)
    out = np.empty((*a.shape[1 : axis + 1], 3, *a.shape[axis + 1 :]), a.dtype)
    parts = np.moveaxis(out, axis, 0)
    for i, (j, k) in enumerate(((1, 2), (2, 0), (0, 1))):
        parts[i] = a[j] * b[k] - a[k] * b[j]
    return out


@silent
def renorm(a, p, axis, largest):
    """With each slice along the axis that has a larger p-norm scaled down to it."""
    others = tuple(d for d in range(a.ndim) if d != axis)
    size = np.abs(a)
    if p == np.inf:
        norms = size.max(others, keepdims=True, initial=0)
    else:
        norms = (size**p).sum(others, keepdims=True) ** (1 / p)
    factor = np.where(norms > largest, largest / (norms + TINY), 1)
    return np.ascontiguousarray(a * factor.astype(size.dtype))
