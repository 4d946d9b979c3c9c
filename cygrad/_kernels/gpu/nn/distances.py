"""Pairwise distances of rows on GPUs, one thread per pair."""

import math

import numpy as np

from cygrad._kernels.cpu.nn.distances import distances_by_product
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
out = T(kind == 2 ? sqrt(total) : kind == 4 ? pow(total, W(1) / W(p)) : total);
"""
_all_pairs = elementwise(
    "cdist",
    "raw T x, raw T y, int64 rows, int64 columns, int64 width, int32 kind, float64 p",
    "T out",
    "long long b = i / (rows * columns) * columns + i % columns, a = i / columns;" + _DISTANCE,
)
# Pair i is (a, b) with a < b; a * (2 * rows - a - 1) / 2 pairs precede those of row a.
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
    if p == 2 and by_product and x.shape[-1]:
        return distances_by_product(x, y)
    x, y = cupy().ascontiguousarray(x), cupy().ascontiguousarray(y)
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
