"""Convolution of float32 by patches of one image at a time, with our own matrix products (`patch_convolution.h`).

For few channels, or in groups, this takes half the time of BLAS products, and is shared by threads.
"""

import math
from functools import lru_cache

import numpy as np

import cygrad._kernels.cpu.base.loop_table as loop_table
from cygrad._kernels.cpu.base.arrays import dense as in_order
from cygrad._kernels.cpu.base.arrays import new_array, zeros
from cygrad._kernels.cpu.base.loop_table import LOOP_SIZES, LOOPS
from cygrad._kernels.platform import thread_pool
from cygrad._kernels.platform.thresholds import MOST_SUMS

RESULTS, IMAGES, SUMS = LOOPS.PATCHWISE_RESULTS, LOOPS.PATCHWISE_IMAGES, LOOPS.PATCHWISE_SUMS
SINGLE = np.dtype(np.float32)
FLOAT = SINGLE.num
BAND = 1 << 17  # elements of images and results processed at a time, which stay in the cache
DEPTH = LOOP_SIZES.DEPTH  # places summed over at a time
MOST_WEIGHTS = 1 << 17  # per group; beyond this they leave the cache, and BLAS is faster
FEW_PLACES = 32  # per slice of a volume; with fewer, most of a panel is empty, and BLAS is faster


def suits(a, filters, where, groups):
    """Whether this method is best for a convolution with filters of that shape; `a` is the images or the results."""
    return a.dtype == SINGLE and loop_table.has_loops(a) and _suits(a.shape, filters, where, groups)


@lru_cache(256)
def _suits(shape, filters, where, groups):
    return (
        (len(where.size) <= 2 or len(where.size) == 3 and math.prod(where.size[1:]) >= FEW_PLACES)
        and math.prod(where.kernel) > 1
        and 0 < math.prod(filters) <= MOST_WEIGHTS * groups
        and min(*shape, *where.image, *where.size) > 0
        and loop_table.has_loop(RESULTS)
    )


def rounded(n, by):
    return -(-n // by) * by


class Plan:
    """The split of images into bands, and the offsets of taps in the planes of a band.

    Arguments of three numbers have depth first.
    """

    def __init__(self, image, kernel, size, stride, dilation, low, n, channels, filters, groups):
        self.images, self.results = (n, channels * groups, *image), (n, filters * groups, *size)
        depth = image[0], size[0], kernel[0], low[0], stride[0], dilation[0]
        channels, slices = channels * kernel[0], size[0]
        image, kernel, size, stride, dilation, low = (
            values[1:] for values in (image, kernel, size, stride, dilation, low)
        )
        self.filters = filters * groups, channels, *kernel
        (reach, beside), width = [d * (k - 1) // s for k, d, s in zip(kernel, dilation, stride)], size[1]
        width += beside
        taps = channels * math.prod(kernel)
        # Neighboring bands overlap by `reach` rows, which are copied for each.
        rows = min(size[0], max(1, reach, BAND // ((channels * math.prod(stride) + filters) * width)))
        plane = (rows + reach) * width
        places = rounded(rows * width, 16)
        self.taps = np.zeros(channels, np.int64) + np.arange(channels) * math.prod(stride) * plane
        for k, d, s, step, row in zip(kernel, dilation, stride, (stride[1] * plane, plane), (width, 1)):
            at = np.arange(k) * d
            self.taps = np.add.outer(self.taps, at % s * step + at // s * row)
        # Consecutive additions must go to distant memory, so adjacent taps come last.
        self.turned = np.ascontiguousarray(self.taps.transpose(2, 1, 0))
        self.bands = n * groups * slices * -(-size[0] // rows)
        self.length = channels * math.prod(stride) * plane + width + 16
        self.length += (rounded(taps, 8) + rounded(filters, 16)) * DEPTH + rounded(filters, 8) * places
        self.numbers = *image, channels, *size, filters, *low, *stride, rows + reach, width, taps, rows, groups, *depth

    def run(self, loop, arrays, items, piece):
        """Run a loop with scratch memory for each thread."""
        threads = thread_pool.num_threads()
        scratch = new_array((threads * self.length,), FLOAT), np.zeros(threads, np.int32)
        loop_table.run(loop, (*arrays, *scratch), (*self.numbers, threads, self.length), 0, items, piece)


@lru_cache(64)
def plan_of(where, n, filters, groups):
    """The plan for n images; `filters` is the shape of all filters."""
    one, none = ((i,) * (3 - len(where.size)) for i in (1, 0))
    image, kernel, size = one + where.image, one + where.kernel, one + where.size
    at = one + where.stride, one + where.dilation, none + where.low
    return Plan(image, kernel, size, *at, n, filters[1], filters[0] // groups, groups)


def dense(a, shape):
    """The array, dense and in that shape; must be float32."""
    if a.size != math.prod(shape) or a.dtype != SINGLE:
        raise ValueError(f"an array of shape {a.shape} and type {a.dtype} instead of {shape}")
    return in_order(a).reshape(shape)


def correlate(x, w, b, where, groups):
    """Results (n, filters, *size) from images, filters and a bias or None."""
    filters = len(w)
    plan = plan_of(where, len(x), w.shape, groups)
    matrices = zeros((groups, rounded(filters // groups, 8), plan.taps.size), FLOAT)
    matrices[:, : filters // groups] = dense(w, plan.filters).reshape(groups, -1, plan.taps.size)
    bias = np.zeros(filters, np.float32) if b is None else dense(b, (filters,))
    out = new_array((len(x), filters, *where.size), x.dtype.num)
    plan.run(RESULTS, (dense(x, plan.images), matrices, plan.taps, bias, out), plan.bands, 1)
    return out


def spread(g, w, where, groups):
    """Images from results and filters: the transpose of `correlate`; None unless all filters are finite.

    Unwanted positions are multiplied by 0, which would turn infinities into NaN.
    """
    if not np.isfinite(w).all():
        return None
    n, filters, channels = len(g), len(w) // groups, w.shape[1]
    plan = plan_of(where, n, w.shape, groups)
    taps = plan.turned
    matrices = zeros((groups, rounded(taps.size, 8), filters), FLOAT)
    w = dense(w, plan.filters).reshape(groups, filters, *plan.taps.shape)
    matrices[:, : taps.size] = w.transpose(0, 4, 3, 2, 1).reshape(groups, taps.size, filters)
    out = zeros((n, channels * groups, *where.image), FLOAT)
    plan.run(IMAGES, (dense(g, plan.results), matrices, taps, out), n * groups, 1)
    return out


def filter_gradient(x, g, where, groups):
    """Filters (filters, channels / groups, *kernel) from images and results; None unless all of them are finite."""
    shape = g.shape[1], x.shape[1] // groups, *where.kernel
    plan = plan_of(where, len(x), shape, groups)
    taps, filters = plan.taps.size, g.shape[1] // groups
    size = groups, rounded(taps, 8), rounded(filters, 16)
    piece = -(-plan.bands // min(MOST_SUMS, max(1, x.size // math.prod(size))))
    sums = zeros((-(-plan.bands // piece), *size), FLOAT)
    plan.run(SUMS, (dense(x, plan.images), dense(g, plan.results), plan.taps, sums), plan.bands, piece)
    w = sums.sum(0)[:, :taps, :filters]
    return np.ascontiguousarray(w.swapaxes(1, 2)).reshape(shape) if np.isfinite(w).all() else None
