"""The geometry of sliding windows, for GPU programs; one and two dimensions are padded to three.

`Places g` is passed by value: lengths of image, kernel and result, stride, dilation, and the padding before.
"""

import math
from functools import lru_cache

import numpy as np

TEXT = """
struct Places { int image[3], kernel[3], size[3], stride[3], dilation[3], low[3]; };
// Which place of the image tap `k` of the window `o` sees along a dimension; it may be outside.
__device__ inline int seen(const Places& g, int d, int o, int k) {
    return o * g.stride[d] + k * g.dilation[d] - g.low[d];
}
// The window whose tap `k` sees place `i` along a dimension, or -1.
__device__ inline int seeing(const Places& g, int d, int i, int k) {
    int from = i + g.low[d] - k * g.dilation[d];
    if (from < 0 || from % g.stride[d]) return -1;
    int o = from / g.stride[d];
    return o < g.size[d] ? o : -1;
}
__device__ inline bool inside(int i, int n) { return i >= 0 && i < n; }
struct At { int x[3]; };
__device__ inline At at(int i, const int* n) {
    At a;
    a.x[2] = i % n[2];
    i /= n[2];
    a.x[1] = i % n[1];
    a.x[0] = i / n[1];
    return a;
}
"""


@lru_cache(256)
def places(where):
    """Return the geometry as the struct that programs take."""
    before = 3 - len(where.size)
    given = where.image, where.kernel, where.size, where.stride, where.dilation, where.low
    numbers = [(*[int(i < 5) for _ in range(before)], *values) for i, values in enumerate(given)]
    return np.array(numbers, np.int32).reshape(-1).view([("numbers", np.int32, (18,))])


def taps(where):
    """Return the number of elements in a window."""
    return math.prod(where.kernel)
