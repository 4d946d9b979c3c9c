"""Recurrent layers on GPUs; arguments and results are those of `_kernels/cpu/nn/recurrent.py`.

One matrix product computes the input projections of all steps, and one each the weight gradients. In between, narrow
layers take one launch (`recurrent_loops.py`). In others a step is a product with the state and one elementwise kernel
that turns the gates into the next state; backward works in reverse.
"""

from typing import Any

from cygrad._kernels.cpu.nn.recurrent import gradients_of, lstm_outputs, spans, states_before
from cygrad._kernels.device.cupy_library import cupy, dense
from cygrad._kernels.gpu.base.matmul import matmul
from cygrad._kernels.gpu.launch.program import Program
from cygrad._kernels.gpu.nn import recurrent_loops as loops

_SIGMOID = "__device__ inline W logistic(W x) { return W(1) / (W(1) + exp(-x)); }\n"


def _program(name, arguments, body):
    """A program over the state elements of one step, `width` per sequence."""
    text = f"""{_SIGMOID}
extern "C" __global__ void {name}({arguments}, whole width, whole total) {{
    EACH_OF(e, total) {{
        whole row = quotient(e, width), i = e - row * width;
        {body}
    }}
}}
"""
    return Program(name, text)


# `gates` holds the input projections at first, and then the gates.
_LSTM = _program(
    "lstm",
    "T* gates, const T* products, const T* bias, T* c, T* cells, T* tanhs, T* h, T* out",
    """
        T* own = gates + row * 4 * width + i;
        const T* with_state = products + row * 4 * width + i;
        W v[4];
        for (int k = 0; k < 4; k++) {
            v[k] = W(own[k * width]) + W(with_state[k * width]) + (bias ? W(bias[k * width + i]) : W(0));
            v[k] = k == 2 ? tanh(v[k]) : logistic(v[k]);
            own[k * width] = T(v[k]);
        }
        W cell = v[1] * W(c[e]) + v[0] * v[2], t = tanh(cell);
        c[e] = cells[e] = T(cell);
        tanhs[e] = T(t);
        out[e] = T(v[3] * t);
        if (h) h[e] = T(v[3] * t);
    """,
)
_LSTM_BACKWARD = _program(
    "lstm_backward",
    "const T* gates, const T* d_out, const T* d_h, const T* before, const T* tanhs, T* d_c, T* slopes",
    """
        const T* own = gates + row * 4 * width + i;
        T* to = slopes + row * 4 * width + i;
        W in = W(own[0]), f = W(own[width]), g = W(own[2 * width]), o = W(own[3 * width]), t = W(tanhs[e]);
        W dh = W(d_h[e]) + (d_out ? W(d_out[e]) : W(0));
        W dc = W(d_c[e]) + dh * o * (W(1) - t * t);
        to[0] = T(dc * g * in * (W(1) - in));
        to[width] = T(dc * W(before[e]) * f * (W(1) - f));
        to[2 * width] = T(dc * in * (W(1) - g * g));
        to[3 * width] = T(dh * t * o * (W(1) - o));
        d_c[e] = T(dc * f);
    """,
)
_GRU = _program(
    "gru",
    "T* gates, const T* products, const T* b_ih, const T* b_hh, T* candidates, T* h, T* out",
    """
        T* own = gates + row * 3 * width + i;
        const T* with_state = products + row * 3 * width + i;
        W x[3], y[3];
        for (int k = 0; k < 3; k++) {
            x[k] = W(own[k * width]) + (b_ih ? W(b_ih[k * width + i]) : W(0));
            y[k] = W(with_state[k * width]) + (b_hh ? W(b_hh[k * width + i]) : W(0));
        }
        W r = logistic(x[0] + y[0]), z = logistic(x[1] + y[1]), fresh = tanh(x[2] + r * y[2]);
        own[0] = T(r);
        own[width] = T(z);
        own[2 * width] = T(fresh);
        candidates[e] = T(y[2]);
        h[e] = out[e] = T(fresh + z * (W(h[e]) - fresh));
    """,
)
_GRU_BACKWARD = _program(
    "gru_backward",
    "const T* gates, const T* d_out, T* d_h, const T* before, const T* candidates, T* of_input, T* of_state",
    """
        whole at = row * 3 * width + i;
        W r = W(gates[at]), z = W(gates[at + width]), fresh = W(gates[at + 2 * width]);
        W dh = W(d_h[e]) + (d_out ? W(d_out[e]) : W(0));
        W d_new = dh * (W(1) - z) * (W(1) - fresh * fresh), d_z = dh * (W(before[e]) - fresh) * z * (W(1) - z);
        W d_r = d_new * W(candidates[e]) * r * (W(1) - r);
        of_input[at] = of_state[at] = T(d_r);
        of_input[at + width] = of_state[at + width] = T(d_z);
        of_input[at + 2 * width] = T(d_new);
        of_state[at + 2 * width] = T(d_new * r);
        d_h[e] = T(dh * z);
    """,
)
_RNN = _program(
    "rnn",
    "T* out, const T* products, const T* bias, T* h, whole is_tanh",
    """
        W x = W(out[e]) + W(products[e]) + (bias ? W(bias[i]) : W(0));
        h[e] = out[e] = T(is_tanh ? tanh(x) : x > W(0) || x != x ? x : W(0));
    """,
)
_RNN_BACKWARD = _program(
    "rnn_backward",
    "const T* out, const T* d_out, const T* d_h, T* slopes, whole is_tanh",
    """
        W dh = W(d_h[e]) + (d_out ? W(d_out[e]) : W(0)), y = W(out[e]);
        slopes[e] = T(is_tanh ? dh * (W(1) - y * y) : y <= W(0) ? W(0) : dh);
    """,
)


def _run(program, n, width, *args):
    program.over(args[0].dtype, n * width, (*args, width, n * width))


def _rows(array, start, stop):
    """Return rows of a matrix; None for None."""
    return None if array is None else array[start:stop]


def _sum(b_ih, b_hh):
    return None if b_ih is None else dense(b_ih + b_hh)


def _begun(grad, like, shape):
    """Return a writable gradient that is updated from step to step."""
    return cupy().zeros(shape, like.dtype) if grad is None else cupy().array(grad, like.dtype, order="C")


def _empty(like, *shape) -> Any:
    return cupy().empty(shape, like.dtype)


def _products_with_input(x, w_ih):
    return dense(matmul(x, w_ih.T))


# -- LSTM --


def lstm(x, h0, w_ih, w_hh, b_ih, b_hh, c0, w_hr, sizes, is_reversed):
    """Return (outputs, final states, what backward needs)."""
    (out_width, width), rows = (h0.shape[1], c0.shape[1]), len(x)
    gates = _products_with_input(x, w_ih)
    if w_hr is None and loops.fits("lstm", x, len(h0), width):
        out, last, kept = loops.run("lstm", gates, h0, w_hh, b_ih, b_hh, c0, sizes, is_reversed)
        return out, last, (gates, *kept, None, None)
    bias = _sum(b_ih, b_hh)
    h, c = (cupy().array(a, order="C") for a in (h0, c0))
    out, cells, tanhs = (_empty(x, rows, n) for n in (out_width, width, width))
    hidden: Any = None if w_hr is None else _empty(x, rows, width)
    for start, stop in spans(sizes, is_reversed):
        n, to = stop - start, out if w_hr is None else hidden
        products = dense(matmul(h[:n], w_hh.T))
        state = h[:n] if w_hr is None else None
        args = gates[start:stop], products, bias, c[:n], cells[start:stop], tanhs[start:stop], state, to[start:stop]
        _run(_LSTM, n, width, *args)
        if w_hr is not None:
            h[:n] = out[start:stop] = matmul(hidden[start:stop], w_hr.T)
    return out, (h, c), (gates, cells, tanhs, hidden, None if w_hr is None else out)


def lstm_backward(d_out, d_last, arrays, gates, kept, sizes, is_reversed, wanted):
    """Return the gradients, given those of the outputs and the final states."""
    x, h0, w_ih, w_hh, _, _, c0, w_hr = arrays
    cells, tanhs, hidden, out = kept
    out_width, width = w_hh.shape[1], cells.shape[1]
    if w_hr is None and loops.fits("lstm", x, len(h0), width):
        given = d_out, d_last, gates, h0, w_hh, c0, cells, tanhs, sizes, is_reversed
        slopes, _, before, (d_h, d_c) = loops.run_backward("lstm", *given)
        return (*gradients_of(slopes, slopes, x, before, w_ih, d_h, wanted), d_c, None)
    d_out = None if d_out is None else dense(d_out)
    d_h, d_c = (_begun(d, x, (sizes[0], n)) for d, n in zip(d_last, (out_width, width)))
    slopes = _empty(x, *gates.shape)
    projected: Any = None if w_hr is None else _empty(x, len(gates), out_width)
    before = cupy().concatenate(states_before(c0, cells, sizes, is_reversed))
    for start, stop in spans(sizes, is_reversed)[::-1]:
        n = stop - start
        own, grad = d_h[:n], _rows(d_out, start, stop)
        if w_hr is not None:
            own = projected[start:stop]
            own[...] = d_h[:n] if grad is None else d_h[:n] + grad
            own, grad = dense(matmul(own, w_hr)), None
        args = gates[start:stop], grad, own, before[start:stop], tanhs[start:stop], d_c[:n], slopes[start:stop]
        _run(_LSTM_BACKWARD, n, width, *args)
        d_h[:n] = matmul(slopes[start:stop], w_hh)
    states: Any = None
    if wanted[3]:
        out = lstm_outputs(gates, tanhs) if out is None else out
        states = cupy().concatenate(states_before(h0, out, sizes, is_reversed))
    d_w_hr = matmul(projected.T, hidden) if projected is not None and wanted[7] else None
    return (*gradients_of(slopes, slopes, x, states, w_ih, d_h, wanted), d_c, d_w_hr)


# -- GRU --


def gru(x, h0, w_ih, w_hh, b_ih, b_hh, c0, w_hr, sizes, is_reversed):
    """Return (outputs, final states, what backward needs)."""
    width, gates = h0.shape[1], _products_with_input(x, w_ih)
    if loops.fits("gru", x, len(h0), width):
        out, last, (candidates, _) = loops.run("gru", gates, h0, w_hh, b_ih, b_hh, None, sizes, is_reversed)
        return out, last, (gates, candidates, out)
    h = cupy().array(h0, order="C")
    b_ih, b_hh = (None if b is None else dense(b) for b in (b_ih, b_hh))
    out, candidates = (_empty(x, len(x), width) for _ in range(2))
    for start, stop in spans(sizes, is_reversed):
        n = stop - start
        products = dense(matmul(h[:n], w_hh.T))
        args = gates[start:stop], products, b_ih, b_hh, candidates[start:stop], h[:n], out[start:stop]
        _run(_GRU, n, width, *args)
    return out, (h,), (gates, candidates, out)


def gru_backward(d_out, d_last, arrays, gates, kept, sizes, is_reversed, wanted):
    """Return the gradients, given those of the outputs and the final state."""
    x, h0, w_ih, w_hh, *_ = arrays
    candidates, out = kept
    width = out.shape[1]
    if loops.fits("gru", x, len(h0), width):
        given = d_out, d_last, gates, h0, w_hh, None, candidates, out, sizes, is_reversed
        of_input, of_state, before, (d_h, _) = loops.run_backward("gru", *given)
        return (*gradients_of(of_input, of_state, x, before, w_ih, d_h, wanted), None, None)
    d_out, d_h = None if d_out is None else dense(d_out), _begun(d_last[0], x, (sizes[0], width))
    of_input, of_state = (_empty(x, *gates.shape) for _ in range(2))
    before = cupy().concatenate(states_before(h0, out, sizes, is_reversed))
    for start, stop in spans(sizes, is_reversed)[::-1]:
        n, part = stop - start, slice(start, stop)
        args = gates[part], _rows(d_out, start, stop), d_h[:n], before[part], candidates[part], of_input[part]
        _run(_GRU_BACKWARD, n, width, *args, of_state[part])
        d_h[:n] += matmul(of_state[part], w_hh)
    return (*gradients_of(of_input, of_state, x, before, w_ih, d_h, wanted), None, None)


# -- plain --


_KINDS = "rnn_relu", "rnn_tanh"


def _rnn(is_tanh):
    def rnn(x, h0, w_ih, w_hh, b_ih, b_hh, c0, w_hr, sizes, is_reversed):
        width, out = h0.shape[1], _products_with_input(x, w_ih)
        if loops.fits(_KINDS[is_tanh], x, len(h0), width):
            out, last, _ = loops.run(_KINDS[is_tanh], out, h0, w_hh, b_ih, b_hh, None, sizes, is_reversed)
            return out, last, (out,)
        h = cupy().array(h0, order="C")
        bias = _sum(b_ih, b_hh)
        for start, stop in spans(sizes, is_reversed):
            n = stop - start
            _run(_RNN, n, width, out[start:stop], dense(matmul(h[:n], w_hh.T)), bias, h[:n], is_tanh)
        return out, (h,), (out,)

    return rnn


def _rnn_backward(is_tanh):
    def rnn_backward(d_out, d_last, arrays, gates, kept, sizes, is_reversed, wanted):
        x, h0, w_ih, w_hh, *_ = arrays
        out, width = gates, gates.shape[1]
        if loops.fits(_KINDS[is_tanh], x, len(h0), width):
            given = d_out, d_last, out, h0, w_hh, None, None, None, sizes, is_reversed
            slopes, _, before, (d_h, _) = loops.run_backward(_KINDS[is_tanh], *given)
            return (*gradients_of(slopes, slopes, x, before, w_ih, d_h, wanted), None, None)
        d_out, d_h = None if d_out is None else dense(d_out), _begun(d_last[0], x, (sizes[0], width))
        slopes, out = _empty(x, *out.shape), dense(out)
        for start, stop in spans(sizes, is_reversed)[::-1]:
            n, part = stop - start, slice(start, stop)
            _run(_RNN_BACKWARD, n, width, out[part], _rows(d_out, start, stop), d_h[:n], slopes[part], is_tanh)
            d_h[:n] = matmul(slopes[part], w_hh)
        before = cupy().concatenate(states_before(h0, out, sizes, is_reversed)) if wanted[3] else None
        return (*gradients_of(slopes, slopes, x, before, w_ih, d_h, wanted), None, None)

    return rnn_backward


rnn_tanh, rnn_relu = _rnn(1), _rnn(0)
rnn_tanh_backward, rnn_relu_backward = _rnn_backward(1), _rnn_backward(0)
