"""Normalization on GPUs, forward and backward; arguments and results are those of `_kernels/cpu/nn/normalization.py`.

An array is either rows, each with its own statistics and all with weights along them (layer norm, rms norm), or runs
(images, channels, places). The runs of one channel, or of the channels of a group, share statistics, and each run has
one weight. The kernels for runs derive the values of a channel or group themselves, from a few numbers.
"""

import math
from typing import Any

import numpy as np

from cygrad._kernels.cpu.nn.normalization import normalized_and_followed
from cygrad._kernels.device.cupy_library import cupy, dense, is_array, name_of
from cygrad._kernels.gpu.launch.elementwise_program import elementwise
from cygrad._kernels.gpu.launch.groups import Later, Several, waits_by
from cygrad._kernels.gpu.launch.program import EXACT, FLOATS, of_type, wide_type
from cygrad._kernels.gpu.launch.reduction_program import folded
from cygrad._kernels.gpu.launch.row_program import (
    LINE,
    NUMBER,
    ROW,
    VALUE,
    RowFunction,
    RowProgram,
    are_for_many_blocks,
)
from cygrad._kernels.gpu.nn.column_sums import column_sums
from cygrad._kernels.gpu.nn.runs import gradients_of_runs, normalized_runs

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
        sums, products = column_sums(g, x if needs[1] else None, middle, factor, rows, n, False)
        grad_weight = products.reshape(frame.parameter) if needs[1] else None
        grad_bias = sums.reshape(frame.parameter) if needs[2] else None
    return grad, grad_weight, grad_bias


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
        return normalized_runs(x, weight, bias, frame, given, running)
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
        column_sums(g, x, middle, factor, rows, n, False, others[3:] if of_products else others)

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
        sums, _ = column_sums(dense(g), None, None, None, g.size // n, n, False)
        return None, None, sums.reshape(frame.parameter)
    return gradients_of_runs(g, x, weight, middle, factor, frame, needs)
