"""All steps of a recurrent layer on a GPU in one launch, for narrow layers and few sequences.

Note [Loops of recurrent layers]
--------------------------------
Sequences do not depend on each other, so a block takes ROWS of them through all steps, with its state in shared memory.
No two blocks meet, and the sums have a fixed order. Each block reads the weights of the state anew in each step, from
the caches, in which narrow ones stay; `fits` tells where that takes less time than two launches per step. Everything
else, and LSTM layers with projections, is left to `recurrent.py`.

Step t has sizes[t] rows, never more than the step before. They begin at starts[t], or at t * n without `starts`.
"""

from typing import Any

import numpy as np

from cygrad._kernels.device.cupy_library import cupy, current_device, dense, switches
from cygrad._kernels.gpu.launch.program import FLOATS, Program, on_gpu, wide_type
from cygrad._kernels.gpu.runtime.graph_capture import current

_WIDEST, _WIDEST_IN_GRAPHS = 512, 256  # in a captured graph, launches cost less
_SHARED, _MOST_THREADS, _PARTS = 48 << 10, 1024, 4
_MULTIPROCESSORS = 16  # cudaDevAttrMultiProcessorCount

_HEAD = """
struct Steps { whole count, n, reversed; const whole* starts; };
__device__ inline whole start_of(const Steps& s, whole t) { return s.starts ? s.starts[t] : t * s.n; }
__device__ inline whole size_of(const Steps& s, whole t) { return s.starts ? s.starts[t + 1] - s.starts[t] : s.n; }
__device__ inline W logistic(W x) { return W(1) / (W(1) + exp(-x)); }
#define EACH_ITEM(e) for (int e = threadIdx.x; e < ROWS * width; e += blockDim.x)
"""

# `weights` has a row for each element of the state. `gates` holds the products with the input at first.
_FORWARD = """
extern "C" __global__ void __launch_bounds__(1024) NAME_steps(
        T* gates, const T* weights, const T* b_ih, const T* b_hh, const T* h0, const T* c0, T* h_n, T* c_n, T* out,
        T* first_kept, T* second_kept, const whole* starts, whole count, whole n, whole reversed, whole wide) {
    extern __shared__ __align__(16) unsigned char memory[];
    const Steps steps = {count, n, reversed, starts};
    const int width = (int)wide, across = GATES * width;
    W *h = (W*)memory, *c = h + ROWS * width, *products = c + ROWS * width;
    const whole first = blockIdx.x * (whole)ROWS;
    EACH_ITEM(e) {
        const whole from = (first + e / width) * width + e % width;
        h[e] = from < n * width ? W(h0[from]) : W(0);
        c[e] = c0 && from < n * width ? W(c0[from]) : W(0);
    }
    __syncthreads();
    for (whole s = 0; s < count; s++) {
        const whole t = reversed ? count - 1 - s : s, start = start_of(steps, t), size = size_of(steps, t);
        if (first >= size) continue;  // for all threads
        for (int j = threadIdx.x; j < across; j += blockDim.x) {
            W sums[ROWS];
            #pragma unroll
            for (int r = 0; r < ROWS; r++) sums[r] = W(0);
            #pragma unroll 8
            for (int k = 0; k < width; k++) {
                const W weight = W(weights[(whole)k * across + j]);
                #pragma unroll
                for (int r = 0; r < ROWS; r++) sums[r] += weight * h[r * width + k];
            }
            #pragma unroll
            for (int r = 0; r < ROWS; r++) products[r * across + j] = sums[r];
        }
        __syncthreads();
        EACH_ITEM(e) {
            const int row = e / width, i = e % width;
            if (first + row >= size) continue;
            const whole at = start + first + row, place = at * width + i;
            T* own = gates + at * across + i;
            const W* with_state = products + row * across + i;
            BODY
        }
        __syncthreads();
    }
    EACH_ITEM(e) {
        const whole to = (first + e / width) * width + e % width;
        if (to >= n * width) continue;
        h_n[to] = T(h[e]);
        if (c_n) c_n[to] = T(c[e]);
    }
}
"""
# `prior` is the row that this one's state came from, negative for the initial state, which is in row `first + row`.
_BACKWARD = """
extern "C" __global__ void __launch_bounds__(1024) NAME_steps_backward(
        const T* gates, const T* weights, const T* d_out, const T* d_h_n, const T* d_c_n, const T* h0, const T* c0,
        const T* first_kept, const T* second_kept, T* slopes, T* of_state, T* before, T* d_h0, T* d_c0,
        const whole* starts, whole count, whole n, whole reversed, whole wide) {
    extern __shared__ __align__(16) unsigned char memory[];
    const Steps steps = {count, n, reversed, starts};
    const int width = (int)wide, across = GATES * width;
    W *dh = (W*)memory, *dc = dh + ROWS * width, *own_slopes = dc + ROWS * width, *parts = own_slopes + ROWS * across;
    const whole first = blockIdx.x * (whole)ROWS;
    EACH_ITEM(e) {
        const whole from = (first + e / width) * width + e % width;
        dh[e] = d_h_n && from < n * width ? W(d_h_n[from]) : W(0);
        dc[e] = d_c_n && from < n * width ? W(d_c_n[from]) : W(0);
    }
    for (whole s = count - 1; s >= 0; s--) {
        const whole t = reversed ? count - 1 - s : s, start = start_of(steps, t), size = size_of(steps, t);
        if (first >= size) continue;  // for all threads
        const whole t_before = reversed ? t + 1 : t - 1;
        const whole size_before = t_before < 0 || t_before >= count ? 0 : size_of(steps, t_before);
        const whole start_before = size_before ? start_of(steps, t_before) : 0;
        EACH_ITEM(e) {
            const int row = e / width, i = e % width;
            W* slope = own_slopes + row * across + i;
            if (first + row >= size) {
                for (int k = 0; k < GATES; k++) slope[k * width] = W(0);
                continue;
            }
            const whole at = start + first + row, place = at * width + i;
            const whole initial = (first + row) * width + i;
            const whole prior = first + row < size_before ? start_before + first + row : -1;
            const W grad = dh[e] + (d_out ? W(d_out[place]) : W(0));
            BODY
        }
        __syncthreads();
        for (int q = threadIdx.x; q < PARTS * width; q += blockDim.x) {
            const int part = q / width, i = q % width;
            const int low = across * part / PARTS, high = across * (part + 1) / PARTS;
            W sums[ROWS];
            #pragma unroll
            for (int r = 0; r < ROWS; r++) sums[r] = W(0);
            #pragma unroll 8
            for (int j = low; j < high; j++) {
                const W weight = W(weights[(whole)j * width + i]);
                #pragma unroll
                for (int r = 0; r < ROWS; r++) sums[r] += weight * own_slopes[r * across + j];
            }
            #pragma unroll
            for (int r = 0; r < ROWS; r++) parts[(part * ROWS + r) * width + i] = sums[r];
        }
        __syncthreads();
        EACH_ITEM(e) {
            if (first + e / width >= size) continue;
            #pragma unroll
            for (int p = 0; p < PARTS; p++) dh[e] += parts[p * ROWS * width + e];
        }
    }
    EACH_ITEM(e) {
        const whole to = (first + e / width) * width + e % width;
        if (to >= n * width) continue;
        d_h0[to] = T(dh[e]);
        if (d_c0) d_c0[to] = T(dc[e]);
    }
}
"""
_OF_RNN = """
            const W x = W(own[0]) + with_state[0] + (b_ih ? W(b_ih[i]) : W(0)) + (b_hh ? W(b_hh[i]) : W(0));
            const T y = T(FUNCTION);
            own[0] = y;
            h[e] = W(y);
"""
_OF_RNN_BACKWARD = """
            const W y = W(gates[place]);
            const T v = T(FUNCTION);
            slopes[place] = v;
            slope[0] = W(v);
            before[place] = prior < 0 ? h0[initial] : gates[prior * width + i];
            dh[e] = W(0);
"""
_BODIES = {
    "lstm": (
        """
            W v[4];
            for (int k = 0; k < 4; k++) {
                const W bias = (b_ih ? W(b_ih[k * width + i]) : W(0)) + (b_hh ? W(b_hh[k * width + i]) : W(0));
                v[k] = W(own[k * width]) + with_state[k * width] + bias;
                v[k] = k == 2 ? tanh(v[k]) : logistic(v[k]);
                own[k * width] = T(v[k]);
            }
            const T cell = T(v[1] * c[e] + v[0] * v[2]);
            const W t_of_cell = tanh(W(cell));
            const T y = T(v[3] * t_of_cell);
            c[e] = W(cell);
            h[e] = W(y);
            first_kept[place] = cell;
            second_kept[place] = T(t_of_cell);
            out[place] = y;
""",
        """
            const T* own = gates + at * across + i;
            const W in = W(own[0]), f = W(own[width]), g = W(own[2 * width]), o = W(own[3 * width]);
            const W t_of_cell = W(second_kept[place]);
            const W d_cell = dc[e] + grad * o * (W(1) - t_of_cell * t_of_cell);
            const W c_before = prior < 0 ? W(c0[initial]) : W(first_kept[prior * width + i]);
            const T v[4] = {T(d_cell * g * in * (W(1) - in)), T(d_cell * c_before * f * (W(1) - f)),
                            T(d_cell * in * (W(1) - g * g)), T(grad * t_of_cell * o * (W(1) - o))};
            for (int k = 0; k < 4; k++) {
                slopes[at * across + k * width + i] = v[k];
                slope[k * width] = W(v[k]);
            }
            before[place] = prior < 0 ? h0[initial]
                : T(W(gates[prior * across + 3 * width + i]) * W(second_kept[prior * width + i]));
            dc[e] = d_cell * f;
            dh[e] = W(0);
""",
    ),
    "gru": (
        """
            W x[3], y[3];
            for (int k = 0; k < 3; k++) {
                x[k] = W(own[k * width]) + (b_ih ? W(b_ih[k * width + i]) : W(0));
                y[k] = with_state[k * width] + (b_hh ? W(b_hh[k * width + i]) : W(0));
            }
            const W r = logistic(x[0] + y[0]), z = logistic(x[1] + y[1]), fresh = tanh(x[2] + r * y[2]);
            own[0] = T(r);
            own[width] = T(z);
            own[2 * width] = T(fresh);
            first_kept[place] = T(y[2]);
            out[place] = T(fresh + z * (h[e] - fresh));
            h[e] = W(out[place]);
""",
        """
            const T* own = gates + at * across + i;
            const W r = W(own[0]), z = W(own[width]), fresh = W(own[2 * width]);
            const T h_before = prior < 0 ? h0[initial] : second_kept[prior * width + i];
            const W d_new = grad * (W(1) - z) * (W(1) - fresh * fresh);
            const T v[3] = {T(d_new * W(first_kept[place]) * r * (W(1) - r)),
                            T(grad * (W(h_before) - fresh) * z * (W(1) - z)), T(d_new * r)};
            for (int k = 0; k < 3; k++) {
                slopes[at * across + k * width + i] = k == 2 ? T(d_new) : v[k];
                of_state[at * across + k * width + i] = v[k];
                slope[k * width] = W(v[k]);
            }
            before[place] = h_before;
            dh[e] = grad * z;
""",
    ),
    "rnn_tanh": (
        _OF_RNN.replace("FUNCTION", "tanh(x)"),
        _OF_RNN_BACKWARD.replace("FUNCTION", "grad * (W(1) - y * y)"),
    ),
    "rnn_relu": (
        _OF_RNN.replace("FUNCTION", "x > W(0) || x != x ? x : W(0)"),
        _OF_RNN_BACKWARD.replace("FUNCTION", "y <= W(0) ? W(0) : grad"),
    ),
}
GATES = {"lstm": 4, "gru": 3, "rnn_tanh": 1, "rnn_relu": 1}


def _programs(which):
    """Return {kind: program} of forward or backward."""
    frame, end = ((_FORWARD, ""), (_BACKWARD, "_backward"))[which]
    return {
        kind: Program(f"{kind}_steps{end}", _HEAD + frame.replace("NAME", kind).replace("BODY", bodies[which].strip()))
        for kind, bodies in _BODIES.items()
    }


_FORWARDS, _BACKWARDS = _programs(0), _programs(1)


def _shared(kind, width, dtype):
    """Return the bytes of shared memory for a sequence, forward and backward."""
    each = width * wide_type(dtype).itemsize
    return (2 + GATES[kind]) * each, (2 + GATES[kind] + _PARTS) * each


def fits(kind, x, n, width):
    """Whether to compute the steps of n sequences, with states of this width, by one launch."""
    if not switches.own_launches or x.dtype.name not in FLOATS or not (n and width and len(x)):
        return False
    if width > (_WIDEST if current() is None else _WIDEST_IN_GRAPHS) or _shared(kind, width, x.dtype)[1] > _SHARED:
        return False
    return n <= 4 * cupy().cuda.runtime.deviceGetAttribute(_MULTIPROCESSORS, current_device())


def _launch(programs, which, kind, x, n, width, threads, args, sizes, is_reversed):
    each = _shared(kind, width, x.dtype)[which]
    rows = next(rows for rows in (4, 2, 1) if rows == 1 or (n >= 32 * rows and rows * each <= _SHARED))
    starts = None if sizes[0] == sizes[-1] else on_gpu(np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64))
    threads = min(_MOST_THREADS, -(-threads // 32) * 32)
    macros: dict[str, Any] = {"ROWS": rows, "GATES": GATES[kind]} | ({"PARTS": _PARTS} if which else {})
    args = *args, starts, len(sizes), n, int(is_reversed), width
    programs[kind].launch(x.dtype, -(-n // rows), threads, args, shared=rows * each, **macros)


def run(kind, gates, h0, w_hh, b_ih, b_hh, c0, sizes, is_reversed):
    """Turn the products with the input into gates; return (outputs, final states, two arrays kept for backward)."""
    n, width = h0.shape
    is_rnn, is_lstm = GATES[kind] == 1, kind == "lstm"
    h_n = cupy().empty(h0.shape, h0.dtype)
    c_n = cupy().empty(h0.shape, h0.dtype) if is_lstm else None
    out = gates if is_rnn else cupy().empty((len(gates), width), h0.dtype)
    kept = None if is_rnn else cupy().empty(out.shape, out.dtype)
    tanhs = cupy().empty(out.shape, out.dtype) if is_lstm else None
    given = [None if a is None else dense(a) for a in (w_hh.T, b_ih, b_hh, h0, c0)]
    args = gates, *given, h_n, c_n, out, kept, tanhs
    _launch(_FORWARDS, 0, kind, gates, n, width, GATES[kind] * width, args, sizes, is_reversed)
    return out, (h_n, c_n) if is_lstm else (h_n,), (kept, tanhs)


def run_backward(kind, d_out, d_last, gates, h0, w_hh, c0, first_kept, second_kept, sizes, is_reversed):
    """Return the gradients of the products with the input and the state, the states before each step, (d_h0, d_c0)."""
    n, width = h0.shape
    is_lstm = kind == "lstm"
    gates = dense(gates)
    slopes = cupy().empty(gates.shape, gates.dtype)
    of_state = cupy().empty(gates.shape, gates.dtype) if kind == "gru" else None
    before, d_h = (cupy().empty((rows, width), gates.dtype) for rows in (len(gates), n))
    d_c = cupy().empty(d_h.shape, d_h.dtype) if is_lstm else None
    ends = [None if d is None else dense(d.astype(gates.dtype, copy=False)) for d in (*d_last, None)[:2]]
    given = [None if a is None else dense(a) for a in (h0, c0, first_kept, second_kept)]
    d_out = None if d_out is None else dense(d_out)
    args = gates, dense(w_hh), d_out, *ends, *given, slopes, of_state, before, d_h, d_c
    _launch(_BACKWARDS, 1, kind, gates, n, width, _PARTS * width, args, sizes, is_reversed)
    return slopes, slopes if of_state is None else of_state, before, (d_h, d_c)
