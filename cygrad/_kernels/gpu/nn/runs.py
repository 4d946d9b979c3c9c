"""Normalization of runs on GPUs, forward and backward: batch, group and instance norm.

The runs of an image are its channels; `each` adjacent ones form a group and share statistics. The number of groups
counts those of all images or, if all images share statistics, equals the number of channels.
"""

import math
from functools import lru_cache

import numpy as np

from cygrad._kernels.device.cupy_library import cupy, dense
from cygrad._kernels.gpu.launch.program import Program, of_type, wide_type
from cygrad._kernels.gpu.launch.reduction_program import folded
from cygrad._kernels.gpu.launch.row_program import MOST_BLOCKS, OVER_ROW, WARP, RowProgram, are_for_many_blocks
from cygrad._kernels.gpu.nn.column_sums import MANY_PARTS, OVER_PARTS, SIDE_BY_SIDE, column_sums, totals

_RUNS = """
__device__ inline whole group_of(whole run, whole each, whole groups) { return rest(quotient(run, each), groups); }
"""
# The mean of each row, and the mean of squares around it.
_MOMENTS = RowProgram(
    "moments",
    """
extern "C" __global__ void moments(const T* a, W* means, double* squares, whole rows, whole n) {
    EACH_ROW(row, rows) {
        Row x(a + row * n, n);
        W m = 0, s = 0;
        EACH(i, k, n) m += x.get(k, i);
        m = over_row(m, Add()) / W(n);
        EACH(i, k, n) { W d = x.get(k, i) - m; s += d * d; }
        double square = over_row(s, Add()) / W(n);
        if (!is_accurate(W(square))) {  // again, in float64
            double q = 0;
            EACH(i, k, n) { double d = x.get(k, i) - m; q += d * d; }
            square = over_row(q, Add()) / double(n);
        }
        if (!threadIdx.x) { means[row] = m; squares[row] = square; }
    }
}
""",
)
# Combines the moments of equal parts into the total's, 1 / deviation, and the updated running statistics.
_SETTLE = Program(
    "settle",
    OVER_PARTS
    + """
extern "C" __global__ void __launch_bounds__(1024) settle(const W* means, const double* squares, W* middle, W* factor,
                                                          W* square, double eps, whole parts, whole n, RUNNING* mean,
                                                          RUNNING* variance, double momentum, double correction) {
    const whole c = blockIdx.x * (whole)32 + threadIdx.x;
    W m = 0;
    double s = 0;
    if (c < n) for (whole p = threadIdx.y; p < parts; p += blockDim.y) m += means[p * n + c];
    m = over_parts(m) / W(parts);
    if (c < n)
        for (whole p = threadIdx.y; p < parts; p += blockDim.y) {
            double d = means[p * n + c] - m;
            s += squares[p * n + c] + d * d;
        }
    s = over_parts(s) / double(parts);
    if (threadIdx.y == 0 && c < n) {
        middle[c] = m;
        factor[c] = W(1 / sqrt(s + eps));
        square[c] = W(s);
        if (mean) {
            W share = W(momentum), left = W(1 - momentum);
            mean[c] = RUNNING(W(mean[c]) * left + m * share);
            variance[c] = RUNNING(W(variance[c]) * left + W(s) * W(correction) * share);
        }
    }
}
""",
)
# The sum of g over each run, then of g * xhat.
_RUN_SUMS = RowProgram(
    "run_sums",
    _RUNS
    + """
extern "C" __global__ void run_sums(const T* grad, const T* a, const W* middle, const W* factor, W* sums, whole each,
                                    whole groups, whole rows, whole n) {
    EACH_ROW(row, rows) {
        Line<T> g{grad + row * n}, x{a + row * n};
        const whole group = group_of(row, each, groups);
        W s = 0, p = 0, m = a ? middle[group] : W(0);
        EACH(i, k, n) {
            W v = g.get(k, i);
            s += v;
            if (a) p += v * (x.get(k, i) - m);
        }
        s = over_row(s, Add());
        p = over_row(p, Add());
        if (!threadIdx.x) { sums[row] = s; if (a) sums[rows + row] = p * factor[group]; }
    }
}
""",
)
# The same for each group, with channels weighted: one warp per group.
_GROUP_SUMS = Program(
    "group_sums",
    OVER_ROW
    + """
extern "C" __global__ void group_sums(const T* given, const T* weight, T* sums, T* products, whole groups,
                                      whole rows, whole n) {
    for (whole row = blockIdx.x * (whole)blockDim.y + threadIdx.y; row < rows; row += gridDim.x * (whole)blockDim.y) {
        const T *x = given + row * n, *y = x + rows * n, *w = weight ? weight + rest(row, groups) * n : 0;
        W s = 0, p = 0;
        for (whole i = threadIdx.x; i < n; i += 32) {
            W v = w ? w[i] : W(1);
            s += x[i] * v;
            p += y[i] * v;
        }
        s = over_row(s, Add());
        p = over_row(p, Add());
        if (!threadIdx.x) { sums[row] = s; products[row] = p; }
    }
}
""",
)
# (a - middle) * factor * weight + bias, where missing arrays are neutral.
_SCALE = """
struct Scale {
    W middle, factor, level;
    __device__ Scale(const W* middles, const W* factors, const W* weight, const W* bias, whole group, whole channel)
        : middle(middles ? middles[group] : W(0)), factor(factors[group] * (weight ? weight[channel] : W(1))),
          level(bias ? bias[channel] : W(0)) {}
    __device__ W of(W x) const { return (x - middle) * factor + level; }
};
"""
_SCALE_RUNS = Program(
    "scale_runs",
    _RUNS
    + _SCALE
    + """
extern "C" __global__ void scale_runs(const T* a, const W* middle, const W* factor, const W* weight, const W* bias,
                                      T* out, whole each, whole groups, whole channels, whole size, whole n) {
    EACH_OF(i, size) {
        const whole run = quotient(i, n);
        const Scale scale(middle, factor, weight, bias, group_of(run, each, groups), rest(run, channels));
        out[i] = T(scale.of(W(a[i])));
    }
}
""",
)
# The gradient of the input. Both sums are per group, and still to be multiplied by `left` if given; `share` is 1 over
# the number of elements in a group.
_COMBINE = """
struct Combine {
    W middle, own, factor, along, level;
    __device__ Combine(const W* middles, const W* factors, const W* weight, const W* sums, const W* products,
                       const W* left, double share, whole group, whole channel)
        : middle(middles[group]), own(factors[group]) {
        const W f = own, by = -f * W(share) * (left ? left[group] : W(1));
        factor = f * (weight ? weight[channel] : W(1));
        along = products[group] * by;
        level = sums[group] * by;
    }
    __device__ W of(W g, W x) const { return g * factor + (x - middle) * own * along + level; }
};
"""
_COMBINE_RUNS = Program(
    "combine_runs",
    _RUNS
    + _COMBINE
    + """
extern "C" __global__ void combine_runs(const T* grad, const T* a, const W* middle, const W* factor, const W* weight,
                                        const W* sums, const W* products, const W* left, double share, T* out,
                                        whole each, whole groups, whole channels, whole size, whole n) {
    EACH_OF(i, size) {
        const whole run = quotient(i, n), group = group_of(run, each, groups);
        const Combine combine(middle, factor, weight, sums, products, left, share, group, rest(run, channels));
        out[i] = T(combine.of(W(grad[i]), W(a[i])));
    }
}
""",
)
# The same for long runs: per-run values are computed once.
_SCALE_LONG_RUNS = RowProgram(
    "scale_long_runs",
    _RUNS
    + _SCALE
    + """
extern "C" __global__ void scale_long_runs(const T* a, const W* middle, const W* factor, const W* weight, const W* bias,
                                           T* out, whole each, whole groups, whole channels, whole rows, whole n) {
    EACH_ROW(row, rows) {
        Line<T> x{a + row * n};
        Made y{out + row * n};
        const Scale scale(middle, factor, weight, bias, group_of(row, each, groups), rest(row, channels));
        EACH(i, k, n) y.put(k, i, scale.of(x.get(k, i)));
    }
}
""",
)
_COMBINE_LONG_RUNS = RowProgram(
    "combine_long_runs",
    _RUNS
    + _COMBINE
    + """
extern "C" __global__ void combine_long_runs(const T* grad, const T* a, const W* middle, const W* factor,
                                             const W* weight, const W* sums, const W* products, const W* left,
                                             double share, T* out, whole each, whole groups, whole channels, whole rows,
                                             whole n) {
    EACH_ROW(row, rows) {
        Line<T> g{grad + row * n}, x{a + row * n};
        Made y{out + row * n};
        const whole group = group_of(row, each, groups);
        const Combine combine(middle, factor, weight, sums, products, left, share, group, rest(row, channels));
        EACH(i, k, n) y.put(k, i, combine.of(g.get(k, i), x.get(k, i)));
    }
}
""",
)
_LONG_RUN = 64


class _Runs:
    """How an array is divided into runs (images, channels, places), with statistics for `groups` of channels.

    For batch norm a group is one channel of all images; for group norm it is `each` channels of one image.
    """

    def __init__(self, frame):
        self.frame, view = frame, frame.view
        self.in_groups = frame.groups_first
        start = 3 if self.in_groups else 2
        self.images, self.channels, self.places = view[0], math.prod(view[1:start]), math.prod(view[start:])
        self.rows = self.images * self.channels
        self.each = view[2] if self.in_groups else 1
        self.groups = self.rows // self.each if self.in_groups else self.channels
        self.kept = tuple(1 if axis in frame.axes else n for axis, n in enumerate(view))
        self.share = self.groups / math.prod(view)
        self.are_few = are_for_many_blocks(self.rows, self.places)

    def over(self, short, long, out, args):
        """Run one of two programs, which end with (out, each, groups, channels, and what its class appends)."""
        args = *args, out, self.each, self.groups, self.channels
        if self.places >= _LONG_RUN and not self.are_few:
            long.over_rows(out.dtype, self.rows, self.places, args)
        else:
            short.over(out.dtype, out.size, (*args, out.size, self.places))


_runs = lru_cache(256)(_Runs)


def normalized_runs(x, weight, bias, frame, given, running):
    runs, wide, x = _runs(frame), wide_type(x.dtype), dense(x)
    if given is None:
        parts, means, squares = _moments(runs, x, wide)
    else:
        parts, means, squares = 1, of_type(given[0], wide), of_type(given[1], np.float64)
    middle, factor, squares = _settled(x.dtype, runs, parts, means, squares, running)
    out = cupy().empty(frame.view, x.dtype)
    args = x, middle, factor, of_type(weight, wide), of_type(bias, wide)
    runs.over(_SCALE_RUNS, _SCALE_LONG_RUNS, out, args)
    return out, middle, factor, squares


def _moments(runs, x, wide):
    """Return (the number of equal parts of each group, their means, their mean squares around these)."""
    if runs.places == 1 < runs.images and not runs.in_groups:
        return 1, *_moments_along(x.reshape(runs.images, runs.channels), 0)
    parts, rows = (1, runs.groups) if runs.in_groups else (runs.images, runs.rows)
    length = x.size // rows
    if are_for_many_blocks(rows, length):
        means, squares = _moments_along(x.reshape(rows, length), 1)
    else:
        means, squares = cupy().empty(rows, wide), cupy().empty(rows, np.float64)
        _MOMENTS.over_rows(x.dtype, rows, length, (x, means, squares))
    if parts < MANY_PARTS:
        return parts, means, squares
    means, squares = (a.reshape(parts, -1) for a in (means, squares))
    middle, away = _moments_along(means, 0)
    return 1, middle, folded(squares, (0,), "sum", scale=1 / parts) + away


def _moments_along(a, axis):
    """Return (means, mean squares around them in float64) of a matrix along an axis."""
    middle = folded(a, (axis,), "sum", scale=1 / a.shape[axis])
    return middle, folded(a, (axis,), "centred squares", dtype=np.float64, scale=1 / a.shape[axis], middle=middle)


def _settled(dtype, runs, parts, means, squares, running):
    """Return (means, 1 / deviations, mean squares around the means), in shape `kept`, from the moments of the parts."""
    found = [cupy().ndarray(runs.kept, means.dtype) for _ in range(3)]
    mean = variance = None
    momentum = correction = 0.0
    if running is not None:
        mean, variance, momentum = running
        count = runs.images * runs.places
        correction = count / (count - 1) if count > 1 else math.nan
    sizes = float(runs.frame.eps), parts, runs.groups
    args = means, squares, *found, *sizes, mean, variance, float(momentum), correction
    is_own = mean is not None and mean.dtype == dtype
    threads = 32, min(parts, SIDE_BY_SIDE)
    _SETTLE.launch(dtype, -(-runs.groups // 32), threads, args, RUNNING="T" if is_own else "W")
    return found


def _sums(runs, g, x, middle, factor, wide):
    """Return the sums of g and, unless x is None, of g * xhat for each run."""
    if not runs.are_few:
        sums = cupy().empty((1 if x is None else 2, runs.images, runs.channels), wide)
        args = g, x, middle, factor, sums, runs.each, runs.groups
        _RUN_SUMS.over_rows(g.dtype, runs.rows, runs.places, args)
        return sums
    g, x = (None if a is None else a.reshape(runs.rows, runs.places) for a in (g, x))
    found = [folded(g, (1,), "sum")]
    if x is not None:
        kept = (runs.images, -1, 1) if runs.in_groups else (1, -1, 1)
        shape = runs.images, runs.channels // runs.each, runs.each
        middle, factor = (dense(cupy().broadcast_to(a.reshape(kept), shape)).reshape(-1) for a in (middle, factor))
        found.append(folded(g, (1,), "centred products", middle=middle, beside=x) * factor)
    return cupy().stack(found).reshape(-1, runs.images, runs.channels)


def _group_sums(runs, sums, weight, wide):
    """Return both sums for each group, from the sums of its channels and their weights."""
    found = [cupy().empty(runs.groups, wide) for _ in range(2)]
    args = sums, weight, *found, runs.channels // runs.each, runs.groups, runs.each
    _GROUP_SUMS.launch(wide, min(-(-runs.groups // 8), MOST_BLOCKS), (WARP, 8), args)
    return found


def gradients_of_runs(g, x, weight, middle, factor, frame, needs):
    of_input, of_weight, of_bias = needs
    runs, g = _runs(frame), dense(g)
    wide, x = wide_type(g.dtype), None if x is None else of_type(x, g.dtype)
    middle, factor, weight = (of_type(a, wide) for a in (middle, factor, weight))
    grad = grad_weight = grad_bias = of_groups = None
    by_sums = of_input and not frame.fixed
    if by_sums or of_weight or of_bias:
        beside = x if by_sums or of_weight else None
        if runs.places == 1 and not runs.in_groups:
            sums, products = column_sums(g, beside, middle, factor, runs.images, runs.channels, True)
        else:
            of_runs = _sums(runs, g, beside, middle, factor, wide)
            of_groups = _group_sums(runs, of_runs, weight, wide) if by_sums and runs.in_groups else None
            sums, products = totals(of_runs) if of_weight or of_bias or not runs.in_groups else (None, None)
        grad_weight = products.reshape(frame.parameter) if of_weight else None
        grad_bias = sums.reshape(frame.parameter) if of_bias else None
    if of_input:
        grad = cupy().empty(frame.view, g.dtype)
    if by_sums:
        terms = (sums, products, weight) if of_groups is None else (*of_groups, None)
        args = g, x, middle, factor, weight, *terms, runs.share
        runs.over(_COMBINE_RUNS, _COMBINE_LONG_RUNS, grad, args)
    elif of_input:
        runs.over(_SCALE_RUNS, _SCALE_LONG_RUNS, grad, (g, None, factor, weight, None))
    return grad, grad_weight, grad_bias
