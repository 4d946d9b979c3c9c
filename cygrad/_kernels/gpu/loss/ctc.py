"""Connectionist temporal classification on GPUs, with one thread block per sample sharing the states.

Arguments and results are those of `_kernels/cpu/loss/ctc.py`.
"""

import numpy as np

from cygrad._kernels.device.cupy_library import cupy, dense
from cygrad._kernels.device.gpu_forms import half_as_float32
from cygrad._kernels.gpu.launch.program import Program, of_type, on_gpu

_THREADS = 128

_SHARED = """
__device__ inline T both(T a, T b) {
    T most = a > b || a != a ? a : b;
    return most == -infinity(T()) ? most : most + log(exp(a - most) + exp(b - most));
}
// May state `s` follow the one before the last: another symbol than that, with a blank between?
__device__ inline bool skips(const whole* own, whole s, whole blank) {
    return s > 1 && own[s] != blank && own[s] != own[s - 2];
}
// What a symbol has; nan for one that there is not.
__device__ inline T of_symbol(const T* emitted, whole symbol, whole symbols) {
    return symbol >= 0 && symbol < symbols ? emitted[symbol] : nothing(T());
}
#define EACH_STATE(s) for (whole s = threadIdx.x; s < width; s += blockDim.x)
"""
_ARGUMENTS = "const T* logs, const whole* states, const whole* inputs, const whole* targets"

_FORWARD = Program(
    "ctc_forward",
    f"""{_SHARED}
extern "C" __global__ void ctc_forward({_ARGUMENTS}, T* alpha, T* losses, whole steps, whole count, whole symbols,
                                       whole width, whole blank) {{
    whole n = blockIdx.x, input = inputs[n], target = targets[n];
    const whole* own = states + n * width;
    T none = -infinity(T());
    for (whole t = 0; t < steps; t++) {{
        T* now = alpha + (t * count + n) * width;
        const T *before = now - count * width, *emitted = logs + (t * count + n) * symbols;
        EACH_STATE(s) {{
            T v = s == 0 || (s == 1 && target > 0) ? T(0) : none;
            if (t) {{
                v = s ? both(before[s], before[s - 1]) : before[s];
                if (skips(own, s, blank)) v = both(v, before[s - 2]);
            }}
            now[s] = v + of_symbol(emitted, own[s], symbols);
        }}
        __syncthreads();
    }}
    if (!threadIdx.x) {{
        T total = target > 0 ? none : T(0);
        if (input > 0) {{
            const T* last = alpha + ((input - 1) * count + n) * width + 2 * target;
            total = target > 0 ? both(last[0], last[-1]) : last[0];
        }}
        losses[n] = -total;
    }}
}}
""",
    ("float32", "float64"),
)
_BACKWARD = Program(
    "ctc_backward",
    f"""{_SHARED}
extern "C" __global__ void ctc_backward({_ARGUMENTS}, const T* grad, const T* losses, const T* alpha, T* beta, T* out,
                                        whole steps, whole count, whole symbols, whole width, whole blank,
                                        whole zero_infinity) {{
    whole n = blockIdx.x, input = inputs[n], target = targets[n];
    const whole* own = states + n * width;
    T none = -infinity(T()), loss = losses[n], g = grad[n], *shares = beta + (2 * count + n) * width;
    bool impossible = loss == infinity(T()) || loss == none;
    for (whole t = steps - 1; t >= 0; t--) {{
        T* now = beta + (t % 2 * count + n) * width;
        const T *after = beta + ((t + 1) % 2 * count + n) * width, *emitted = logs + (t * count + n) * symbols;
        T* to = out + (t * count + n) * symbols;
        bool counts = t < input && !(impossible && zero_infinity);
        for (whole c = threadIdx.x; c < symbols; c += blockDim.x)
            to[c] = counts ? (exp(emitted[c]) - (impossible ? nothing(T()) : T(0))) * g : T(0);
        __syncthreads();
        EACH_STATE(s) {{
            T v = none;
            if (t == input - 1) v = s == 2 * target || s == 2 * target - 1 ? T(0) : none;
            else if (t < input) {{
                v = s + 1 < width ? both(after[s], after[s + 1]) : after[s];
                if (s + 2 < width && skips(own, s + 2, blank)) v = both(v, after[s + 2]);
            }}
            now[s] = v + of_symbol(emitted, own[s], symbols);
            shares[s] = alpha[(t * count + n) * width + s] + v;
        }}
        __syncthreads();
        if (counts && !impossible) {{
            T most = none, all = 0;
            for (whole u = 0; u < width; u++) most = shares[u] > most ? shares[u] : most;
            for (whole u = 0; u < width; u++) all += exp(shares[u] - most);
            EACH_STATE(s) {{  // the first state of a symbol adds up those of all, always in one order
                whole first = 0;
                while (own[first] != own[s]) first++;
                if (first < s || own[s] < 0 || own[s] >= symbols) continue;
                T sum = 0;
                for (whole u = s; u < width; u++) if (own[u] == own[s]) sum += exp(shares[u] - most);
                to[own[s]] -= sum / all * g;
            }}
        }}
        __syncthreads();
    }}
}}
""",
    ("float32", "float64"),
)


def states_of(targets, lengths, blank):
    """Return (N, 2 S + 1): the padded targets (N, S) with blanks around, between and after them."""
    count, longest = targets.shape
    states = cupy().full((count, 2 * longest + 1), blank, np.int64)
    states[:, 1::2] = cupy().where(on_gpu(np.arange(longest) < lengths[:, None]), targets, blank)
    return states


def _arguments(log_probs, states, input_lengths, target_lengths):
    lengths = (of_type(on_gpu(a), np.int64) for a in (input_lengths, target_lengths))
    return dense(log_probs), dense(on_gpu(states)), *lengths


def forward(log_probs, states, input_lengths, target_lengths, blank):
    """Return (negative log-likelihoods of the targets, log-probabilities (T, N, 2 S + 1) of reaching each state)."""
    steps, count, symbols = log_probs.shape
    width = states.shape[1]
    alpha = cupy().empty((steps, count, width), log_probs.dtype)
    losses = cupy().empty(count, log_probs.dtype)
    if count:
        given = _arguments(log_probs, states, input_lengths, target_lengths)
        args = *given, alpha, losses, steps, count, symbols, width, blank
        _FORWARD.launch(log_probs.dtype, count, _THREADS, args)
    return losses, alpha


@half_as_float32
def backward(grad, log_probs, states, input_lengths, target_lengths, blank, loss, alpha, zero_infinity):
    """Return the gradient for the logits whose log-softmax is `log_probs`."""
    steps, count, symbols = log_probs.shape
    width, dtype = states.shape[1], log_probs.dtype
    out = cupy().empty(log_probs.shape, dtype)
    if count:
        given = _arguments(log_probs, states, input_lengths, target_lengths)
        beta = cupy().empty((3, count, width), dtype)
        args = *given, of_type(grad, dtype), of_type(loss, dtype), dense(alpha), beta, out
        numbers = steps, count, symbols, width, blank, int(zero_infinity)
        _BACKWARD.launch(dtype, count, _THREADS, (*args, *numbers))
    return out
