"""Recurrent layers, all steps of one direction: LSTM, GRU and the plain RNN.

The rows of all steps stand one after the other: `x` is (rows, I), step t has sizes[t] rows, of which there are never
more than in the step before; `is_reversed` goes from the last step to the first. All products with the input are one
product of matrices, and so are the gradients of the weights. The steps between are a loop in `recurrent.h`, which
threads share by sequences, or one of recurrent_by_numpy.py where that is switched off.

Forward functions give (out, final states, what backward needs), backward functions the gradients of
(x, h0, w_ih, w_hh, b_ih, b_hh, c0, w_hr), None for those not in `wanted`.
"""

from functools import lru_cache

import numpy as np

import cygrad._kernels.native as native
from cygrad._kernels import recurrent_by_numpy as by_numpy
from cygrad._kernels.arrays import dense, new_array
from cygrad._kernels.blas import matmul
from cygrad._kernels.dispatch import dispatching
from cygrad._kernels.norms import fitting
from cygrad._kernels.reduce import sum as total

RECURRENT, RECURRENT_GRADIENT = 10, 11  # as in native.h
GATES = {"lstm": 4, "gru": 3, "rnn_tanh": 1, "rnn_relu": 1}  # in the order of recurrent.h
FEWEST_ROWS, PARTS = 8, 4  # what sequences of one part are a multiple of, and parts for threads
SMALL = 1 << 18  # multiplications in a product for which BLAS takes no threads of its own


def _new(like, *shape):
    """Memory from the pool: that of a new large array is slow when first touched."""
    return new_array(shape, like.dtype.num)


# -- steps ---------------------------------------------------------------------------------------------------


def spans(sizes, is_reversed):
    """The rows [start, stop) of each step, in the order of computation."""
    stops = np.cumsum(sizes).tolist()
    pairs = list(zip([0, *stops[:-1]], stops))
    return pairs[::-1] if is_reversed else pairs


@lru_cache(8)
def _starts(sizes):
    return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)


def _has_loop(out):
    return native.has_loops(out) and out.size > 0


def _run(loop, kind, sizes, is_reversed, width, out_width, arrays):
    """Run a loop of recurrent.h over all sequences, the second of whose arrays is the weight of the state."""
    rows = -(-sizes[0] // (PARTS * FEWEST_ROWS)) * FEWEST_ROWS
    is_small = rows * arrays[1].size <= SMALL
    numbers = list(GATES).index(kind), len(sizes), is_reversed, width, out_width, GATES[kind] * width, is_small
    native.run(loop, arrays, numbers, 0, sizes[0], rows if is_small else sizes[0])


def _transposed(weight):
    return None if weight is None else dense(weight.T)


def states_before(first, each, sizes, is_reversed):
    """In parts: the state that each row of each step started from, which is `first` or that of its step before."""
    n = sizes[0]
    if sizes[-1] == n:
        return [each[n:], first] if is_reversed else [first, each[: len(each) - n]]
    if is_reversed:
        steps = [each[start:stop] for start, stop in spans(sizes, False)[1:]]
        return [np.concatenate([after, first[len(after) : n]]) for after, n in zip([*steps, first[:0]], sizes)]
    return [state[:n] for state, n in zip([first, *(each[a:b] for a, b in spans(sizes, False))], sizes)]


def _before(first, each, sizes, is_reversed):
    """The same as one array."""
    return np.concatenate(states_before(first, each, sizes, is_reversed), out=_new(each, *each.shape))


def _input_products(x, w_ih):
    return matmul(x, w_ih.T)


def _bias(w_hh, b_ih, b_hh):
    return np.zeros(len(w_hh), w_hh.dtype) if b_ih is None else b_ih + b_hh


def _or_zeros(grad, like):
    """A gradient that is changed from step to step."""
    return np.zeros_like(like, order="C") if grad is None else np.array(fitting(grad, like, like.shape))


def gradients_of(d_input, d_hidden, x, before, w_ih, d_h, wanted):
    """Those of (x, h0, w_ih, w_hh, b_ih, b_hh), given those of the products with the input and with the state."""
    b_ih = total(d_input, (0,)) if wanted[4] or (wanted[5] and d_input is d_hidden) else None
    return (
        matmul(d_input, w_ih) if wanted[0] else None,
        d_h,
        matmul(d_input.T, x) if wanted[2] else None,
        matmul(d_hidden.T, before) if wanted[3] else None,
        b_ih,
        b_ih if d_input is d_hidden or not wanted[5] else total(d_hidden, (0,)),
    )


# -- LSTM ----------------------------------------------------------------------------------------------------


def lstm(x, h0, w_ih, w_hh, b_ih, b_hh, c0, w_hr, sizes, is_reversed):
    """Gates i, f, g, o: c = f * c + i * g, h = o * tanh(c), or that times w_hr transposed."""
    (out_width, width), rows = (h0.shape[1], c0.shape[1]), len(x)
    gates, bias = _input_products(x, w_ih), _bias(w_hh, b_ih, b_hh)
    h, c = (np.array(a, order="C") for a in (h0, c0))
    out, cells, tanhs = (_new(x, rows, n) for n in (out_width, width, width))
    hidden = None if w_hr is None else _new(x, rows, width)
    weight, projection = _transposed(w_hh), _transposed(w_hr)
    if _has_loop(out):
        products = np.empty((sizes[0], 4 * width), x.dtype)
        arrays = gates, weight, bias, h, out, products, _starts(sizes), cells, c, tanhs, hidden, projection
        _run(RECURRENT, "lstm", sizes, is_reversed, width, out_width, arrays)
    else:
        by_numpy.lstm(spans(sizes, is_reversed), gates, weight, bias, h, out, cells, c, tanhs, hidden, projection)
    return out, (h, c), (gates, cells, tanhs, hidden)


def lstm_backward(d_out, d_last, arrays, kept, out, sizes, is_reversed, wanted):
    """The gradients, given those of out and of the final states."""
    x, h0, w_ih, w_hh, _, _, c0, w_hr = arrays
    gates, cells, tanhs, hidden = kept
    (out_width, width), rows = (out.shape[1], cells.shape[1]), len(gates)
    weight, first = fitting(w_hh, x, (4 * width, out_width)), fitting(c0, x, (sizes[0], width))
    projection = None if w_hr is None else fitting(w_hr, x, (out_width, width))
    d_out = None if d_out is None else fitting(d_out, x, out.shape)
    d_h, d_c = (_or_zeros(d, like) for d, like in zip(d_last, (fitting(h0, x, (sizes[0], out_width)), first)))
    slopes, projected = _new(x, *gates.shape), None if w_hr is None else _new(x, rows, out_width)
    if _has_loop(out):
        d_hidden = None if w_hr is None else np.empty_like(d_c)
        of_cell = gates, weight, d_out, cells, first, _starts(sizes), d_h, slopes, d_c, tanhs, None
        needed = *of_cell, projection, projected, d_hidden
        _run(RECURRENT_GRADIENT, "lstm", sizes, is_reversed, width, out_width, needed)
    else:
        before, steps = _before(first, cells, sizes, is_reversed), spans(sizes, is_reversed)[::-1]
        by_numpy.lstm_backward(steps, gates, weight, d_out, before, d_h, slopes, d_c, tanhs, projection, projected)
    before = _before(h0, out, sizes, is_reversed) if wanted[3] else None
    d_w_hr = matmul(projected.T, hidden) if projected is not None and wanted[7] else None
    return (*gradients_of(slopes, slopes, x, before, w_ih, d_h, wanted), d_c, d_w_hr)


# -- GRU -----------------------------------------------------------------------------------------------------


def gru(x, h0, w_ih, w_hh, b_ih, b_hh, c0, w_hr, sizes, is_reversed):
    """Gates r, z: n = tanh(W_in x + b_in + r * (W_hn h + b_hn)), h = (1 - z) * n + z * h."""
    width = h0.shape[1]
    gates, bias = _input_products(x, w_ih), np.zeros(4 * width, x.dtype)
    if b_ih is not None:
        bias[: 3 * width] = b_ih
        bias[: 2 * width] += b_hh[: 2 * width]
        bias[3 * width :] = b_hh[2 * width :]
    h, weight = np.array(h0, order="C"), _transposed(w_hh)
    out, candidates = (_new(x, len(x), width) for _ in range(2))
    if _has_loop(out):
        products = np.empty((sizes[0], 3 * width), x.dtype)
        arrays = gates, weight, bias, h, out, products, _starts(sizes), candidates, None, None, None, None
        _run(RECURRENT, "gru", sizes, is_reversed, width, width, arrays)
    else:
        by_numpy.gru(spans(sizes, is_reversed), gates, weight, bias, h, out, candidates)
    return out, (h,), (gates, candidates)


def gru_backward(d_out, d_last, arrays, kept, out, sizes, is_reversed, wanted):
    """The gradients, given those of out and of the final state."""
    x, h0, w_ih, w_hh, *_ = arrays
    gates, candidates = kept
    width = out.shape[1]
    weight, first = fitting(w_hh, x, (3 * width, width)), fitting(h0, x, (sizes[0], width))
    d_out, d_h = None if d_out is None else fitting(d_out, x, out.shape), _or_zeros(d_last[0], first)
    of_input, of_state = (_new(x, *gates.shape) for _ in range(2))
    before = _before(first, out, sizes, is_reversed) if wanted[3] or not _has_loop(out) else None
    if _has_loop(out):
        room = np.empty_like(d_h)
        needed = gates, weight, d_out, out, first, _starts(sizes), d_h, of_input, room, candidates, of_state
        _run(RECURRENT_GRADIENT, "gru", sizes, is_reversed, width, width, (*needed, None, None, None))
    else:
        steps = spans(sizes, is_reversed)[::-1]
        by_numpy.gru_backward(steps, gates, weight, d_out, before, d_h, of_input, candidates, of_state)
    return (*gradients_of(of_input, of_state, x, before, w_ih, d_h, wanted), None, None)


# -- plain ---------------------------------------------------------------------------------------------------


def _rnn(kind):
    def rnn(x, h0, w_ih, w_hh, b_ih, b_hh, c0, w_hr, sizes, is_reversed):
        width = h0.shape[1]
        out, bias = _input_products(x, w_ih), _bias(w_hh, b_ih, b_hh)
        h, weight = np.array(h0, order="C"), _transposed(w_hh)
        if _has_loop(out):
            products = np.empty((sizes[0], width), x.dtype)
            arrays = out, weight, bias, h, out, products, _starts(sizes), None, None, None, None, None
            _run(RECURRENT, kind, sizes, is_reversed, width, width, arrays)
        else:
            by_numpy.rnn(kind, spans(sizes, is_reversed), out, weight, bias, h)
        return out, (h,), ()

    return rnn


def _rnn_backward(kind):
    def rnn_backward(d_out, d_last, arrays, kept, out, sizes, is_reversed, wanted):
        x, h0, w_ih, w_hh, *_ = arrays
        width = out.shape[1]
        weight, first = fitting(w_hh, x, (width, width)), fitting(h0, x, (sizes[0], width))
        d_out, d_h = None if d_out is None else fitting(d_out, x, out.shape), _or_zeros(d_last[0], first)
        slopes = _new(x, *out.shape)
        if _has_loop(out):
            needed = out, weight, d_out, None, None, _starts(sizes), d_h, slopes
            _run(RECURRENT_GRADIENT, kind, sizes, is_reversed, width, width, (*needed, *[None] * 6))
        else:
            by_numpy.rnn_backward(kind, spans(sizes, is_reversed)[::-1], out, weight, d_out, d_h, slopes)
        before = _before(h0, out, sizes, is_reversed) if wanted[3] else None
        return (*gradients_of(slopes, slopes, x, before, w_ih, d_h, wanted), None, None)

    return rnn_backward


rnn_tanh, rnn_relu = _rnn("rnn_tanh"), _rnn("rnn_relu")
rnn_tanh_backward, rnn_relu_backward = _rnn_backward("rnn_tanh"), _rnn_backward("rnn_relu")

dispatching(globals(), " ".join(f"{kind} {kind}_backward" for kind in GATES))

FORWARD = {kind: globals()[kind] for kind in GATES}
BACKWARD = {kind: globals()[f"{kind}_backward"] for kind in GATES}
