"""Geometry of sliding windows: which image position each result position reads through each tap."""

import math
from functools import cached_property, lru_cache
from itertools import product

SCRATCH = 1 << 20  # bytes of scratch memory at a time, about half of a second-level cache
RESULTS = 8  # results may take this many times as much


class Geometry:
    """The geometry of windows over an image; each tuple has one number per spatial dimension."""

    def __init__(self, image, kernel, size, stride, dilation, low):
        self.image, self.kernel, self.size = tuple(image), tuple(kernel), tuple(size)
        self.stride, self.dilation, self.low = tuple(stride), tuple(dilation), tuple(low)

    @cached_property
    def is_plain(self):
        """Whether results and images have the same positions, with a single tap."""
        return set(self.kernel) <= {1} and set(self.stride) <= {1} and not any(self.low) and self.size == self.image

    @property
    def numbers(self):
        """The arguments that it was made of."""
        return self.image, self.kernel, self.size, self.stride, self.dilation, self.low

    @cached_property
    def given(self):
        """(kernel, stride, padding, dilation), in the form of pooling arguments."""
        return self.kernel, self.stride, self.low, self.dilation

    def taps(self, first=0, last=None):
        """For each tap that reads part of the image, yield (tap number, slices of the results, slices of the image).

        Only for rows `first` to `last` of the results, counted from `first`.
        """
        rows = (first, self.size[0] if last is None else last)
        spans = []
        for d in range(len(self.size)):
            begin, end = rows if d == 0 else (0, self.size[d])
            found = [(k, self.span(d, k, begin, end)) for k in self.seeing(d, begin, end)]
            spans.append([tap for tap in found if tap[1] is not None])
        for taps in product(*spans):
            number = 0
            for (k, _), size in zip(taps, self.kernel):
                number = number * size + k
            yield number, tuple([there for _, (there, _) in taps]), tuple([here for _, (_, here) in taps])

    def seeing(self, d, begin, end):
        """The taps that read part of the image for results `begin` to `end`; windows may exceed the image by far."""
        step, low, stride = self.dilation[d], self.low[d], self.stride[d]
        first = -((max(end - 1, begin) * stride - low) // step)
        last = (self.image[d] - 1 + low - begin * stride) // step
        return range(max(first, 0), min(last + 1, self.kernel[d]))

    def span(self, d, k, begin, end):
        """Slices of the results `begin` to `end` and of the image that tap `k` connects along dimension d, or None."""
        stride = self.stride[d]
        shift = k * self.dilation[d] - self.low[d]
        a = max(begin, -(shift // stride))
        b = min(end, (self.image[d] - 1 - shift) // stride + 1)
        if a >= b:
            return None
        return slice(a - begin, b - begin), slice(a * stride + shift, (b - 1) * stride + shift + 1, stride)

    @cached_property
    def backwards(self):
        """The geometry from results back to images, for stride 1."""
        low = [d * (k - 1) - low for k, d, low in zip(self.kernel, self.dilation, self.low)]
        return Geometry(self.size, self.kernel, self.image, self.stride, self.dilation, low)

    def flat(self, first=0, last=None):
        """The geometry of one or two dimensions for patches.py, for rows `first` to `last` of the results.

        One dimension is treated as an image with one row.
        """
        last = self.size[0] if last is None else last
        if len(self.size) == 2:
            return self.image, self.kernel, self.stride, self.dilation, self.low, first, last, self.size[1]
        one = [(1, *values) for values in (self.image, self.kernel, self.stride, self.dilation)]
        return *one, (0, self.low[0] - first * self.stride[0]), 0, 1, last - first

    @cached_property
    def whole(self):
        """`flat` for all rows."""
        return self.flat()

    def blocks(self, images, channels, itemsize, filters=0):
        """Split the work into blocks (first image, end image, first result row, end row) that fit into scratch memory.

        The results of several images also count as scratch memory, with a larger limit, if there are many `filters`.
        """
        row = channels * math.prod(self.kernel) * math.prod(self.size[1:]) * itemsize
        one = row * self.size[0]
        if one <= 2 * SCRATCH:
            results = filters * math.prod(self.size) * itemsize
            step = max(1, SCRATCH // max(one, results // RESULTS, 1))
            return [(n, min(n + step, images), 0, self.size[0]) for n in range(0, images, step)]
        step = max(1, SCRATCH // row)
        return [
            (n, n + 1, first, min(first + step, self.size[0]))
            for n in range(images)
            for first in range(0, self.size[0], step)
        ]


geometry = lru_cache(256)(Geometry)  # the arguments must be tuples
