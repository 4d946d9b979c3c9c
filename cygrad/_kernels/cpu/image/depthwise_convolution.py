"""Depthwise convolution (one filter per channel) as sums over filter taps instead of matrix products.

With stride 1 and a padded image flattened to one row, the elements that a tap reads are that row, shifted: one long
contiguous run. This also computes some unwanted results between the rows. See convolution.py for the three forms.
"""

import math

import numpy as np

from cygrad._kernels.cpu.image.window_geometry import SCRATCH


def correlate(x, w, where):
    """Results from images and filters (channels, 1, *kernel)."""
    out = np.zeros((len(x), len(w), *where.size), x.dtype)
    if set(where.stride) <= {1}:
        correlate_runs(x, w, where, out)
        return out
    return sum_over_taps(out, x, w, [(tap, there, here) for tap, there, here in where.taps()])


def spread(g, w, where):
    """Images from results and filters."""
    out = np.zeros((len(g), len(w), *where.image), g.dtype)
    if set(where.stride) <= {1}:
        correlate_runs(g, np.flip(w, tuple(range(2, w.ndim))), where.backwards, out)
        return out
    return sum_over_taps(out, g, w, [(tap, here, there) for tap, there, here in where.taps()])


def sum_over_taps(out, given, w, joins):
    """Add `given`, times the filter taps, to `out`, for each of (tap, positions in `out`, positions in `given`)."""
    weights = np.ascontiguousarray(w.reshape(len(w), -1).T).reshape((-1, len(w)) + (1,) * (w.ndim - 2))
    for one, other in zip(out, given):
        for tap, to, come in joins:
            one[(slice(None), *to)] += other[(slice(None), *come)] * weights[tap]
    return out


class Runs:
    """Memory layout of padded images, flattened to one row each."""

    def __init__(self, where):
        self.where = where
        self.padded = [n + d * (k - 1) for n, k, d in zip(where.size, where.kernel, where.dilation)]
        self.steps = [math.prod(self.padded[d + 1 :]) for d in range(len(self.padded))]
        self.length = sum((n - 1) * step for n, step in zip(where.size, self.steps)) + 1
        self.shifts = [0]
        for k, d, step in zip(where.kernel, where.dilation, self.steps):
            self.shifts = [shift + i * d * step for shift in self.shifts for i in range(k)]

    def blocks(self, x):
        """Split the planes, numbered through images and channels, into ranges (first, end) that fit into the cache."""
        planes = x.shape[0] * x.shape[1]
        step = max(1, SCRATCH // (3 * math.prod(self.padded) * x.itemsize))
        return [(first, min(first + step, planes)) for first in range(0, planes, step)]

    def image_parts(self):
        """Return the position of the image in a padded image, and the part of the image that is there."""
        there: list = [...]
        here: list = [...]
        for n, low, room in zip(self.where.image, self.where.low, self.padded):
            first, begin = max(low, 0), max(-low, 0)
            length = max(min(n - begin, room - first), 0)
            there.append(slice(first, first + length))
            here.append(slice(begin, begin + length))
        return tuple(there), tuple(here)

    def memory(self, planes, dtype):
        """Zeros for planes of padded images."""
        return np.zeros((planes, *self.padded), dtype)


def planes_of(a):
    """Merge images and channels into one dimension."""
    return np.ascontiguousarray(a).reshape(a.shape[0] * a.shape[1], *a.shape[2:])


def correlate_runs(x, w, where, out):
    """Compute the results for stride 1 into `out`, which must be zero."""
    if not out.size or not x.size or not w.size:
        return
    runs = Runs(where)
    planes, results = planes_of(x), out.reshape(-1, *where.size)
    weights = w.reshape(len(w), -1)
    blocks = runs.blocks(x)
    most = blocks[0][1]
    padded, summed = (runs.memory(most, x.dtype) for _ in range(2))
    scratch = np.empty((most, runs.length), x.dtype)
    there, here = runs.image_parts()
    wanted = (slice(None), *[slice(n) for n in where.size])
    for first, last in blocks:
        count = last - first
        padded[:count][there] = planes[first:last][here]
        rows, sums, products = padded.reshape(most, -1)[:count], summed.reshape(most, -1)[:count], scratch[:count]
        sums = sums[:, : runs.length]
        channels = np.arange(first, last) % len(w)
        for tap, shift in enumerate(runs.shifts):
            factors = weights[channels, tap][:, None]
            if tap == 0:
                np.multiply(rows[:, shift : shift + runs.length], factors, out=sums)
            else:
                np.multiply(rows[:, shift : shift + runs.length], factors, out=products)
                sums += products
        results[first:last] = summed[:count][wanted]


def filter_gradient(x, g, where):
    """Filters from images and results."""
    channels = x.shape[1]
    out = np.zeros((channels, math.prod(where.kernel)), x.dtype)
    shape = (channels, 1, *where.kernel)
    if not x.size or not g.size:
        return out.reshape(shape)
    if set(where.stride) <= {1}:
        filter_gradient_runs(x, g, where, out)
        return out.reshape(shape)
    others = tuple(range(1, x.ndim - 1))
    joins = list(where.taps())
    for image, result in zip(x, g):
        for tap, there, here in joins:
            out[:, tap] += (image[(slice(None), *here)] * result[(slice(None), *there)]).sum(others, dtype=x.dtype)
    return out.reshape(shape)


def filter_gradient_runs(x, g, where, out):
    """Add the filters for stride 1 to `out`: products of contiguous runs, with zeros at unwanted results."""
    runs = Runs(where)
    planes, results = planes_of(x), planes_of(g)
    blocks = runs.blocks(x)
    most = blocks[0][1]
    padded, weights = (runs.memory(most, x.dtype) for _ in range(2))
    there, here = runs.image_parts()
    wanted = (slice(None), *[slice(n) for n in where.size])
    for first, last in blocks:
        count = last - first
        padded[:count][there] = planes[first:last][here]
        weights[:count][wanted] = results[first:last]
        rows, other = padded.reshape(most, -1)[:count], weights.reshape(most, -1)[:count, : runs.length]
        channels = np.arange(first, last) % len(out)
        for tap, shift in enumerate(runs.shifts):
            np.add.at(out[:, tap], channels, np.einsum("pl,pl->p", rows[:, shift : shift + runs.length], other))
