"""Recurrent layers, all steps of one direction: LSTM, GRU and the plain RNN.

The rows of all steps stand one after the other: `x` is (rows, I), step t has sizes[t] rows, of which there are never
more than in the step before; `is_reversed` goes from the last step to the first. All products with the input are one
product of matrices, and so are the gradients of the weights. Forward functions give (out, final states, what backward
needs), backward functions the gradients of (x, h0, w_ih, w_hh, b_ih, b_hh, c0, w_hr), None for those not in `wanted`.
"""

import numpy as np

from cygrad._kernels.arrays import new_array


def _new(shape, like):
    """Memory from the pool: that of a new large array is slow when first touched."""
    return new_array(shape, like.dtype.num)


# -- steps ---------------------------------------------------------------------------------------------------


def spans(sizes, is_reversed):
    """The rows [start, stop) of each step, in the order of computation."""
    stops = np.cumsum(sizes).tolist()
    pairs = list(zip([0, *stops[:-1]], stops))
    return pairs[::-1] if is_reversed else pairs


def _before(first, each, sizes, is_reversed):
    """The state that each row of each step started from: `first`, or that of its step before."""
    n = sizes[0]
    if sizes[-1] == n:
        return np.concatenate([each[n:], first] if is_reversed else [first, each[:-n]]) if n else each
    steps = [each[start:stop] for start, stop in spans(sizes, False)]
    if is_reversed:
        steps.append(first[:0])
        parts = [np.concatenate([after, first[len(after) : n]]) for after, n in zip(steps[1:], sizes)]
    else:
        parts = [state[:n] for state, n in zip([first, *steps], sizes)]
    return np.concatenate(parts)


def _states_of(first, state, n, last):
    """The states of the n sequences in the next step; those of sequences that end are put into `last`."""
    if n <= len(state):
        last[n : len(state)] = state[n:]
        return state[:n]
    return np.concatenate([state, first[len(state) : n]])


def _input_products(x, w_ih, bias):
    products = np.matmul(x, w_ih.T, out=_new((len(x), len(w_ih)), x))
    return products if bias is None else np.add(products, bias, out=products)


def _sum_of_biases(b_ih, b_hh):
    return None if b_ih is None else b_ih + b_hh


def _or_zeros(grad, shape, dtype):
    """A gradient that is changed from step to step."""
    return np.zeros(shape, dtype) if grad is None else np.array(grad, dtype)


def _gradients(d_input, d_hidden, x, before, w_ih, d_h, wanted):
    """Those of (x, h0, w_ih, w_hh, b_ih, b_hh), given those of the products with the input and with the state."""
    b_ih = d_input.sum(0) if wanted[4] or (wanted[5] and d_input is d_hidden) else None
    return (
        np.matmul(d_input, w_ih, out=_new(x.shape, x)) if wanted[0] else None,
        d_h,
        np.matmul(d_input.T, x) if wanted[2] else None,
        np.matmul(d_hidden.T, before) if wanted[3] else None,
        b_ih,
        b_ih if d_input is d_hidden or not wanted[5] else d_hidden.sum(0),
    )


# -- LSTM ----------------------------------------------------------------------------------------------------


def _squashing(width, gates, dtype):
    """Factors and summands by which one tanh serves all gates: sigmoid(z) = tanh(z / 2) / 2 + 1 / 2."""
    factor = np.repeat(np.array(gates, dtype), width)
    return factor, 1 - factor


def lstm(x, h0, w_ih, w_hh, b_ih, b_hh, c0, w_hr, sizes, is_reversed):
    """Gates i, f, g, o: c = f * c + i * g, h = o * tanh(c), or that times w_hr transposed."""
    width = w_hh.shape[0] // 4
    half, rest = _squashing(width, (0.5, 0.5, 1, 0.5), x.dtype)
    gates = _input_products(x, w_ih, _sum_of_biases(b_ih, b_hh))
    gates *= half
    weight = np.multiply(w_hh.T, half, order="C")
    cells, squashed, out = (_new((len(x), n), x) for n in (width, width, h0.shape[1]))
    hidden = out if w_hr is None else np.empty_like(cells)
    i, f, g, o = (gates[:, k * width : (k + 1) * width] for k in range(4))
    last_h, last_c, product, summand = h0.copy(), c0.copy(), np.empty((len(h0), 4 * width), x.dtype), c0.copy()
    # not broadcast in each step, which takes twice as long
    factor, constant = (np.tile(row, (len(h0), 1)) for row in (half, rest))
    h, c = h0, c0
    for start, stop in spans(sizes, is_reversed):
        n = stop - start
        if n != len(h):
            h, c = _states_of(h0, h, n, last_h), _states_of(c0, c, n, last_c)
            product, summand = np.empty((n, 4 * width), x.dtype), np.empty((n, width), x.dtype)
            factor, constant = np.tile(half, (n, 1)), np.tile(rest, (n, 1))
        now, cell, t = gates[start:stop], cells[start:stop], squashed[start:stop]
        np.matmul(h, weight, out=product)
        np.add(now, product, out=now)
        np.tanh(now, out=now)
        np.multiply(now, factor, out=now)
        np.add(now, constant, out=now)
        np.multiply(f[start:stop], c, out=cell)
        np.multiply(i[start:stop], g[start:stop], out=summand)
        np.add(cell, summand, out=cell)
        np.tanh(cell, out=t)
        np.multiply(o[start:stop], t, out=hidden[start:stop])
        h, c = out[start:stop], cell
        if w_hr is not None:
            np.matmul(hidden[start:stop], w_hr.T, out=h)
    last_h[: len(h)], last_c[: len(c)] = h, c
    return out, (last_h, last_c), (gates, cells, squashed, hidden)


def lstm_backward(d_out, d_last, arrays, kept, out, sizes, is_reversed, wanted):
    """The gradients, given those of out and of the final states."""
    x, h0, w_ih, w_hh, _, _, c0, w_hr = arrays
    gates, cells, squashed, hidden = kept
    width = c0.shape[1]
    d_h, d_c = (_or_zeros(d, s.shape, x.dtype) for d, s in zip(d_last, (h0, c0)))
    each = gates.reshape(len(x), 4, width)
    i, f, g, o = (each[:, k] for k in range(4))
    # what each gate's gradient is, per gradient of the cell (i, f, g) and of the hidden state (o)
    slopes = np.subtract(1, each, out=_new(each.shape, x))
    slopes *= each
    slopes[:, 0] *= g
    slopes[:, 1] *= _before(c0, cells, sizes, is_reversed)
    np.subtract(1, np.multiply(g, g, out=slopes[:, 2]), out=slopes[:, 2])
    slopes[:, 2] *= i
    to_output = np.multiply(slopes[:, 3], squashed, out=_new(squashed.shape, x))
    to_cell = np.multiply(squashed, squashed, out=_new(squashed.shape, x))
    np.multiply(o, np.subtract(1, to_cell, out=to_cell), out=to_cell)
    d_gates = slopes.reshape(len(x), 4 * width)
    d_projected = np.empty((0 if w_hr is None else len(x), h0.shape[1]), x.dtype)
    share = np.empty_like(d_c)
    for start, stop in reversed(spans(sizes, is_reversed)):
        n = stop - start
        dh, dc, part, now = d_h[:n], d_c[:n], share[:n], slopes[start:stop]
        if d_out is not None:
            np.add(dh, d_out[start:stop], out=dh)
        d_hidden = dh
        if w_hr is not None:
            d_projected[start:stop] = dh
            d_hidden = np.matmul(dh, w_hr)
        np.multiply(d_hidden, to_cell[start:stop], out=part)
        np.add(dc, part, out=dc)
        np.multiply(now, dc[:, None], out=now)
        np.multiply(to_output[start:stop], d_hidden, out=now[:, 3])
        np.matmul(d_gates[start:stop], w_hh, out=dh)
        np.multiply(dc, f[start:stop], out=dc)
    before = _before(h0, out, sizes, is_reversed)
    d_w_hr = np.matmul(d_projected.T, hidden) if wanted[7] else None
    return (*_gradients(d_gates, d_gates, x, before, w_ih, d_h, wanted), d_c, d_w_hr)


# -- GRU -----------------------------------------------------------------------------------------------------


def gru(x, h0, w_ih, w_hh, b_ih, b_hh, c0, w_hr, sizes, is_reversed):
    """Gates r, z: n = tanh(W_in x + b_in + r * (W_hn h + b_hn)), h = (1 - z) * n + z * h."""
    width = h0.shape[1]
    gates = _input_products(x, w_ih, b_ih)
    if b_hh is not None:
        gates[:, : 2 * width] += b_hh[: 2 * width]
    gates[:, : 2 * width] *= x.dtype.type(0.5)
    weight = np.multiply(w_hh.T, _squashing(width, (0.5, 0.5, 1), x.dtype)[0], order="C")
    of_state, out, last_h = _new((len(x), width), x), _new((len(x), width), x), h0.copy()
    half = x.dtype.type(0.5)
    product, share, h = np.empty((len(h0), 3 * width), x.dtype), h0.copy(), h0
    for start, stop in spans(sizes, is_reversed):
        n = stop - start
        if n != len(h):
            h = _states_of(h0, h, n, last_h)
            product, share = np.empty((n, 3 * width), x.dtype), np.empty((n, width), x.dtype)
        both, new = gates[start:stop, : 2 * width], gates[start:stop, 2 * width :]
        candidate, now = of_state[start:stop], out[start:stop]
        np.matmul(h, weight, out=product)
        np.add(both, product[:, : 2 * width], out=both)
        np.tanh(both, out=both)
        np.multiply(both, half, out=both)
        np.add(both, half, out=both)
        np.add(product[:, 2 * width :], 0 if b_hh is None else b_hh[2 * width :], out=candidate)
        np.multiply(both[:, :width], candidate, out=share)
        np.add(new, share, out=new)
        np.tanh(new, out=new)
        np.subtract(h, new, out=share)
        np.multiply(both[:, width:], share, out=share)
        np.add(new, share, out=now)
        h = now
    last_h[: len(h)] = h
    return out, (last_h,), (gates, of_state)


def gru_backward(d_out, d_last, arrays, kept, out, sizes, is_reversed, wanted):
    """The gradients, given those of out and of the final state."""
    x, h0, w_ih, w_hh, *_ = arrays
    gates, of_state = kept
    width = h0.shape[1]
    r, z, new = (gates[:, k * width : (k + 1) * width] for k in range(3))
    before = _before(h0, out, sizes, is_reversed)
    # per gradient of the state: the products with it in r, z and n, and that with the input in n
    slopes = _new((len(x), 4, width), x)
    by_r, by_z, by_n, of_input = (slopes[:, k] for k in range(4))
    rest = np.subtract(1, z, out=_new(z.shape, x))
    np.subtract(1, np.multiply(new, new, out=of_input), out=of_input)
    of_input *= rest
    np.multiply(of_input, r, out=by_n)
    np.multiply(by_n, of_state, out=by_r)
    np.multiply(np.subtract(before, new, out=by_z), z, out=by_z)
    by_z *= rest
    by_r *= np.subtract(1, r, out=rest)
    d_hidden = slopes.reshape(len(x), 4 * width)[:, : 3 * width]
    d_h = _or_zeros(d_last[0], h0.shape, x.dtype)
    product = np.empty_like(d_h)
    for start, stop in reversed(spans(sizes, is_reversed)):
        n = stop - start
        dh, part, now = d_h[:n], product[:n], slopes[start:stop]
        if d_out is not None:
            np.add(dh, d_out[start:stop], out=dh)
        np.multiply(now, dh[:, None], out=now)
        np.matmul(d_hidden[start:stop], w_hh, out=part)
        np.multiply(dh, z[start:stop], out=dh)
        np.add(dh, part, out=dh)
    d_input = slopes.take((0, 1, 3), 1).reshape(len(x), 3 * width)
    return (*_gradients(d_input, d_hidden, x, before, w_ih, d_h, wanted), None, None)


# -- plain ---------------------------------------------------------------------------------------------------


def _relu(x, out):
    return np.maximum(x, 0, out=out)


def _rnn(function):
    def rnn(x, h0, w_ih, w_hh, b_ih, b_hh, c0, w_hr, sizes, is_reversed):
        out = _input_products(x, w_ih, _sum_of_biases(b_ih, b_hh))
        weight, last_h = np.ascontiguousarray(w_hh.T), h0.copy()
        product, h = np.empty_like(h0), h0
        for start, stop in spans(sizes, is_reversed):
            n = stop - start
            if n != len(h):
                h = _states_of(h0, h, n, last_h)
                product = np.empty((n, h0.shape[1]), x.dtype)
            now = out[start:stop]
            np.matmul(h, weight, out=product)
            np.add(now, product, out=now)
            h = function(now, out=now)
        last_h[: len(h)] = h
        return out, (last_h,), ()

    return rnn


def _rnn_backward(slope_at):
    def rnn_backward(d_out, d_last, arrays, kept, out, sizes, is_reversed, wanted):
        x, h0, w_ih, w_hh, *_ = arrays
        slopes, d_h = slope_at(out), _or_zeros(d_last[0], h0.shape, x.dtype)
        for start, stop in reversed(spans(sizes, is_reversed)):
            dh, now = d_h[: stop - start], slopes[start:stop]
            if d_out is not None:
                np.add(dh, d_out[start:stop], out=dh)
            np.multiply(now, dh, out=now)
            np.matmul(now, w_hh, out=dh)
        before = _before(h0, out, sizes, is_reversed)
        return (*_gradients(slopes, slopes, x, before, w_ih, d_h, wanted), None, None)

    return rnn_backward


FORWARD = {"lstm": lstm, "gru": gru, "rnn_tanh": _rnn(np.tanh), "rnn_relu": _rnn(_relu)}
BACKWARD = {
    "lstm": lstm_backward,
    "gru": gru_backward,
    "rnn_tanh": _rnn_backward(lambda out: 1 - out * out),
    "rnn_relu": _rnn_backward(lambda out: (out > 0).astype(out.dtype)),
}
