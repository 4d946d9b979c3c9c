"""Normalisation on GPUs, forward and backward; arguments and results are those of `_kernels/normalizing.py`.

An array is either rows, each with statistics and all with weights along them (layer norm, rms norm), or runs
(images, channels, places): those of one channel, or of the channels of a group, have statistics in common, and each run
has one weight. Sums of runs become those of channels and groups by a few operations on small arrays.
"""

import math

import numpy as np

from cygrad._kernels.gpu.folds import folded
from cygrad._kernels.gpu.fused import elementwise
from cygrad._kernels.gpu.library import cupy, dense
from cygrad._kernels.gpu.programs import Program, of_type, wide_type
from cygrad._kernels.gpu.rows import RowProgram, are_for_many_blocks

# -- rows --

_NORMALIZE_ROWS = RowProgram(
    "normalize_rows",
    """
extern "C" __global__ void normalize_rows(const T* a, const W* weight, const W* bias, T* out, W* middle, W* factor,
                                          double eps, whole centered, whole rows, whole n) {
    EACH_ROW(row, rows) {
        Row x(a + row * n, n);
        W m = 0, s = 0;
        if (centered) {
            EACH(i, k, n) m += x.get(k, i);
            m = over_row(m, Add()) / W(n);
        }
        EACH(i, k, n) { W d = x.get(k, i) - m; s += d * d; }
        W f = W(1) / sqrt(over_row(s, Add()) / W(n) + W(eps));
        Line<W> scale{weight}, shift{bias};
        Made y{out + row * n};
        EACH(i, k, n) {
            W v = (x.get(k, i) - m) * f;
            if (weight) v *= scale.get(k, i);
            if (bias) v += shift.get(k, i);
            y.put(k, i, v);
        }
        if (!threadIdx.x) { middle[row] = m; factor[row] = f; }
    }
}
""",
)
_ROWS_GRADIENT = RowProgram(
    "rows_gradient",
    """
extern "C" __global__ void rows_gradient(const T* grad, const T* a, const W* weight, const W* middle, const W* factor,
                                         T* out, whole centered, whole rows, whole n) {
    EACH_ROW(row, rows) {
        Row g(grad + row * n, n), x(a + row * n, n);
        W m = middle[row], f = factor[row], s = 0, p = 0;
        Line<W> scale{weight};
        EACH(i, k, n) {
            W h = g.get(k, i) * (weight ? scale.get(k, i) : W(1));
            s += h;
            p += h * (x.get(k, i) - m) * f;
        }
        s = centered ? over_row(s, Add()) / W(n) : W(0);
        p = over_row(p, Add()) / W(n);
        Made y{out + row * n};
        EACH(i, k, n) {
            W h = g.get(k, i) * (weight ? scale.get(k, i) : W(1));
            y.put(k, i, f * (h - s - (x.get(k, i) - m) * f * p));
        }
    }
}
""",
)
# Of some rows for each block, 32 columns of a matrix: the sums of g and of g * xhat, whose statistics are those of the
# row or, with BY_COLUMN, of the column.
_COLUMN_SUMS = Program(
    "column_sums",
    """
extern "C" __global__ void column_sums(const T* grad, const T* a, const W* middle, const W* factor, W* products,
                                       W* sums, whole rows, whole n, whole each) {
    __shared__ W of_products[8][32], of_sums[8][32];
    whole c = blockIdx.x * 32 + threadIdx.x, last = (blockIdx.y + 1) * each;
    W p = 0, s = 0;
    if (c < n)
        for (whole row = blockIdx.y * each + threadIdx.y; row < (last < rows ? last : rows); row += 8) {
            W g = W(grad[row * n + c]);
            whole at = BY_COLUMN ? c : row;
            if (products) p += g * (W(a[row * n + c]) - middle[at]) * factor[at];
            s += g;
        }
    of_products[threadIdx.y][threadIdx.x] = p;
    of_sums[threadIdx.y][threadIdx.x] = s;
    __syncthreads();
    if (threadIdx.y == 0 && c < n) {
        for (int i = 1; i < 8; i++) { p += of_products[i][threadIdx.x]; s += of_sums[i][threadIdx.x]; }
        if (products) products[blockIdx.y * n + c] = p;
        sums[blockIdx.y * n + c] = s;
    }
}
""",
)
_MOST_PARTS = 256


# Of few long rows, with what belongs to each row beside its elements.
_NORMALIZE_LONG = elementwise(
    "normalize_long_rows", "T x, R m, R f, R w, R b", "T out", "out = T((W(x) - W(m)) * W(f) * W(w) + W(b));"
)
_LONG_GRADIENT = elementwise(
    "long_rows_gradient",
    "T g, T x, R m, R f, R w, R s, R p",
    "T out",
    "out = T(W(f) * (W(g) * W(w) - W(s) - (W(x) - W(m)) * W(f) * W(p)));",
)


def _column_sums(g, x, middle, factor, rows, n, by_column):
    """(the sums of g * xhat or None if x is, the sums of g) of the columns of matrices."""
    each = max(64, -(-rows // _MOST_PARTS))
    parts = -(-rows // each)
    products, sums = (cupy().empty((parts, n), wide_type(g.dtype)) for _ in range(2))
    args = g, x, middle, factor, None if x is None else products, sums, rows, n, each
    _COLUMN_SUMS.launch(g.dtype, (-(-n // 32), parts), (32, 8), args, BY_COLUMN=int(by_column))
    return None if x is None else products.sum(0), sums.sum(0)


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
    args = x, of_type(weight, wide), of_type(bias, wide), out, middle, factor, float(frame.eps), int(frame.centered)
    _NORMALIZE_ROWS.over_rows(x.dtype, rows, n, args)
    return out, middle, factor, None


def _normalized_long_rows(a, weight, bias, frame, wide):
    rows, n = a.shape
    middle = folded(a, (1,), "sum", True, scale=1 / n) if frame.centered else cupy().zeros((rows, 1), wide)
    squares = folded(a, (1,), "centred squares", True, scale=1 / n, middle=middle)
    factor = 1 / cupy().sqrt(squares + wide.type(frame.eps))
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
        args = g, x, of_type(weight, wide), middle, factor, grad, int(frame.centered)
        _ROWS_GRADIENT.over_rows(x.dtype, rows, n, args)
    if needs[1] or needs[2]:
        products, sums = _column_sums(g, x if needs[1] else None, middle, factor, rows, n, False)
        grad_weight = products.reshape(frame.parameter) if needs[1] else None
        grad_bias = sums.reshape(frame.parameter) if needs[2] else None
    return grad, grad_weight, grad_bias


# -- runs --

_MOMENTS = RowProgram(
    "moments",
    """
extern "C" __global__ void moments(const T* a, W* middle, W* squares, whole rows, whole n) {
    EACH_ROW(row, rows) {
        Row x(a + row * n, n);
        W m = 0, s = 0;
        EACH(i, k, n) m += x.get(k, i);
        m = over_row(m, Add()) / W(n);
        EACH(i, k, n) { W d = x.get(k, i) - m; s += d * d; }
        s = over_row(s, Add()) / W(n);
        if (!threadIdx.x) { middle[row] = m; squares[row] = s; }
    }
}
""",
)
_RUN_SUMS = RowProgram(
    "run_sums",
    """
extern "C" __global__ void run_sums(const T* grad, const T* a, const W* middle, const W* factor, W* products, W* sums,
                                    whole count, whole rows, whole n) {
    EACH_ROW(row, rows) {
        Line<T> g{grad + row * n}, x{a + row * n};
        W s = 0, p = 0, m = a ? middle[row % count] : W(0);
        EACH(i, k, n) {
            W own = g.get(k, i);
            s += own;
            if (a) p += own * (x.get(k, i) - m);
        }
        s = over_row(s, Add());
        p = over_row(p, Add());
        if (!threadIdx.x) { sums[row] = s; if (a) products[row] = p * factor[row % count]; }
    }
}
""",
)
# Of each run by its numbers, of which there are `count`: (a - middle) * scale + shift, and grad * scale more.
_SCALE_RUNS = Program(
    "scale_runs",
    """
extern "C" __global__ void scale_runs(const T* a, const W* middle, const W* scale, const W* shift, T* out, whole count,
                                      whole size, whole n) {
    EACH_OF(i, size) {
        whole r = rest(quotient(i, n), count);
        W v = W(a[i]);
        if (middle) v -= middle[r];
        v *= scale[r];
        out[i] = T(shift ? v + shift[r] : v);
    }
}
""",
)
_COMBINE_RUNS = Program(
    "combine_runs",
    """
extern "C" __global__ void combine_runs(const T* grad, const T* a, const W* middle, const W* scale, const W* along,
                                        const W* level, T* out, whole count, whole size, whole n) {
    EACH_OF(i, size) {
        whole r = rest(quotient(i, n), count);
        out[i] = T(W(grad[i]) * scale[r] + (W(a[i]) - middle[r]) * along[r] + level[r]);
    }
}
""",
)
# The same where runs are long: what belongs to a run is found once.
_SCALE_LONG_RUNS = RowProgram(
    "scale_long_runs",
    """
extern "C" __global__ void scale_long_runs(const T* a, const W* middle, const W* scale, const W* shift, T* out,
                                           whole count, whole rows, whole n) {
    EACH_ROW(row, rows) {
        Line<T> x{a + row * n};
        Made y{out + row * n};
        whole r = row % count;
        W m = middle ? middle[r] : W(0), f = scale[r], b = shift ? shift[r] : W(0);
        EACH(i, k, n) y.put(k, i, (x.get(k, i) - m) * f + b);
    }
}
""",
)
_COMBINE_LONG_RUNS = RowProgram(
    "combine_long_runs",
    """
extern "C" __global__ void combine_long_runs(const T* grad, const T* a, const W* middle, const W* scale,
                                             const W* along, const W* level, T* out, whole count, whole rows,
                                             whole n) {
    EACH_ROW(row, rows) {
        Line<T> g{grad + row * n}, x{a + row * n};
        Made y{out + row * n};
        whole r = row % count;
        W m = middle[r], f = scale[r], by = along[r], b = level[r];
        EACH(i, k, n) y.put(k, i, g.get(k, i) * f + (x.get(k, i) - m) * by + b);
    }
}
""",
)
_LONG_RUN = 64


def _each_run(short, long, runs, out, args):
    """Run one of two programs, which end with (out, count, and what both classes of programs add)."""
    args = *args, out, runs.count
    if runs.places >= _LONG_RUN and not runs.are_few:
        long.over_rows(out.dtype, runs.rows, runs.places, args)
    else:
        short.over(out.dtype, out.size, (*args, out.size, runs.places))


class _Runs:
    """How an array is runs: (images, channels, places), `own` the shape of statistics beside which weights stand.

    For batch norm statistics are (channels); for group norm (images, groups, 1) beside weights (groups, channels).
    """

    def __init__(self, frame):
        self.frame, view = frame, frame.view
        self.in_groups = frame.groups_first
        start = 3 if self.in_groups else 2
        self.images, self.channels, self.places = view[0], math.prod(view[1:start]), math.prod(view[start:])
        self.groups = view[1] if self.in_groups else None
        self.rows = self.images * self.channels
        self.kept = tuple(1 if axis in frame.axes else n for axis, n in enumerate(view))
        self.count = self.rows if self.in_groups else self.channels  # of different runs
        self.are_few = are_for_many_blocks(self.rows, self.places)

    def over(self, sums):
        """Means over runs of sums (images, channels), as (channels) or (images, groups, 1)."""
        if self.in_groups:
            return sums.reshape(self.images, self.groups, -1).mean(2, keepdims=True)
        return sums.reshape(self.images, self.channels).mean(0)

    def own(self, statistics):
        """Statistics as (channels) or (images, groups, 1)."""
        return statistics.reshape((self.images, self.groups, 1) if self.in_groups else (self.channels,))

    def weights(self, values, dtype):
        """Weights as (channels) or (groups, channels of a group); None for None."""
        if values is None:
            return None
        return values.astype(dtype, copy=False).reshape((self.groups, -1) if self.in_groups else (self.channels,))

    def each(self, values, dtype):
        """What belongs to statistics or weights, for each different run."""
        if self.in_groups:
            values = cupy().broadcast_to(values, (self.images, self.groups, self.channels // self.groups))
        return of_type(values, dtype)


def _normalized_runs(x, weight, bias, frame, given):
    runs, wide, x = _Runs(frame), wide_type(x.dtype), dense(x)
    middle, squares = given or _moments(runs, x, wide)
    middle, squares = (runs.own(a.astype(wide, copy=False)) for a in (middle, squares))
    factor = 1 / cupy().sqrt(squares + wide.type(frame.eps))
    weight, bias = runs.weights(weight, wide), runs.weights(bias, wide)
    scale = factor if weight is None else factor * weight
    shift = None if bias is None else runs.each(bias, wide)
    out = cupy().empty(frame.view, x.dtype)
    args = x, runs.each(middle, wide), runs.each(scale, wide), shift
    _each_run(_SCALE_RUNS, _SCALE_LONG_RUNS, runs, out, args)
    return out, *(a.reshape(runs.kept) for a in (middle, factor, squares))


def _moments(runs, x, wide):
    """(means, mean squares about them) of what has statistics in common."""
    if runs.places == 1:
        a = x.reshape(runs.images, runs.channels).astype(wide, copy=False)
        means, squares = a, cupy().zeros_like(a)
    else:
        if runs.are_few:
            a = x.reshape(runs.rows, runs.places)
            means = folded(a, (1,), "sum", True, scale=1 / runs.places)
            squares = folded(a, (1,), "centred squares", scale=1 / runs.places, middle=means)
            means, squares = (m.reshape(runs.images, runs.channels) for m in (means, squares))
        else:
            means, squares = (cupy().empty((runs.images, runs.channels), wide) for _ in range(2))
            _MOMENTS.over_rows(x.dtype, runs.rows, runs.places, (x, means, squares))
    middle = runs.over(means)
    away = means.reshape(runs.images, runs.groups, -1) - middle if runs.in_groups else means - middle
    return middle, runs.over(squares) + runs.over(away * away)


def _sums(runs, g, x, middle, factor, wide):
    """(the sums of g * xhat, or None if x is, the sums of g) of runs, or of channels if a run is one element."""
    if runs.places == 1 and not runs.in_groups:
        return _column_sums(g, x, middle, factor, runs.images, runs.channels, True)
    if runs.are_few:
        a, beside = (None if b is None else b.reshape(runs.rows, runs.places) for b in (g, x))
        sums = folded(a, (1,), "sum")
        if x is None:
            return None, sums
        middle, factor = (
            m.reshape(-1) if m.size == runs.rows else cupy().tile(m, runs.images) for m in (middle, factor)
        )
        products = folded(a, (1,), "centred products", middle=middle, beside=beside)
        return products * factor, sums
    products, sums = (cupy().empty((runs.images, runs.channels), wide) for _ in range(2))
    _RUN_SUMS.over_rows(g.dtype, runs.rows, runs.places, (g, x, middle, factor, products, sums, runs.count))
    return None if x is None else products, sums


def _gradients_of_runs(g, x, weight, middle, factor, frame, needs):
    of_input, of_weight, of_bias = needs
    runs, g = _Runs(frame), dense(g)
    wide, x = wide_type(g.dtype), None if x is None else of_type(x, g.dtype)
    middle, factor = (runs.own(a.astype(wide, copy=False)) for a in (middle, factor))
    each_middle, w = runs.each(middle, wide), runs.weights(weight, wide)
    grad = grad_weight = grad_bias = products = sums = None
    if of_weight or of_bias or (of_input and not frame.fixed):
        needs_products = of_weight or (of_input and not frame.fixed)
        args = x if needs_products else None, each_middle, runs.each(factor, wide), wide
        products, sums = _sums(runs, g, *args)
        if of_weight:
            grad_weight = products.reshape(-1, runs.channels).sum(0).reshape(frame.parameter)
        if of_bias:
            grad_bias = sums.reshape(-1, runs.channels).sum(0).reshape(frame.parameter)
    if of_input:
        grad = cupy().empty(frame.view, g.dtype)
        scale = runs.each(factor if w is None else factor * w, wide)
        if frame.fixed:
            _each_run(_SCALE_RUNS, _SCALE_LONG_RUNS, runs, grad, (g, None, scale, None))
        else:
            level, along = (_level(runs, a, w, g.size, factor) for a in (sums, products))
            terms = g, x, each_middle, scale, runs.each(along * factor, wide), runs.each(level, wide)
            _each_run(_COMBINE_RUNS, _COMBINE_LONG_RUNS, runs, grad, terms)
    return grad, grad_weight, grad_bias


def _level(runs, sums, w, size, factor):
    """What is subtracted from gradients: the mean of what the sums are of, times the factor, with the weights."""
    if runs.in_groups:
        sums = sums.reshape(runs.images, runs.groups, -1)
        total = (sums if w is None else sums * w).sum(2, keepdims=True)
        return total * (-factor / (size // max(runs.images * runs.groups, 1)))
    total = sums.reshape(-1, runs.channels).sum(0)
    return (total if w is None else total * w) * (-factor / (size // max(runs.channels, 1)))


# -- both --


def _are_rows(frame):
    return frame.first >= 0 and not frame.fixed


def normalized(x, weight, bias, frame, given):
    """(result, mean, 1 / deviation, mean square about the mean or None)."""
    if not x.size:
        kept = tuple(1 if axis in frame.axes else n for axis, n in enumerate(frame.view))
        middle = cupy().full(kept, np.nan, wide_type(x.dtype))
        return cupy().empty(frame.view, x.dtype), middle, middle, middle
    if _are_rows(frame):
        return _normalized_rows(x, weight, bias, frame)
    return _normalized_runs(x, weight, bias, frame, given)


def gradients(g, x, weight, middle, factor, frame, needs):
    """The gradients of input, weight and bias, from that of the result; None for those that are not needed."""
    if not g.size:
        wide = wide_type(g.dtype)
        shapes = zip(needs, (frame.view, frame.parameter, frame.parameter))
        return [cupy().zeros(shape, wide) if need else None for need, shape in shapes]
    if _are_rows(frame) and x is not None:
        return _gradients_of_rows(g, x, weight, middle, factor, frame, needs)
    if _are_rows(frame):  # the bias alone
        n = math.prod(frame.parameter)
        _, sums = _column_sums(dense(g), None, None, None, g.size // n, n, False)
        return None, None, sums.reshape(frame.parameter)
    return _gradients_of_runs(g, x, weight, middle, factor, frame, needs)
