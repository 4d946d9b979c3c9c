"""im2col and col2im (unfold, fold), and pixel shuffle and unshuffle."""

import math

import numpy as np

import cygrad._kernels.cpu.image.patches as patches
from cygrad._kernels.cpu.base.arrays import new_array, zeros
from cygrad._kernels.device.cupy_library import dense
from cygrad._kernels.device.dispatch import dispatching


def unfold(x, where):
    """Extract the windows of images (n, channels, *image): (n, channels * taps, result positions)."""
    taps = math.prod(where.kernel)
    shape = len(x), x.shape[1] * taps, math.prod(where.size)
    if patches.has_loops(x):
        columns = new_array(shape, x.dtype.num)
        patches.copy_patches(dense(x).reshape(1, -1, *where.image), columns.reshape(-1), where.whole)
        return columns
    make = np.zeros if any(where.low) else np.empty
    columns = make((len(x), x.shape[1], taps, *where.size), x.dtype)
    for tap, there, here in where.taps():
        columns[(slice(None), slice(None), tap, *there)] = x[(slice(None), slice(None), *here)]
    return columns.reshape(shape)


def fold(columns, where):
    """Add each column to the image at its window: the transpose of `unfold`."""
    taps = math.prod(where.kernel)
    if patches.has_loops(columns):
        found = zeros((len(columns), columns.shape[1] // taps, *where.image), columns.dtype.num)
        patches.add_patches(found.reshape(1, -1, *where.image), dense(columns).reshape(-1), where.whole)
        return found
    columns = columns.reshape(len(columns), columns.shape[1] // taps, taps, *where.size)
    found = np.zeros((*columns.shape[:2], *where.image), columns.dtype)
    for tap, there, here in where.taps():
        found[(slice(None), slice(None), *here)] += columns[(slice(None), slice(None), tap, *there)]
    return found


def shuffle(x, factor):
    """Rearrange (..., channels * factor^2, height, width) to (..., channels, height * factor, width * factor)."""
    *others, channels, height, width = x.shape
    x = x.reshape(*others, channels // factor**2, factor, factor, height, width)
    n = len(others) + 1
    x = x.transpose(*range(n), n + 2, n, n + 3, n + 1)
    return dense(x).reshape(*others, channels // factor**2, height * factor, width * factor)


def unshuffle(x, factor):
    """The inverse of `shuffle`."""
    *others, channels, height, width = x.shape
    x = x.reshape(*others, channels, height // factor, factor, width // factor, factor)
    n = len(others) + 1
    x = x.transpose(*range(n), n + 1, n + 3, n, n + 2)
    return dense(x).reshape(*others, channels * factor**2, height // factor, width // factor)


dispatching(globals(), "unfold fold")
