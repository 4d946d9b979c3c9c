"""Convolutions of float32 by patches of one image at a time, and our own products of matrices (`patchwise.h`).

For few channels this takes half the time of products by BLAS, and threads share it.
"""

import math
from functools import lru_cache

import numpy as np

import cygrad._kernels.native as native
from cygrad._kernels import parallel
from cygrad._kernels.arrays import new_array

RESULTS, IMAGES, SUMS = range(19, 22)  # as in native.h
BAND = 1 << 17  # elements of images and results that are worked on at a time, which stay in the cache
DEPTH = 128  # as in patchwise.h
MOST_TAPS = 512  # for more, BLAS is as fast
MOST_SUMS = 16  # and not more sums are kept


def suits(a, channels, where, groups):
    """Whether a convolution of images of so many channels is better done so; `a` is the images or the results."""
    taps = math.prod(where.kernel)
    return (
        a.dtype == np.float32
        and groups == 1
        and len(where.size) <= 2
        and taps > 1
        and 0 < channels * taps <= MOST_TAPS
        and min(*a.shape, *where.image, *where.size) > 0
        and native.has_loops(a)
        and native.has_loop(RESULTS)
    )


def rounded(n, by):
    return -(-n // by) * by


class Plan:
    """How images are cut into bands, and where taps stand in the planes of one."""

    def __init__(self, image, kernel, size, stride, dilation, low, n, channels, filters):
        self.image, self.size = image, size
        (reach, beside), width = [d * (k - 1) // s for k, d, s in zip(kernel, dilation, stride)], size[1]
        width += beside
        taps = channels * math.prod(kernel)
        rows = min(size[0], max(1, BAND // ((channels * math.prod(stride) + filters) * width)))
        plane = (rows + reach) * width
        places = rounded(rows * width, 16)
        self.taps = np.zeros(channels, np.int64) + np.arange(channels) * math.prod(stride) * plane
        for k, d, s, step, row in zip(kernel, dilation, stride, (stride[1] * plane, plane), (width, 1)):
            at = np.arange(k) * d
            self.taps = np.add.outer(self.taps, at % s * step + at // s * row)
        self.bands = n * -(-size[0] // rows)
        self.length = channels * math.prod(stride) * plane + width + 16
        self.length += (rounded(taps, 8) + rounded(filters, 16)) * DEPTH + rounded(filters, 8) * places
        self.numbers = *image, channels, *size, filters, *low, *stride, rows + reach, width, taps, rows

    def run(self, loop, arrays, items, piece):
        """Run a loop with a scratch for each thread."""
        threads = parallel.num_threads()
        scratch = np.empty(threads * self.length, np.float32), np.zeros(threads, np.int32)
        native.run(loop, (*arrays, *scratch), (*self.numbers, threads, self.length), 0, items, piece)


planned = lru_cache(64)(Plan)  # a fifth of the time of a small convolution


def plan_of(where, n, channels, filters):
    one, none = ((i,) * (2 - len(where.size)) for i in (1, 0))
    numbers = (one + v for v in (where.image, where.kernel, where.size, where.stride, where.dilation))
    return planned(*numbers, none + where.low, n, channels, filters)


def dense(a, shape):
    """The array, as one of that shape, and of float32."""
    if a.size != math.prod(shape) or a.dtype != np.float32:
        raise ValueError(f"an array of shape {a.shape} and type {a.dtype} instead of {shape}")
    return np.require(a, np.float32, ["C", "A"]).reshape(shape)


def correlate(x, w, b, where):
    """Results (n, filters, *size) of images, filters and a bias or None."""
    (n, channels), filters = x.shape[:2], len(w)
    plan = plan_of(where, n, channels, filters)
    x = dense(x, (n, channels, *plan.image))
    matrix = np.zeros((rounded(filters, 8), plan.taps.size), np.float32)
    matrix[:filters] = dense(w, (filters, plan.taps.size))
    bias = np.zeros(filters, np.float32) if b is None else dense(b, (filters,))
    out = new_array((n, filters, *where.size), x.dtype.num)
    plan.run(RESULTS, (x, matrix, plan.taps, bias, out), plan.bands, 1)
    return out


def spread(g, w, where):
    """Images from results and filters: the transpose of `correlate`; None if the filters are not all finite.

    Places that are not wanted are multiplied by 0, which makes nan of what is infinite.
    """
    if not np.isfinite(w).all():
        return None
    (n, filters), channels = g.shape[:2], w.shape[1]
    plan = plan_of(where, n, channels, filters)
    g = dense(g, (n, filters, *plan.size))
    # What is added one after the other must be apart in memory: taps beside one another come last.
    taps = np.ascontiguousarray(plan.taps.transpose(2, 1, 0))
    matrix = np.zeros((rounded(taps.size, 8), filters), np.float32)
    matrix[: taps.size] = dense(w, (filters, *plan.taps.shape)).transpose(3, 2, 1, 0).reshape(taps.size, filters)
    out = np.zeros((n, channels, *where.image), np.float32)
    plan.run(IMAGES, (g, matrix, taps, out), n, 1)
    return out


def filter_gradient(x, g, where):
    """Filters (filters, channels, *kernel) from images and results; None if they are not all finite, as above."""
    (n, channels), filters = x.shape[:2], g.shape[1]
    plan = plan_of(where, n, channels, filters)
    taps = plan.taps.size
    x, g = dense(x, (n, channels, *plan.image)), dense(g, (n, filters, *plan.size))
    piece = -(-plan.bands // MOST_SUMS)
    sums = np.zeros((-(-plan.bands // piece), rounded(taps, 8), rounded(filters, 16)), np.float32)
    plan.run(SUMS, (x, g, plan.taps, sums), plan.bands, piece)
    w = sums.sum(0)[:taps, :filters]
    return np.ascontiguousarray(w.T).reshape(filters, channels, *where.kernel) if np.isfinite(w).all() else None
