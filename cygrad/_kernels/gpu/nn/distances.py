"""Pairwise distances of rows on GPUs, one thread per pair."""

import math

import numpy as np

from cygrad._kernels.cpu.nn.distances import centred_products
from cygrad._kernels.device.cupy_library import cupy
from cygrad._kernels.device.gpu_forms import half_as_float32
from cygrad._kernels.gpu.launch.elementwise_program import elementwise

# `kind`: 0, 1, 2 for these p-norms, 3 for p = inf, 4 for other p.
_DISTANCE = """
W total = 0;
for (long long k = 0; k < width; k++) {
    W step = W(x[a * width + k]) - W(y[b * width + k]);
    step = step < W(0) ? -step : step;
    if (kind == 0) total += step != W(0) ? W(1) : W(0);
    else if (kind == 1) total += step;
    else if (kind == 2) total += step * step;
    else if (kind == 3) total = step > total || step != step ? step : total;
    else total += pow(step, W(p));
}
if (kind == 2 && !(total >= W(sizeof(W) == 4 ? 1e-31 : 1e-292) && total < W(1.0 / 0.0))) {
    // again, divided by the largest
    W largest = 0, shares = 0;
    for (long long k = 0; k < width; k++) {
        W step = fabs(W(x[a * width + k]) - W(y[b * width + k]));
        largest = step > largest || step != step ? step : largest;
    }
    if (largest > W(0) && largest < W(1.0 / 0.0))
        for (long long k = 0; k < width; k++) {
            W step = (W(x[a * width + k]) - W(y[b * width + k])) / largest;
            shares += step * step;
        }
    out = T(largest > W(0) && largest < W(1.0 / 0.0) ? largest * sqrt(shares) : largest);
} else out = T(kind == 2 ? sqrt(total) : kind == 4 ? pow(total, W(1) / W(p)) : total);
"""
_all_pairs = elementwise(
    "cdist",
    "raw T x, raw T y, int64 rows, int64 columns, int64 width, int32 kind, float64 p",
    "T out",
    "long long b = i / (rows * columns) * columns + i % columns, a = i / columns;" + _DISTANCE,
)
# Pair i is (a, b) with a < b; a * (2 * rows - a - 1) / 2 pairs precede those of row a.
# Of each pair, the sum of the squares of its rows about a center and their product about it; near pairs lose digits.
_from_products = elementwise(
    "distances_from_products",
    "raw T x, raw T y, T both, T product, int64 rows, int64 columns, int64 width",
    "T out",
    """
    const int kind = 2;
    const double p = 2;
    const W apart = W(both) - W(2) * W(product);
    if (apart >= W(0.25) * W(both) && apart >= W(sizeof(W) == 4 ? 1e-31 : 1e-292) && apart < W(1.0 / 0.0)) {
        out = T(sqrt(apart));
    } else {
        long long b = i / (rows * columns) * columns + i % columns, a = i / columns;
    """
    + _DISTANCE
    + "}",
)
_later_pairs = elementwise(
    "pdist",
    "raw T x, raw T y, int64 rows, int64 width, int32 kind, float64 p",
    "T out",
    """
    double half = rows - 0.5;
    long long a = (long long)(half - sqrt(half * half - 2.0 * i));
    while (a > 0 && a * (2 * rows - a - 1) / 2 > i) a--;
    while ((a + 1) * (2 * rows - a - 2) / 2 <= i) a++;
    long long b = i - a * (2 * rows - a - 1) / 2 + a + 1;
    """
    + _DISTANCE,
)


def _kind(p):
    return (3, 0.0) if p == math.inf else (int(p), p) if p in (0, 1, 2) else (4, p)


@half_as_float32
def cdist(x, y, p, by_product):
    """Return the p-norm distances between the rows of `x` and the rows of `y`, along the last two axes."""
    batch = np.broadcast_shapes(x.shape[:-2], y.shape[:-2])
    x, y = (cupy().broadcast_to(a, (*batch, *a.shape[-2:])) for a in (x, y))
    x, y = cupy().ascontiguousarray(x), cupy().ascontiguousarray(y)
    if p == 2 and by_product and x.size and y.size:
        product, (own, others) = centred_products(x, y)
        both = own[..., :, None] + others[..., None, :]
        return _from_products(x, y, both, product, x.shape[-2], y.shape[-2], x.shape[-1])
    out = cupy().empty((*batch, x.shape[-2], y.shape[-2]), x.dtype)
    if out.size:
        _all_pairs(x, y, x.shape[-2], y.shape[-2], x.shape[-1], *_kind(p), out)
    return out


def pdist(x, p):
    """Return the p-norm distances of each row from all later rows, concatenated."""
    n = len(x)
    out = cupy().empty(n * (n - 1) // 2, x.dtype)
    if out.size:
        x = cupy().ascontiguousarray(x)
        _later_pairs(x, x, n, x.shape[-1], *_kind(p), out)
    return out


@half_as_float32
def vecdot(a, b, axis):
    """Return the inner products of vectors along an axis, with `a` conjugated."""
    return (cupy().moveaxis(a, axis, -1).conj() * cupy().moveaxis(b, axis, -1)).sum(-1)
