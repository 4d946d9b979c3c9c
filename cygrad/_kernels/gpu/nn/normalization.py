"""Normalization on GPUs, forward and backward; arguments and results are those of `_kernels/cpu/nn/normalization.py`.

An array is either rows, each with its own statistics and all with weights along them (layer norm, rms norm), or runs
(images, channels, places). The runs of one channel, or of the channels of a group, share statistics, and each run has
one weight. The kernels for runs derive the values of a channel or group themselves, from a few numbers.
"""

import math
from functools import lru_cache
from typing import Any

import numpy as np

from cygrad._kernels.cpu.nn.normalization import normalized_and_followed
from cygrad._kernels.device.cupy_library import cupy, dense, is_array, name_of
from cygrad._kernels.gpu.launch.elementwise_program import elementwise
from cygrad._kernels.gpu.launch.groups import Later, Several, waits_by
from cygrad._kernels.gpu.launch.program import EXACT, FLOATS, Program, of_type, wide_type
from cygrad._kernels.gpu.launch.reduction_program import folded
from cygrad._kernels.gpu.launch.row_program import (
    LINE,
    MOST_BLOCKS,
    NUMBER,
    OVER_ROW,
    ROW,
    VALUE,
    WARP,
    RowFunction,
    RowProgram,
    are_for_many_blocks,
)

# -- rows --

_NORMALIZED_ROW = """
// The mean of a row, or 0, and 1 / the root of the mean square around it.
template <bool IS_CENTERED> struct NormalizedRow {
    W m, f;
    template <typename X> __device__ NormalizedRow(X& x, double eps, whole n) {
        m = 0;
        W s = 0;
        if (IS_CENTERED) {
            W sum = 0;
            EACH(i, k, n) sum += x.get(k, i);
            m = over_row(sum, Add()) / W(n);
        }
        EACH(i, k, n) { W d = x.get(k, i) - m; s += d * d; }
        s = over_row(s, Add()) / W(n) + W(eps);
        f = W(1) / sqrt(s);
        if (!is_accurate(s)) {  // again, divided by the largest
            W top = 0, q = 0;
            EACH(i, k, n) { W d = fabs(x.get(k, i) - m); top = Larger()(d, top); }
            top = over_row(top, Larger());
            if (top > W(0) && top < infinity(W())) {
                EACH(i, k, n) { W d = (x.get(k, i) - m) / top; q += d * d; }
                f = W(1) / sqrt(over_row(q, Add()) / W(n) + W(eps) / top / top) / top;
            }
        }
    }
    __device__ W of(W x) const { return (x - m) * f; }
};
"""
_NORMALIZE_ROWS = RowProgram(
    "normalize_rows",
    _NORMALIZED_ROW
    + """
extern "C" __global__ void normalize_rows(const T* a, const W* weight, const W* bias, T* out, W* middle, W* factor,
                                          double eps, whole rows, whole n) {
    EACH_ROW(row, rows) {
        Row x(a + row * n, n);
        NormalizedRow<CENTERED> found(x, eps, n);
        Line<W> scale{weight}, shift{bias};
        Made y{out + row * n};
        EACH(i, k, n) {
            W v = found.of(x.get(k, i));
            if (weight) v *= scale.get(k, i);
            if (bias) v += shift.get(k, i);
            y.put(k, i, v);
        }
        if (!threadIdx.x) { middle[row] = found.m; factor[row] = found.f; }
    }
}
""",
    options=EXACT,
)
_ROW_GRADIENT = """
// h is the gradient of the result times the weight.
template <bool IS_CENTERED> struct RowGradient {
    W m, f, s, p;
    template <typename G, typename X, typename S>
    __device__ RowGradient(G& g, X& x, S& scale, W middle, W factor, whole n) : m(middle), f(factor) {
        W sum = 0, products = 0;
        EACH(i, k, n) {
            W h = g.get(k, i) * scale.get(k, i);
            sum += h;
            products += h * (x.get(k, i) - m) * f;
        }
        s = IS_CENTERED ? over_row(sum, Add()) / W(n) : W(0);
        p = over_row(products, Add()) / W(n);
    }
    __device__ W of(W h, W x) const { return f * (h - s - (x - m) * f * p); }
};
"""
_ROWS_GRADIENT = RowProgram(
    "rows_gradient",
    _ROW_GRADIENT
    + """
struct Scale {
    Line<W> line;
    __device__ W get(whole k, whole i) { return line.memory ? line.get(k, i) : W(1); }
};
extern "C" __global__ void rows_gradient(const T* grad, const T* a, const W* weight, const W* middle, const W* factor,
                                         T* out, whole rows, whole n) {
    EACH_ROW(row, rows) {
        Row g(grad + row * n, n), x(a + row * n, n);
        Scale scale{{weight}};
        RowGradient<CENTERED> found(g, x, scale, middle[row], factor[row], n);
        Made y{out + row * n};
        EACH(i, k, n) y.put(k, i, found.of(g.get(k, i) * scale.get(k, i), x.get(k, i)));
    }
}
""",
    options=EXACT,
)


def _functions(centered):
    """Return (normalization, its gradient) as functions of rows."""
    kind = f"<{int(centered)}>"
    return (
        RowFunction(
            "normalize_rows",
            _NORMALIZED_ROW,
            (("x", ROW), ("weight", LINE), ("bias", LINE), ("eps", NUMBER)),
            f"NormalizedRow{kind} {{self}}({{x}}, {{eps}}, n)",
            "{self}.of({x}) * {weight} + {bias}",
            (("{self}.m", True), ("{self}.f", True)),
        ),
        RowFunction(
            "rows_gradient",
            _ROW_GRADIENT,
            (("g", ROW), ("x", ROW), ("weight", LINE), ("m", VALUE), ("f", VALUE)),
            f"RowGradient{kind} {{self}}({{g}}, {{x}}, {{weight}}, {{m}}, {{f}}, n)",
            "{self}.of({g} * {weight}, {x})",
        ),
    )


_FUNCTIONS = _functions(False), _functions(True)
# A block handles some of the rows and 32 columns of a matrix: the sums of g and, if x is given, of g * xhat. Statistics
# are per row or, with BY_COLUMN, per column.
_COLUMN_SUMS = Program(
    "column_sums",
    """
extern "C" __global__ void column_sums(const T* grad, const T* a, const W* middle, const W* factor, W* sums,
                                       whole rows, whole n, whole each) {
    __shared__ W of_products[8][32], of_sums[8][32];
    whole c = blockIdx.x * 32 + threadIdx.x, last = (blockIdx.y + 1) * each;
    W p = 0, s = 0;
    if (c < n)
        for (whole row = blockIdx.y * each + threadIdx.y; row < (last < rows ? last : rows); row += 8) {
            W g = W(grad[row * n + c]);
            whole at = BY_COLUMN ? c : row;
            if (a) p += g * (W(a[row * n + c]) - middle[at]) * factor[at];
            s += g;
        }
    of_products[threadIdx.y][threadIdx.x] = p;
    of_sums[threadIdx.y][threadIdx.x] = s;
    __syncthreads();
    if (threadIdx.y == 0 && c < n) {
        for (int i = 1; i < 8; i++) { p += of_products[i][threadIdx.x]; s += of_sums[i][threadIdx.x]; }
        sums[blockIdx.y * n + c] = s;
        if (a) sums[(gridDim.y + blockIdx.y) * n + c] = p;
    }
}
""",
)
_MOST_PARTS = 256
_OVER_PARTS = """
// The sum over what threads with the same x have.
template <typename V> __device__ V over_parts(V v) {
    __shared__ V kept[32][32];
    __syncthreads();
    kept[threadIdx.y][threadIdx.x] = v;
    __syncthreads();
    v = kept[0][threadIdx.x];
    for (int i = 1; i < blockDim.y; i++) v += kept[i][threadIdx.x];
    return v;
}
"""
_TOTALS = Program(
    "totals",
    _OVER_PARTS
    + """
extern "C" __global__ void __launch_bounds__(1024) totals(const T* given, T* first, T* second, whole parts, whole n) {
    const whole c = blockIdx.x * (whole)32 + threadIdx.x;
    const T* from = given + blockIdx.y * parts * n;
    W s = 0;
    if (c < n) for (whole p = threadIdx.y; p < parts; p += blockDim.y) s += from[p * n + c];
    s = over_parts(s);
    if (threadIdx.y == 0 && c < n) (blockIdx.y ? second : first)[c] = s;
}
""",
)
_SIDE_BY_SIDE, _MANY_PARTS = 32, 1 << 10


# For few long rows, with per-row values broadcast along the row.
_NORMALIZE_LONG = elementwise(
    "normalize_long_rows", "T x, R m, R f, R w, R b", "T out", "out = T((W(x) - W(m)) * W(f) * W(w) + W(b));"
)
_LONG_GRADIENT = elementwise(
    "long_rows_gradient",
    "T g, T x, R m, R f, R w, R s, R p",
    "T out",
    "out = T(W(f) * (W(g) * W(w) - W(s) - (W(x) - W(m)) * W(f) * W(p)));",
)


def _column_sums(g, x, middle, factor, rows, n, by_column, outs=()):
    """Return (sums of g, sums of g * xhat or None if x is None) over the columns of matrices, in arrays if given."""
    each = max(64, -(-rows // _MOST_PARTS))
    parts = -(-rows // each)
    sums = cupy().empty((1 if x is None else 2, parts, n), wide_type(g.dtype))
    args = g, x, middle, factor, sums, rows, n, each
    _COLUMN_SUMS.launch(g.dtype, (-(-n // 32), parts), (32, 8), args, BY_COLUMN=int(by_column))
    return _totals(sums, outs)


def _totals(sums, outs=()):
    """Return (the first sums, the second or None) of an array (one or two, parts, columns), over the parts.

    They are in the arrays `outs`, if given.
    """
    count, parts, n = sums.shape
    if parts > _MANY_PARTS:
        sums, parts = folded(sums, (1,), "sum", True), 1
    first, second = (*outs, *(cupy().empty(n, sums.dtype) for _ in range(len(outs), count)), None)[:2]
    threads = 32, min(parts, _SIDE_BY_SIDE)
    _TOTALS.launch(sums.dtype, (-(-n // 32), count), threads, (sums, first, second, parts, n))
    return first, second


def _normalized_rows(x, weight, bias, frame):
    first = frame.first
    rows, n = math.prod(frame.view[:first]), math.prod(frame.view[first:])
    wide, x = wide_type(x.dtype), dense(x)
    kept = frame.view[:first] + (1,) * len(frame.axes)
    if are_for_many_blocks(rows, n):
        given = weight if weight is None else weight.reshape(-1), bias if bias is None else bias.reshape(-1)
        out, *own = _normalized_long_rows(x.reshape(rows, n), *given, frame, wide)
        return out.reshape(frame.view), *(a.reshape(kept) for a in own), None
    out = cupy().empty(frame.view, x.dtype)
    middle, factor = (cupy().empty(kept, wide) for _ in range(2))
    args = x, of_type(weight, wide), of_type(bias, wide), out, middle, factor, float(frame.eps)
    _NORMALIZE_ROWS.over_rows(x.dtype, rows, n, args, CENTERED=int(frame.centered))
    return out, middle, factor, None


def _normalized_long_rows(a, weight, bias, frame, wide):
    rows, n = a.shape
    middle = folded(a, (1,), "sum", True, scale=1 / n) if frame.centered else cupy().zeros((rows, 1), wide)
    squares = folded(a, (1,), "centred squares", True, np.float64, scale=1 / n, middle=middle)
    factor = (1 / cupy().sqrt(squares + frame.eps)).astype(wide, copy=False)
    weight = wide.type(1) if weight is None else weight.astype(wide, copy=False)
    bias = wide.type(0) if bias is None else bias.astype(wide, copy=False)
    return _NORMALIZE_LONG(a, middle, factor, weight, bias), middle, factor


def _gradient_of_long_rows(g, x, weight, middle, factor, frame, wide):
    rows, n = x.shape
    middle, factor, given, beside = middle.reshape(rows, 1), factor.reshape(rows, 1), g, x
    if weight is None:
        weight = wide.type(1)
    else:
        weight = weight.reshape(-1).astype(wide, copy=False)
        given, beside = g.astype(wide, copy=False) * weight, x.astype(wide, copy=False)
    level = folded(given, (1,), "sum", True, scale=1 / n) if frame.centered else cupy().zeros((rows, 1), wide)
    along = folded(given, (1,), "centred products", True, scale=1 / n, middle=middle, beside=beside) * factor
    return _LONG_GRADIENT(g, x, middle, factor, weight, level, along)


def _gradients_of_rows(g, x, weight, middle, factor, frame, needs):
    first = frame.first
    rows, n = math.prod(frame.view[:first]), math.prod(frame.view[first:])
    wide, x = wide_type(x.dtype), dense(x)
    g, middle, factor = of_type(g, x.dtype), dense(middle), dense(factor)
    grad = grad_weight = grad_bias = None
    if needs[0] and are_for_many_blocks(rows, n):
        given = g.reshape(rows, n), x.reshape(rows, n), weight, middle, factor
        grad = _gradient_of_long_rows(*given, frame, wide).reshape(frame.view)
    elif needs[0]:
        grad = cupy().empty(frame.view, x.dtype)
        args = g, x, of_type(weight, wide), middle, factor, grad
        _ROWS_GRADIENT.over_rows(x.dtype, rows, n, args, CENTERED=int(frame.centered))
    if needs[1] or needs[2]:
        sums, products = _column_sums(g, x if needs[1] else None, middle, factor, rows, n, False)
        grad_weight = products.reshape(frame.parameter) if needs[1] else None
        grad_bias = sums.reshape(frame.parameter) if needs[2] else None
    return grad, grad_weight, grad_bias


# -- runs --
# The runs of an image are its channels; `each` adjacent ones form a group and share statistics. The number of groups
# counts those of all images or, if all images share statistics, equals the number of channels.

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
    _OVER_PARTS
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


def _normalized_runs(x, weight, bias, frame, given, running):
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
    if parts < _MANY_PARTS:
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
    threads = 32, min(parts, _SIDE_BY_SIDE)
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


def _gradients_of_runs(g, x, weight, middle, factor, frame, needs):
    of_input, of_weight, of_bias = needs
    runs, g = _runs(frame), dense(g)
    wide, x = wide_type(g.dtype), None if x is None else of_type(x, g.dtype)
    middle, factor, weight = (of_type(a, wide) for a in (middle, factor, weight))
    grad = grad_weight = grad_bias = of_groups = None
    by_sums = of_input and not frame.fixed
    if by_sums or of_weight or of_bias:
        beside = x if by_sums or of_weight else None
        if runs.places == 1 and not runs.in_groups:
            sums, products = _column_sums(g, beside, middle, factor, runs.images, runs.channels, True)
        else:
            of_runs = _sums(runs, g, beside, middle, factor, wide)
            of_groups = _group_sums(runs, of_runs, weight, wide) if by_sums and runs.in_groups else None
            sums, products = _totals(of_runs) if of_weight or of_bias or not runs.in_groups else (None, None)
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


# -- both --


def _are_rows(frame):
    return frame.first >= 0 and not frame.fixed


def _can_follow(x, means, variances, momentum):
    """Whether the launch that normalizes can also update these running statistics."""
    return all(
        is_array(a)
        and a.data.device_id == x.data.device_id
        and a.flags.c_contiguous
        and a.dtype == means.dtype
        and a.dtype in (x.dtype, wide_type(x.dtype))
        for a in (means, variances)
    )


def _rows_of(x, frame):
    """Return (rows, their length) if single blocks normalize the rows of an array that is not empty, else None."""
    if not (x.size and _are_rows(frame) and name_of(x.dtype) in FLOATS and x.flags.c_contiguous):
        return None
    rows, n = math.prod(frame.view[: frame.first]), math.prod(frame.view[frame.first :])
    return None if are_for_many_blocks(rows, n) else (rows, n)


def _is_line(a, dtype):
    return a is None or (a.flags.c_contiguous and a.dtype in (dtype, wide_type(dtype)))


def _normalized_later(x, weight, bias, frame, given, running=None):
    """Return (what groups let wait, operands) of `normalized`, or None."""
    found = _rows_of(x, frame)
    if found is None or not (_is_line(weight, x.dtype) and _is_line(bias, x.dtype)):
        return None
    kept = frame.view[: frame.first] + (1,) * len(frame.axes)
    operands = x, weight, bias, float(frame.eps)
    function = _FUNCTIONS[frame.centered][0]
    return function.call(operands, frame.view, *found, kept, lambda *outs: (*outs, None))


@waits_by(_normalized_later)
def normalized(x, weight, bias, frame, given, running=None):
    """Return (result, mean, 1 / deviation, mean square around the mean or None), and update `running` statistics."""
    if not x.size:
        kept = tuple(1 if axis in frame.axes else n for axis, n in enumerate(frame.view))
        middle = cupy().full(kept, np.nan, wide_type(x.dtype))
        return cupy().empty(frame.view, x.dtype), middle, middle, middle
    if _are_rows(frame):
        return _normalized_rows(x, weight, bias, frame)
    if running is None or _can_follow(x, *running):
        return _normalized_runs(x, weight, bias, frame, given, running)
    return normalized_and_followed(x, weight, bias, frame, running)


def _gradients_later(g, x, weight, middle, factor, frame, needs):
    """Return what groups let wait of `gradients`, or None."""
    found = None if x is None else _rows_of(x, frame)
    if found is None or g.dtype != x.dtype or not (g.flags.c_contiguous and _is_line(weight, x.dtype)):
        return None
    rows, n = found
    calls: list = []
    if needs[0]:
        function = _FUNCTIONS[frame.centered][1]
        calls.append(function.call((g, x, weight, middle, factor), frame.view, rows, n, (), lambda out: out))
    if needs[1] or needs[2]:
        calls.append(_column_sums_later(g, x, middle, factor, rows, n, needs[1]))
    if None in calls:
        return None
    parameter = frame.parameter

    def result(*found: Any) -> tuple:
        grad = found[0] if needs[0] else None
        if not (needs[1] or needs[2]):
            return grad, None, None
        sums, products = found[-1] if needs[1] else (found[-1], None)
        of_weight = None if products is None else products.reshape(parameter)
        return grad, of_weight, sums.reshape(parameter) if needs[2] else None

    return Several(calls, result)


def _column_sums_later(g, x, middle, factor, rows, n, of_products):
    """Return (work, operands) that compute (sums,) or (sums, products) of `_column_sums`."""
    outs = [cupy().empty(n, wide_type(g.dtype)) for _ in range(2 if of_products else 1)]

    def do(g, *others):
        x, middle, factor = others[:3] if of_products else (None, None, None)
        _column_sums(g, x, middle, factor, rows, n, False, others[3:] if of_products else others)

    return Later(outs, do, always=True), (g, x, middle, factor) if of_products else (g,)


@waits_by(_gradients_later)
def gradients(g, x, weight, middle, factor, frame, needs):
    """Return the gradients of input, weight and bias, given that of the result; None where not needed."""
    if not g.size:
        wide = wide_type(g.dtype)
        shapes = zip(needs, (frame.view, frame.parameter, frame.parameter))
        return [cupy().zeros(shape, wide) if need else None for need, shape in shapes]
    if _are_rows(frame) and x is not None:
        return _gradients_of_rows(g, x, weight, middle, factor, frame, needs)
    if _are_rows(frame):  # only the bias
        n = math.prod(frame.parameter)
        sums, _ = _column_sums(dense(g), None, None, None, g.size // n, n, False)
        return None, None, sums.reshape(frame.parameter)
    return _gradients_of_runs(g, x, weight, middle, factor, frame, needs)
