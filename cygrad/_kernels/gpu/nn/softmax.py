"""Softmax, negative log-likelihood and cross-entropy on GPUs; takes the arguments of `_kernels/cpu/nn/softmax.pyx`.

An out-of-bounds class gives NaN: raising, as on the CPU, would have to wait for the GPU.
"""

from typing import NamedTuple

from cygrad._kernels.cpu.base import numpy_fallback
from cygrad._kernels.device.cupy_library import cupy, dense
from cygrad._kernels.gpu.launch.elementwise_program import elementwise
from cygrad._kernels.gpu.launch.groups import waits_by
from cygrad._kernels.gpu.launch.program import EXACT, Program, of_type, wide_type
from cygrad._kernels.gpu.launch.reduction_program import folded
from cygrad._kernels.gpu.launch.row_program import (
    OVER_ROW,
    ROW,
    WARP,
    RowFunction,
    RowProgram,
    are_for_many_blocks,
    split,
)

NONE, MEAN = 0, 1  # codes of reductions

# -- softmax --
# Along the last axis, a row has a warp or a block of threads. Along others, each column has one thread, so that
# neighboring threads read neighboring elements.

_EXPONENTIALS = """
// The largest element of a row, and the sum of exp(x - largest).
struct Exponentials {
    W largest, sum;
    template <typename X> __device__ Exponentials(X& x, whole n) {
        W most = -infinity(W()), s = 0;
        EACH(i, k, n) most = Larger()(x.get(k, i), most);
        largest = most = over_row(most, Larger());
        EACH(i, k, n) s += exp(x.get(k, i) - most);
        sum = over_row(s, Add());
    }
};
"""
_SOFTMAX_OF_ROW = (
    _EXPONENTIALS
    + """
template <bool IN_LOGARITHMS> struct Softmax : Exponentials {
    W scale;
    template <typename X> __device__ Softmax(X& x, whole n) : Exponentials(x, n) {
        scale = IN_LOGARITHMS ? log(sum) : W(1) / sum;
    }
    __device__ W of(W x) const {
        W d = x - largest;
        return IN_LOGARITHMS ? d - scale : exp(d) * scale;
    }
};
"""
)
_ROWS = (
    _SOFTMAX_OF_ROW
    + """
extern "C" __global__ void softmax(const T* a, T* out, whole rows, whole n) {
    EACH_ROW(row, rows) {
        Row x(a + row * n, n);
        Softmax<LOGARITHM> found(x, n);
        Made y{out + row * n};
        EACH(i, k, n) y.put(k, i, found.of(x.get(k, i)));
    }
}
"""
)
_COLUMNS = """
extern "C" __global__ void softmax_of_columns(const T* a, T* out, whole columns, whole n, whole after) {
    EACH_OF(c, columns) {
        const T* x = a + c / after * n * after + c % after;
        T* y = out + (x - a);
        W largest = W(x[0]), sum = 0;
        for (whole i = 1; i < n; i++) { W v = W(x[i * after]); largest = v > largest || v != v ? v : largest; }
        for (whole i = 0; i < n; i++) sum += exp(W(x[i * after]) - largest);
        W scale = LOGARITHM ? log(sum) : W(1) / sum;
        for (whole i = 0; i < n; i++) {
            W d = W(x[i * after]) - largest;
            y[i * after] = T(LOGARITHM ? d - scale : exp(d) * scale);
        }
    }
}
"""
_GRADIENT_OF_ROW = """
template <bool IN_LOGARITHMS> struct SoftmaxGradient {
    W sum;
    template <typename G, typename Y> __device__ SoftmaxGradient(G& g, Y& y, whole n) {
        W s = 0;
        EACH(i, k, n) s += IN_LOGARITHMS ? g.get(k, i) : g.get(k, i) * y.get(k, i);
        sum = over_row(s, Add());
    }
    __device__ W of(W g, W y) const { return IN_LOGARITHMS ? g - exp(y) * sum : (g - sum) * y; }
};
"""
_ROWS_BACK = (
    _GRADIENT_OF_ROW
    + """
extern "C" __global__ void softmax_backward(const T* grad, const T* result, T* out, whole rows, whole n) {
    EACH_ROW(row, rows) {
        Row g(grad + row * n, n), y(result + row * n, n);
        SoftmaxGradient<LOGARITHM> found(g, y, n);
        Made to{out + row * n};
        EACH(i, k, n) to.put(k, i, found.of(g.get(k, i), y.get(k, i)));
    }
}
"""
)
_COLUMNS_BACK = """
extern "C" __global__ void softmax_backward_of_columns(const T* grad, const T* result, T* out, whole columns, whole n,
                                                       whole after) {
    EACH_OF(c, columns) {
        whole first = c / after * n * after + c % after;
        const T *g = grad + first, *y = result + first;
        W sum = 0;
        for (whole i = 0; i < n; i++) sum += LOGARITHM ? W(g[i * after]) : W(g[i * after]) * W(y[i * after]);
        for (whole i = 0; i < n; i++) {
            W v = W(y[i * after]), own = W(g[i * after]);
            out[first + i * after] = T(LOGARITHM ? own - exp(v) * sum : (own - sum) * v);
        }
    }
}
"""


class _Programs(NamedTuple):
    of_rows: RowProgram
    of_columns: Program
    function: RowFunction


def _programs(logarithm):
    macro = f"#define LOGARITHM {int(logarithm)}\n"
    name, kind, x, both = "log_softmax" if logarithm else "softmax", f"<{int(logarithm)}>", ("x",), ("g", "y")
    return (
        _Programs(
            RowProgram("softmax", macro + _ROWS, options=EXACT),
            Program("softmax_of_columns", macro + _COLUMNS),
            _function(name, _SOFTMAX_OF_ROW, f"Softmax{kind}", x),
        ),
        _Programs(
            RowProgram("softmax_backward", macro + _ROWS_BACK, options=EXACT),
            Program("softmax_backward_of_columns", macro + _COLUMNS_BACK),
            _function(f"{name}_backward", _GRADIENT_OF_ROW, f"SoftmaxGradient{kind}", both),
        ),
    )


def _function(name, text, struct, operands):
    given = ", ".join(f"{{{each}}}" for each in operands)
    operands = tuple((each, ROW) for each in operands)
    return RowFunction(name, text, operands, f"{struct} {{self}}({given}, n)", f"{{self}}.of({given})")


_SOFTMAX, _SOFTMAX_BACKWARD = _programs(False)
_LOG_SOFTMAX, _LOG_SOFTMAX_BACKWARD = _programs(True)


# For few long rows, per-row values are computed by reductions over many blocks.


def _long(name, inputs, formula):
    return elementwise(f"{name}_of_long_rows", inputs, "T out", f"out = T({formula});")


_OF_LONG_ROWS = (
    _long("softmax", "T x, R m, R s", "exp(W(x) - W(m)) / W(s)"),
    _long("log_softmax", "T x, R m, R s", "W(x) - W(m) - log(W(s))"),
)
_BACK_OF_LONG_ROWS = (
    _long("softmax_backward", "T g, T y, R s", "(W(g) - W(s)) * W(y)"),
    _long("log_softmax_backward", "T g, T y, R s", "W(g) - exp(W(y)) * W(s)"),
)


def _of_long_rows(logarithm, arrays):
    """Softmax of the rows of a matrix; or, from (gradient of the result, result), the gradient of the rows."""
    a, *result = arrays
    if result:
        total = folded(a, (1,), "sum" if logarithm else "products", True, beside=None if logarithm else result[0])
        return _BACK_OF_LONG_ROWS[logarithm](a, *result, total)
    return _OF_LONG_ROWS[logarithm](a, *_sums_of_exponentials(a))


def _sums_of_exponentials(a):
    """Return (the maximum, the sum of the exponentials of all elements minus it) of each row of a matrix."""
    largest = folded(a, (1,), "largest", True)
    return largest, folded(a, (1,), "exponentials", True, middle=largest)


_DEEP, _NARROW = 1 << 10, 1 << 12


def _along(programs, arrays, axis):
    arrays = [dense(a) for a in arrays]
    a = arrays[0]
    before, length, after = split(a.shape, axis)
    if after > 1 and length >= _DEEP and before * after < _NARROW:  # one thread per column would be too few
        turned = [x.reshape(before, length, after).swapaxes(1, 2) for x in arrays]
        return dense(_along(programs, turned, 2).swapaxes(1, 2)).reshape(a.shape)
    if after == 1 and are_for_many_blocks(before, length):
        logarithm = programs in (_LOG_SOFTMAX, _LOG_SOFTMAX_BACKWARD)
        return _of_long_rows(logarithm, [x.reshape(before, length) for x in arrays]).reshape(a.shape)
    out = cupy().empty_like(a)
    if after == 1:
        programs.of_rows.over_rows(a.dtype, before, length, (*arrays, out))
    else:
        programs.of_columns.over(a.dtype, before * after, (*arrays, out, before * after, length, after))
    return out


def _later(programs, arrays, axis):
    """Return (what groups let wait, operands) of a call, or None."""
    a = arrays[0]
    if not (a.size and a.ndim and programs.of_rows.takes(*arrays)):
        return None
    before, length, after = split(a.shape, axis % a.ndim)
    if after > 1 or are_for_many_blocks(before, length):
        return None
    if not all(x.shape == a.shape and x.flags.c_contiguous for x in arrays):
        return None
    return programs.function.call(arrays, a.shape, before, length, (), lambda out: out)


def _map(name, programs):
    @waits_by(lambda a, axis: _later(programs, (a,), axis))
    def function(a, axis):
        if a.size == 0 or a.ndim == 0 or not programs.of_rows.takes(a):
            return getattr(numpy_fallback, name)(a, axis)
        return _along(programs, (a,), axis % a.ndim)

    return function


def _gradient(name, programs):
    @waits_by(lambda grad, out, axis: _later(programs, (grad, out), axis))
    def function(grad, out, axis):
        if out.size == 0 or out.ndim == 0 or grad.shape != out.shape or not programs.of_rows.takes(grad, out):
            return getattr(numpy_fallback, name)(grad, out, axis)
        return _along(programs, (grad, out), axis % out.ndim)

    return function


softmax = _map("softmax", _SOFTMAX)
log_softmax = _map("log_softmax", _LOG_SOFTMAX)
softmax_backward = _gradient("softmax_backward", _SOFTMAX_BACKWARD)
log_softmax_backward = _gradient("log_softmax_backward", _LOG_SOFTMAX_BACKWARD)

# -- losses of classes --
# `losses` receives the loss of each row and `weights` the weight it counts with; both of type W.

_TARGET = """
__device__ inline W weight_of(const T* weight, whole target, whole n) {
    return target < 0 || target >= n ? nothing(W()) : weight ? W(weight[target]) : W(1);
}
"""
_NLL = Program(
    "nll",
    _TARGET
    + """
extern "C" __global__ void nll(const T* logs, const whole* target, const T* weight, W* losses, W* weights, whole rows,
                               whole n, whole down, whole across, whole ignored, const W* largest,
                               const W* total) {
    EACH_OF(row, rows) {
        whole t = target[row];
        W w = t == ignored ? W(0) : weight_of(weight, t, n);
        weights[row] = w;
        if (t == ignored || w != w) { losses[row] = w; continue; }
        W v = W(logs[row * down + t * across]);
        if (largest) v = v - largest[row] - log(total[row]);  // of a score
        losses[row] = -w * v;
    }
}
""",
)
_CROSS_ENTROPY = RowProgram(
    "cross_entropy",
    _SOFTMAX_OF_ROW
    + _TARGET
    + """
extern "C" __global__ void cross_entropy(const T* a, const whole* target, const T* weight, T* softmax, W* losses,
                                         W* weights, whole ignored, whole rows, whole n) {
    EACH_ROW(row, rows) {
        Row x(a + row * n, n);
        Softmax<false> found(x, n);
        Made y{softmax + row * n};
        EACH(i, k, n) y.put(k, i, found.of(x.get(k, i)));
        if (threadIdx.x == 0) {
            whole t = target[row];
            W w = t == ignored ? W(0) : weight_of(weight, t, n);
            weights[row] = w;
            losses[row] = t == ignored ? W(0) : w != w ? w : -w * (W(a[row * n + t]) - found.largest - log(found.sum));
        }
    }
}
""",
)
_BACKWARD = (
    _TARGET
    + """
extern "C" __global__ void cross_entropy_backward(const T* grad, whole step, const T* softmax, const whole* target,
                                                  const T* weight, const W* total, T* out, whole ignored, whole rows,
                                                  whole n) {
    EACH_ROW(row, rows) {
        whole t = target[row];
        W factor = t == ignored ? W(0) : W(grad[row * step]) * weight_of(weight, t, n) / (total ? *total : W(1));
        Line<T> p{softmax + row * n};
        Made to{out + row * n};
        EACH(i, k, n) {
            W own = SOFTMAX ? p.get(k, i) : W(0);
            to.put(k, i, t == ignored ? W(0) : factor * (own - (i == t ? W(1) : W(0))));
        }
    }
}
"""
)
_BACKWARD_OF_LONG_ROWS = (
    _TARGET
    + """
extern "C" __global__ void cross_entropy_backward_of_long_rows(
    const T* grad, whole step, const T* softmax, const whole* target, const T* weight, const W* total, T* out,
    whole ignored, whole size, whole n) {
    EACH_OF(i, size) {
        const whole row = quotient(i, n), t = target[row];
        const W own = (SOFTMAX ? W(softmax[i]) : W(0)) - (i - row * n == t ? W(1) : W(0));
        out[i] = T(t == ignored ? W(0) : W(grad[row * step]) * weight_of(weight, t, n) / (total ? *total : W(1)) * own);
    }
}
"""
)
_NLL_BACKWARD, _CROSS_ENTROPY_BACKWARD = (
    (
        RowProgram("cross_entropy_backward", f"#define SOFTMAX {of_scores}\n{_BACKWARD}"),
        Program("cross_entropy_backward_of_long_rows", f"#define SOFTMAX {of_scores}\n{_BACKWARD_OF_LONG_ROWS}"),
    )
    for of_scores in (0, 1)
)


_REDUCE = Program(
    "reduce_losses",
    OVER_ROW
    + """
extern "C" __global__ void __launch_bounds__(1024) reduce_losses(const W* losses, const W* weights, T* loss, W* total,
                                                                 whole is_mean, whole rows) {
    W s = 0, w = 0;
    for (whole i = threadIdx.x; i < rows; i += blockDim.x) {
        s += losses[i];
        w += weights[i];
    }
    s = over_row(s, Add());
    w = over_row(w, Add());
    if (!threadIdx.x) {
        *total = w;
        *loss = T(is_mean ? s / w : s);
    }
}
""",
)
_ONE_BLOCK = 1 << 14  # maximum number of rows that one thread block adds up


def _reduced(losses, weights, dtype, reduction):
    """Return (the loss, the total weight) from the losses and weights of the rows."""
    loss, total = cupy().empty((), dtype), cupy().empty((), wide_type(dtype))
    given = losses, weights
    if len(losses) > _ONE_BLOCK:
        given = tuple(folded(a, None, "sum", True) for a in given)
    rows = len(given[0])
    threads = WARP * max(1, min(-(-rows // WARP), WARP))
    _REDUCE.launch(dtype, 1, threads, (*given, loss, total, int(reduction == MEAN), rows))
    return losses.astype(dtype, copy=False) if reduction == NONE else loss, total


def _room(x):
    """Allocate losses and weights of the rows."""
    return [cupy().empty(len(x), wide_type(x.dtype)) for _ in range(2)]


def nll(logp, target, weight, ignore_index, reduction):
    """Return (the loss, the total weight): negative weighted log-probabilities of the target classes."""
    losses, weights = _room(logp)
    down, across = (step // logp.itemsize for step in logp.strides)
    rows, n = logp.shape
    args = logp, of_type(target, "int64"), of_type(weight, logp.dtype), losses, weights
    _NLL.over(logp.dtype, rows, (*args, rows, n, down, across, ignore_index, None, None))
    return _reduced(losses, weights, logp.dtype, reduction)


def cross_entropy(x, target, weight, ignore_index, reduction):
    """Return (loss, total weight, softmax of the rows): `nll` of the log-softmax of the rows of scores."""
    x, (losses, weights) = dense(x), _room(x)
    given, (rows, n) = (x, of_type(target, "int64"), of_type(weight, x.dtype)), x.shape
    if x.size and are_for_many_blocks(rows, n):
        own = _sums_of_exponentials(x)
        softmax = _OF_LONG_ROWS[0](x, *own)
        _NLL.over(x.dtype, rows, (*given, losses, weights, rows, n, n, 1, ignore_index, *own))
    else:
        softmax = cupy().empty_like(x)
        _CROSS_ENTROPY.over_rows(x.dtype, rows, n, (*given, softmax, losses, weights, ignore_index))
    return *_reduced(losses, weights, x.dtype, reduction), softmax


def nll_backward(grad, logp, target, weight, ignore_index, reduction, total_weight):
    """Return the gradient of `nll` for `logp`, of which only shape and type are used."""
    return _backward(_NLL_BACKWARD, grad, logp, None, target, weight, ignore_index, reduction, total_weight)


def cross_entropy_backward(grad, softmax, target, weight, ignore_index, reduction, total_weight):
    """Return the gradient of `cross_entropy` for the scores."""
    args = softmax, dense(softmax), target, weight, ignore_index, reduction, total_weight
    return _backward(_CROSS_ENTROPY_BACKWARD, grad, *args)


def _backward(programs, grad, like, softmax, target, weight, ignore_index, reduction, total_weight):
    dtype, out = like.dtype, cupy().empty(like.shape, like.dtype)
    total = of_type(total_weight, wide_type(dtype)) if reduction == MEAN else None
    args = of_type(grad, dtype), int(reduction == NONE), softmax, of_type(target, "int64"), of_type(weight, dtype)
    rows, n = like.shape
    given = *args, total, out, ignore_index
    if are_for_many_blocks(rows, n):
        programs[1].over(dtype, out.size, (*given, out.size, n))
    else:
        programs[0].over_rows(dtype, rows, n, given)
    return out
