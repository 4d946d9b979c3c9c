"""Winograd convolution with 3x3 taps: the three forms of convolution.py, with a quarter of the multiplications.

`winograd.h` explains the method. For float32 only: results differ from direct sums by about 2e-6 of the largest.
Infinities or NaN would spread over a whole tile; the functions then return None, and the caller computes directly.
"""

from functools import lru_cache

import numpy as np

import cygrad._kernels.cpu.base.loop_table as loop_table
from cygrad._kernels.cpu.base.arrays import dense as in_order
from cygrad._kernels.cpu.base.arrays import new_array, zeros
from cygrad._kernels.cpu.base.loop_table import LOOP_SIZES, LOOPS
from cygrad._kernels.platform import thread_pool
from cygrad._kernels.platform.thresholds import MOST_SUMS

FILTERS, RESULTS, SUMS = LOOPS.WINOGRAD_FILTERS, LOOPS.WINOGRAD_RESULTS, LOOPS.WINOGRAD_SUMS
POINTS, TAIL = LOOP_SIZES.POINTS, LOOP_SIZES.TAIL
SINGLE = np.dtype(np.float32)
FLOAT = SINGLE.num
SCRATCH = 1 << 18  # elements of transformed tiles at a time, which stay in the cache
FEWEST_TILES = 64  # at a time; for fewer, reading the filters takes longer than the products
FEWEST_CHANNELS = 12  # rounded up to 16
PIECES = 8  # at least, if there are enough tiles, for threads to share
TILES_OF_SUM = 128  # at least so many are summed together


def suits(x, made, where, groups):
    """Whether this is the faster method to compute `made` channels from images x."""
    return x.dtype == SINGLE and loop_table.has_loops(x) and _suits(x.shape, made, where, groups)


@lru_cache(256)
def _suits(shape, made, where, groups):
    if (
        groups != 1
        or where.kernel != (3, 3)
        or {*where.stride, *where.dilation} != {1}
        or not loop_table.has_loop(RESULTS)
    ):
        return False
    n, channels = shape[:2]
    filters = POINTS * rounded(channels) * rounded(made)
    return min(channels, made) >= FEWEST_CHANNELS and filters <= 8 * n * (
        channels * where.image[0] * where.image[1] + made * where.size[0] * where.size[1]
    )


def dense(a, shape):
    """The array, dense; must be float32 and of that shape."""
    if a.shape != shape or a.dtype != SINGLE:
        raise ValueError(f"an array of shape {a.shape} and type {a.dtype} instead of {shape}")
    return in_order(a)


def rounded(channels):
    return -(-channels // 16) * 16


class Plan:
    """The split of images with that many channels, and of results with `made`, into strips of tiles."""

    def __init__(self, n, channels, made, where):
        self.rows, self.columns = (-(-size // 4) for size in where.size)
        self.strips = n * self.rows
        depth, width = rounded(channels), rounded(made)
        tiles = max(FEWEST_TILES, SCRATCH // (POINTS * (depth + width)))
        few = max(FEWEST_TILES // self.columns, self.strips // PIECES)
        self.together = max(1, min(tiles // self.columns, few, self.strips))
        tiles = -(-self.together * self.columns // 8) * 8
        self.length = 6 * (4 * self.columns + 2) * depth + 16 * self.columns * width
        self.length += POINTS * (tiles * (depth + width) + 2 * TAIL)
        self.sums = POINTS * depth * width
        self.numbers = (*where.image, channels, *where.size, made, *where.low)

    def scratch(self, length):
        """Return (memory for each thread, flags of those in use), and the numbers that describe it."""
        threads = thread_pool.num_threads()
        return (new_array((threads * length,), FLOAT), np.zeros(threads, np.int32)), (threads, length, self.together)


plan_of = lru_cache(64)(Plan)


def correlate(x, w, b, where, backwards=False):
    """Results (n, filters, *size) from images x, filters and a bias or None; None unless all results are finite.

    With `backwards`, go from results to images: w are the forward filters, and `where` is the backward geometry.
    """
    channels, made = w.shape[:2] if backwards else w.shape[1::-1]
    x, w = dense(x, (len(x), channels, *where.image)), dense(w, (*w.shape[:2], 3, 3))
    plan = plan_of(len(x), channels, made, where)
    steps = (9 * w.shape[1], 9) if backwards else (9, 9 * w.shape[1])
    transformed = new_array((POINTS * channels * rounded(made),), FLOAT)
    loop_table.run(FILTERS, (w, transformed), (channels, made, *steps, backwards), 0, rounded(made) // 16, 1)
    bias = np.zeros(rounded(made), np.float32)
    if b is not None:
        bias[:made] = dense(b, (made,))
    out = new_array((len(x), made, *where.size), FLOAT)
    arrays, sizes = plan.scratch(plan.length)
    arrays = x, transformed, out, bias, *arrays
    failed = loop_table.run(RESULTS, arrays, (*plan.numbers, *sizes), 0, plan.strips, plan.together)
    return None if failed else out


def filter_gradient(x, g, where):
    """Filters (filters, channels, 3, 3) from images and results; None unless all of them are finite."""
    channels, made = x.shape[1], g.shape[1]
    x, g = dense(x, (len(x), channels, *where.image)), dense(g, (len(x), made, *where.size))
    plan = plan_of(len(x), channels, made, where)
    pieces = max(1, min(plan.strips * plan.columns // TILES_OF_SUM, MOST_SUMS))
    piece = -(-plan.strips // pieces)
    sums = zeros((-(-plan.strips // piece), channels, 9, rounded(made)), FLOAT)
    arrays, sizes = plan.scratch(plan.length + plan.sums)
    loop_table.run(SUMS, (x, g, sums, *arrays), (*plan.numbers, *sizes), 0, plan.strips, piece)
    filters = sums.sum(0)[..., :made].transpose(2, 0, 1)
    return np.ascontiguousarray(filters).reshape(made, channels, 3, 3) if np.isfinite(filters).all() else None
