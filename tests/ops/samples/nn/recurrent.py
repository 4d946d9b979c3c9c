"""Samples for recurrent layers and cells."""

import numpy as np
from ops.sample import Sample, grid

GATES = {"lstm": 4, "gru": 3, "rnn_tanh": 1, "rnn_relu": 1}


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def step(kind, x, h, c, w_ih, w_hh, b_ih=0, b_hh=0, w_hr=None):
    """Return the new h and c."""
    of_input, of_state = x @ w_ih.T + b_ih, h @ w_hh.T + b_hh
    if kind == "lstm":
        i, f, g, o = np.split(of_input + of_state, 4, -1)
        c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
        h = sigmoid(o) * np.tanh(c)
        return h if w_hr is None else h @ w_hr.T, c
    if kind == "gru":
        (r, z, n), (r_h, z_h, n_h) = np.split(of_input, 3, -1), np.split(of_state, 3, -1)
        n, z = np.tanh(n + sigmoid(r + r_h) * n_h), sigmoid(z + z_h)
        return (1 - z) * n + z * h, c
    return (np.tanh if kind == "rnn_tanh" else lambda a: np.maximum(a, 0))(of_input + of_state), c


def one_direction(kind, sizes, is_reversed, x, h0, w_ih, w_hh, b_ih=None, b_hh=None, c0=None, w_hr=None):
    """Run a single direction, step by step, on each sequence separately."""
    if x.ndim == 3:
        rows = x.reshape(len(x) * x.shape[1], x.shape[2])
        out, *last = one_direction(kind, sizes, is_reversed, rows, h0, w_ih, w_hh, b_ih, b_hh, c0, w_hr)
        return out.reshape(*x.shape[:2], -1), *last
    starts = np.concatenate([[0], np.cumsum(sizes)])
    states = [h0.copy()] if c0 is None else [h0.copy(), c0.copy()]
    out = np.zeros((len(x), h0.shape[1]))
    biases = (0, 0) if b_ih is None else (b_ih, b_hh)
    for n in range(sizes[0]):
        rows = [start + n for start, size in zip(starts, sizes) if n < size]
        for row in rows[::-1] if is_reversed else rows:
            c = None if c0 is None else states[1][n]
            new = step(kind, x[row], states[0][n], c, w_ih, w_hh, *biases, w_hr)
            for state, value in zip(states, new):
                state[n] = value
            out[row] = new[0]
    return (out, *states)


def whole(kind):
    """The package's function on padded sequences, computed one direction at a time."""

    def function(x, hx, params, has_biases, num_layers, dropout, train, bidirectional, batch_first):
        x = x.swapaxes(0, 1) if batch_first else x
        steps, batch, _ = x.shape
        states = hx if isinstance(hx, list) else [hx]
        directions = 1 + bidirectional
        each, last = len(params) // (num_layers * directions), []
        rows = x.reshape(steps * batch, -1)
        for layer in range(num_layers):
            outs = []
            for index in range(layer * directions, (layer + 1) * directions):
                own = list(params[index * each : (index + 1) * each])
                w_hr = own.pop() if each in (3, 5) else None
                c0 = states[1][index] if len(states) == 2 else None
                own += [None] * (4 - len(own))
                found = one_direction(
                    kind, (batch,) * steps, index % directions, rows, states[0][index], *own, c0, w_hr
                )
                outs.append(found[0])
                last.append(found[1:])
            rows = np.concatenate(outs, 1)
        out = rows.reshape(steps, batch, -1)
        return (out.swapaxes(0, 1) if batch_first else out, *map(np.stack, zip(*last)))

    return function


def weights(kind, size, width, out=None, bias=True):
    """The weights of one layer and direction: (w_ih, w_hh, b_ih, b_hh, w_hr), without the absent ones."""
    rows = GATES[kind] * width
    found = [0.3 * grid(rows, size), 0.3 * grid(rows, out or width)[::-1].copy()]
    if bias:
        found += [0.2 * grid(rows), 0.2 * grid(rows)[::-1].copy()]
    return [*found, grid(out, width)] if out else found


def layer_calls(kind):
    """Padded and packed sequences, both directions, with and without biases."""
    for sizes, is_reversed, bias in (((2, 2), False, True), ((3, 2, 1), False, True), ((2, 1, 1), True, False)):
        w = weights(kind, 2, 2, bias=bias)
        w += [None] * (4 - len(w))
        c0 = grid(sizes[0], 2)[::-1].copy() if kind == "lstm" else None
        x = grid(2, 2, 2) if len(sizes) == 2 else grid(sum(sizes), 2)
        yield (kind, sizes, is_reversed, x, 0.7 * grid(sizes[0], 2), *w, c0)
    if kind == "lstm":
        *w, w_hr = weights(kind, 2, 3, 2)
        yield (kind, (2, 1), True, grid(3, 2), grid(2, 2), *w, grid(2, 3), w_hr)


def calls(kind):
    """Calls with one layer, and with two bidirectional layers."""
    x = grid(2, 2, 2)

    def states(layers, out=2):
        h = 0.7 * grid(layers, 2, out)
        return [h, 0.5 * grid(layers, 2, 2)] if kind == "lstm" else h

    yield (x, states(1), weights(kind, 2, 2), True, 1, 0.0, True, False, False)
    deep = 2 * weights(kind, 2, 2, bias=False) + 2 * weights(kind, 4, 2, bias=False)
    yield (x, states(4), deep, False, 2, 0.0, True, True, True)
    if kind == "lstm":
        yield (x, states(1, 1), weights(kind, 2, 2, 1), True, 1, 0.0, True, False, False)


def cell_calls(kind):
    w = weights(kind, 2, 3)
    h = 0.7 * grid(2, 3)
    hx = [h, grid(2, 3)] if kind == "lstm" else h
    return [(grid(2, 2), hx, *w), (grid(2, 2), hx, *w[:2])]


def cell(kind):
    def function(x, hx, *w):
        h, c = hx if isinstance(hx, list) else (hx, None)
        h, c = step(kind, x, h, c, *w)
        return h if c is None else (h, c)

    return function


def samples():
    found = {"recurrent_layer": []}
    for kind in GATES:
        layer = [Sample(call, numpy=one_direction, any_layout=False) for call in layer_calls(kind)]
        found["recurrent_layer"] += layer
        found[kind] = [Sample(call, numpy=whole(kind), any_layout=False) for call in calls(kind)]
        found[f"{kind}_cell"] = [Sample(call, numpy=cell(kind)) for call in cell_calls(kind)]
    return found


# --- Invalid input -----------------------------------------------------------------------------


def errors():
    x, h, lstm, gru, rnn = (
        grid(2, 3),
        grid(2, 4),
        weights("lstm", 3, 4),
        weights("gru", 3, 4),
        weights("rnn_relu", 3, 4),
    )
    how = (True, 1, 0.0, True, False, False)
    steps, state = grid(5, 2, 3), grid(1, 2, 4)

    def bad(*cases):
        return [Sample(case) for case in cases]

    return {
        "lstm_cell": bad(
            (x, h, *lstm),
            (x, [h], *lstm),
            (x, [h, grid(1, 4)], *lstm),
            (x, [grid(2, 5), h], *lstm),
            (x, [h, grid(2, 5)], *lstm),
            (grid(2, 2), [h, h], *lstm),
            (x[0], [h[0], h[0]], *lstm),
        ),
        "gru_cell": bad((x, grid(3, 4), *gru), (x, h, *lstm), (x[0], h[0], *gru)),
        "rnn_tanh_cell": bad((x, h, lstm[0], rnn[1]), (x, h, rnn[0], lstm[1]), (grid(3, 2, 3), h, *rnn)),
        "lstm": bad((steps, [state], lstm, *how), (steps, state, lstm, *how), (steps, [state, state], lstm, *how[:-1])),
        "gru": bad(
            (steps, [state], gru, *how),
            (steps, state, gru[:3], *how),
            (steps, state, 2 * gru, True, 2, 0.0, True, False, False),
            (grid(0, 2, 3), state, gru, *how),
        ),
    }
