"""Sliding windows over images: patch extraction, its transpose, and max pooling (`patches.h`).

Arrays must be dense, of float32 or float64; threads share the planes of images. A geometry is
(image, kernel, stride, dilation, low, first row, last row, width), the first five pairs: see window_geometry.py.
"""

import math
from functools import lru_cache

import numpy as np

import cygrad._kernels.cpu.base.loop_table as loop_table
from cygrad._kernels.cpu.base.loop_table import LOOPS
from cygrad._kernels.platform.thresholds import PIECE

COPY_PATCHES, ADD_PATCHES = LOOPS.COPY_PATCHES, LOOPS.ADD_PATCHES
LARGEST, LARGEST_OF_PLACES = LOOPS.LARGEST, LOOPS.LARGEST_OF_PLACES

PLACES = np.dtype(np.int64)

has_loops, check = loop_table.has_loops, loop_table.check


def run(loop, x, arrays, geometry, work):
    """Run a loop over the planes of images x."""
    if x.shape[2:] != geometry[0]:
        raise ValueError(f"images of shape {x.shape} in windows of {geometry}")
    n, channels = x.shape[:2]
    loop_table.run(loop, (x, *arrays), (*numbers_of(geometry), channels, n), 0, n * channels, PIECE // max(work, 1))


@lru_cache(256)
def numbers_of(geometry):
    """The integer arguments of the loops for a geometry."""
    image, kernel, stride, dilation, low, first, last, width = geometry
    if min(*kernel, *stride, *dilation) < 1 or not 0 <= first <= last or width < 0:
        raise ValueError(f"windows of {geometry}")
    low = low[0] - first * stride[0], low[1]  # makes the first wanted row row 0
    return *image, *kernel, *stride, *dilation, *low, last - first, width


def join(loop, x, patches, geometry, writes):
    check(x, x.dtype, 4, writes)
    check(patches, x.dtype, 1, not writes)
    _, kernel, *_, first, last, width = geometry
    size = kernel[0] * kernel[1] * (last - first) * width
    if patches.size != x.shape[0] * x.shape[1] * size:
        raise ValueError(f"{patches.size} elements for patches of {x.shape} in {geometry}")
    run(loop, x, (patches,), geometry, size)


def copy_patches(x, patches, geometry):
    """Overwrite `patches`, flat, with (channels, taps, images, rows, width): the elements that each tap reads."""
    join(COPY_PATCHES, x, patches, geometry, False)


def add_patches(x, patches, geometry):
    """Add patches to the image positions from which `copy_patches` would read them."""
    join(ADD_PATCHES, x, patches, geometry, True)


def largest(x, values, places, geometry):
    """Overwrite `values` and `places` with the largest element of each window and its position in its plane.

    x must be dense, with planes as its last dimensions; each window must overlap its plane.
    """
    check(values, x.dtype, values.ndim, True)
    check(places, PLACES, places.ndim, True)
    numbers, size, piece = numbers_of_largest(geometry)
    planes = values.size // size
    if not x.size == planes * numbers[0] * numbers[1] or not planes * size == values.size == places.size:
        raise ValueError(f"{values.size} results for {x.shape} in {geometry}")
    loop_table.run(LARGEST, (x, values, places), (*numbers, 1, planes), 0, planes, piece)


@lru_cache(256)
def numbers_of_largest(geometry):
    """Return (`numbers_of`, windows per plane, planes per chunk). Each window must overlap the plane."""
    image, kernel, stride, dilation, low, first, last, width = geometry
    if image[0] * image[1] >= 1 << 31:
        raise ValueError("images are too large")
    for d, (begin, end) in enumerate(((first, last), (0, width))):
        beyond = (end - 1) * stride[d] - low[d] >= image[d]
        before = begin * stride[d] - low[d] + (kernel[d] - 1) * dilation[d] < 0
        if beyond or before or (low[d] > 0 and dilation[d] > 1):
            raise ValueError(f"a window of {geometry} sees nothing of the image")
    size = (last - first) * width
    return numbers_of(geometry), size, PIECE // max(size * kernel[0] * kernel[1], 1)


def largest_of_places(planes, values, places, tables):
    """Overwrite `values` and `places` with the maxima of windows given by three tables, and their positions.

    The planes have three dimensions; each has a table (planes or 1, windows, taps) of the positions that windows read.
    """
    image = planes.shape[1:]
    _, windows, taps = zip(*(table.shape for table in tables))
    count, own = math.prod(windows), len(tables[0]) > 1
    if any(len(table) != (len(planes) if own else 1) or table.dtype != PLACES for table in tables) or not (
        len(image) == 3 and values.size == places.size == len(planes) * count
    ):
        raise ValueError(f"{values.size} results for {planes.shape} in windows of {taps}")
    check(values, planes.dtype, values.ndim, True)
    check(places, PLACES, places.ndim, True)
    numbers = *image, *windows, *taps, math.prod(image), count, own
    arrays = planes, values, places, *map(np.ascontiguousarray, tables)
    if loop_table.run(LARGEST_OF_PLACES, arrays, numbers, 0, len(planes), PIECE // max(count * math.prod(taps), 1)):
        raise IndexError(f"a place is outside of {image}")
