"""Recurrent layers (LSTM, GRU, plain RNN): all steps of one layer in one direction.

The rows of all steps are concatenated: `x` is (rows, I), and step t has sizes[t] rows, never more than the step before;
`is_reversed` runs from the last step to the first. All products with the input are a single matrix product, and so are
the gradients of the weights. The steps in between are a loop in `recurrent.h`, in which threads share the sequences, or
in recurrent_fallback.py if compiled loops are disabled. If all of this is small, each thread also computes the products
of its own sequences, whose data is already in its cache.

Forward functions return (out, final states, data kept for backward: the gates first, or the output of a plain RNN).
Backward functions return the gradients of (x, h0, w_ih, w_hh, b_ih, b_hh, c0, w_hr), None for those not in `wanted`.
"""

from functools import lru_cache, wraps
from typing import Any

import numpy as np

import cygrad._kernels.cpu.base.loop_table as loop_table
from cygrad._kernels.cpu.base import chunks
from cygrad._kernels.cpu.base.arrays import dense, new_array
from cygrad._kernels.cpu.base.loop_table import LOOP_SIZES, LOOPS
from cygrad._kernels.cpu.base.matmul import matmul
from cygrad._kernels.cpu.base.numpy_fallback import silent
from cygrad._kernels.cpu.base.reduce import sum as total
from cygrad._kernels.cpu.nn import recurrent_fallback as by_numpy
from cygrad._kernels.cpu.nn.fused_normalization import fitting
from cygrad._kernels.device.dispatch import dispatching
from cygrad._kernels.platform.thresholds import SMALL_PRODUCT

RECURRENT, RECURRENT_GRADIENT = LOOPS.RECURRENT, LOOPS.RECURRENT_GRADIENT
WITH_PANELS = LOOPS.WINOGRAD_FILTERS  # a loop that exists where the panels of matmul do
INPUTS = LOOP_SIZES.INPUTS  # index of the input among the arrays of a gradient
GATES = {"lstm": 4, "gru": 3, "rnn_tanh": 1, "rnn_relu": 1}  # in the order of recurrent.h
KINDS = {kind: i for i, kind in enumerate(GATES)}
FEWEST_ROWS, PARTS = 8, 4  # sequences per chunk are a multiple of the first; number of chunks for threads
MOST_ROWS = 1 << 11  # minimum rows of the slopes buffer: fewer would make for small matrix products
SMALL_WEIGHT = 1 << 16  # elements of a weight up to which each chunk has its own gradient buffer


def _new(like, *shape):
    """Memory from the pool: first-touching a newly allocated large array is slow."""
    return new_array(shape, like.dtype.num)


# -- steps --


def spans(sizes, is_reversed):
    """The rows [start, stop) of each step, in the order of computation."""
    stops = np.cumsum(sizes).tolist()
    pairs = list(zip([0, *stops[:-1]], stops))
    return pairs[::-1] if is_reversed else pairs


@lru_cache(8)
def _starts(sizes):
    return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)


def _has_loop(out):
    return loop_table.has_loops(out) and out.size > 0


def _part(n):
    """How many of n sequences a thread processes at a time."""
    return -(-n // (PARTS * FEWEST_ROWS)) * FEWEST_ROWS


def _is_small(n, weight):
    return _part(n) * weight.size <= SMALL_PRODUCT


def _run(loop, kind, sizes, is_reversed, width, out_width, arrays, in_width=0):
    """Run a loop of recurrent.h over all sequences. The second of `arrays` must be the weight of the state."""
    n, is_small = sizes[0], _is_small(sizes[0], arrays[1])
    numbers = KINDS[kind], len(sizes), is_reversed, width, out_width, GATES[kind] * width, is_small, in_width, n
    loop_table.run(loop, arrays, numbers, 0, n, _part(n) if is_small else n)


def _fits_parts(sizes, x, w_ih, w_hh):
    """Whether threads can process their sequences on their own: all of equal length, with small weights."""
    return sizes[0] == sizes[-1] and _is_small(sizes[0], w_hh) and w_ih.size <= SMALL_WEIGHT and _has_loop(x)


def _gates(x, w_ih, w_hh, sizes):
    """Prepare the array that becomes the gates.

    Returns (products with the input, no arrays, 0), or, if the loop is to multiply, (uninitialized memory, arrays for
    it, input width).
    """
    has_panels = x.dtype == np.float32 and len(w_ih) % 16 == 0 and loop_table.has_loop(WITH_PANELS)
    if has_panels and sizes[0] % FEWEST_ROWS == 0 and _fits_parts(sizes, x, w_ih, w_hh):
        return _new(x, len(x), len(w_ih)), (dense(x), dense(w_ih)), x.shape[1]
    return _input_products(x, w_ih), (None, None), 0


def states_before(first, each, sizes, is_reversed):
    """The state that each row of each step started from, in parts: `first` or the state of the step before it."""
    n = sizes[0]
    if sizes[-1] == n:
        return [each[n:], first] if is_reversed else [first, each[: len(each) - n]]
    if is_reversed:
        steps = [each[start:stop] for start, stop in spans(sizes, False)[1:]]
        return [np.concatenate([after, first[len(after) : n]]) for after, n in zip([*steps, first[:0]], sizes)]
    return [state[:n] for state, n in zip([first, *(each[a:b] for a, b in spans(sizes, False))], sizes)]


def _before(first, each, sizes, is_reversed):
    """`states_before` as one array."""
    return np.concatenate(states_before(first, each, sizes, is_reversed), out=_new(each, *each.shape))


def _input_products(x, w_ih):
    return matmul(x, w_ih.T)


@silent
def _bias(w_hh, b_ih, b_hh):
    return np.zeros(len(w_hh), w_hh.dtype) if b_ih is None else b_ih + b_hh


def _or_zeros(grad, like):
    """A gradient that is updated from step to step."""
    return np.zeros(like.shape, like.dtype) if grad is None else np.array(fitting(grad, like, like.shape))


def gradients_of(d_input, d_hidden, x, before, w_ih, d_h, wanted):
    """Gradients of (x, h0, w_ih, w_hh, b_ih, b_hh), from those of the products with the input and with the state."""
    b_ih = total(d_input, (0,)) if wanted[4] or (wanted[5] and d_input is d_hidden) else None
    return (
        matmul(d_input, w_ih) if wanted[0] else None,
        d_h,
        matmul(d_input.T, x) if wanted[2] else None,
        matmul(d_hidden.T, before) if wanted[3] else None,
        b_ih,
        b_ih if d_input is d_hidden or not wanted[5] else total(d_hidden, (0,)),
    )


def _gradients_of(slopes, of_state, d_h, arrays, out, sizes, is_reversed, wanted):
    x, h0, w_ih, *_ = arrays
    if not wanted[3] or sizes[-1] != sizes[0] or out.size <= chunks.SIZE:
        before = _before(h0, out, sizes, is_reversed) if wanted[3] else None
        return gradients_of(slopes, of_state, x, before, w_ih, d_h, wanted)
    found = gradients_of(slopes, of_state, x, None, w_ih, d_h, (*wanted[:3], False, *wanted[4:]))
    parts = states_before(h0, out, sizes, is_reversed)  # avoids concatenating them
    cut = len(parts[0])
    of_weight = matmul(of_state[:cut].T, parts[0])
    of_weight += matmul(of_state[cut:].T, parts[1])
    return (*found[:3], of_weight, *found[4:])


def _gradients_in_parts(kind, given, slopes, of_state, arrays, out, sizes, is_reversed, wanted):
    """Run the loop that takes `given`, letting it also compute the gradients of (x, w_ih, w_hh, b_ih, b_hh)."""
    (rows, gates), width, n = slopes.shape, arrays[3].shape[1], sizes[0]
    x = fitting(arrays[0], slopes, (rows, arrays[0].shape[1]))
    h0, w_ih = fitting(arrays[1], x, (n, width)), fitting(arrays[2], x, (gates, x.shape[1]))
    parts = 1 if n < 2 * _part(n) else -(-n // _part(n))  # as `share` splits them in thread_pool.pyx
    room = _new(x, len(x), max(x.shape[1], width))
    shapes = x.shape, (parts, *w_ih.shape), (parts, gates, width), (parts, 3, gates)
    wants = wanted[0], wanted[2], wanted[3], wanted[4] or wanted[5]
    d_x, *of_weights = [_new(x, *shape) if want else None for shape, want in zip(shapes, wants)]
    outputs = None if out is None else dense(out)
    needed = *given, *[None] * (INPUTS - len(given)), x, w_ih, outputs, h0, room, d_x, *of_weights
    _run(RECURRENT_GRADIENT, kind, sizes, is_reversed, gates // GATES[kind], width, needed, x.shape[1])
    d_w_ih, d_w_hh, d_biases = [None if d is None else total(d, (0,)) if parts > 1 else d[0] for d in of_weights]
    if d_biases is None:
        return d_x, d_w_ih, d_w_hh, None, None
    of_input = d_biases[0].copy()
    return d_x, d_w_ih, d_w_hh, of_input, of_input if of_state is slopes else d_biases[1].copy()


def _gradients_by_loop(kind, given, d_h, slopes, of_state, arrays, out, sizes, is_reversed, wanted):
    """Run the loop that takes `given`; return the gradients of (x, h0, w_ih, w_hh, b_ih, b_hh)."""
    x, _, w_ih, w_hh, *_, w_hr = arrays
    if w_hr is None and _fits_parts(sizes, x, w_ih, w_hh):
        d_x, *others = _gradients_in_parts(kind, given, slopes, of_state, arrays, out, sizes, is_reversed, wanted)
        return d_x, d_h, *others
    _run(RECURRENT_GRADIENT, kind, sizes, is_reversed, slopes.shape[1] // GATES[kind], w_hh.shape[1], given)
    if out is None and wanted[3]:
        out = lstm_outputs(given[0], given[9])
    return _gradients_of(slopes, of_state, d_h, arrays, out, sizes, is_reversed, wanted)


def _some_steps_at_a_time(backward):
    """Decorate a backward function to process chunks of steps, so that the slopes buffer stays small.

    Applies only to sequences of equal length.
    """

    @wraps(backward)
    def by_blocks(d_out, d_last, arrays, gates, kept, sizes, is_reversed, wanted):
        n, steps = sizes[0], len(sizes)
        some = max(4 * chunks.SIZE // max(gates.shape[1], 1), MOST_ROWS) // max(n, 1)
        if not 0 < some < steps or sizes[-1] != n:
            return backward(d_out, d_last, arrays, gates, kept, sizes, is_reversed, wanted)
        x, h0, *weights, c0, w_hr = arrays
        starts = range(0, steps, some) if is_reversed else range(steps - some, -some, -some)
        totals: Any = None
        d_x: Any = _new(x, *x.shape) if wanted[0] else None
        for start in starts:
            here = slice(max(start, 0) * n, min(start + some, steps) * n)
            before = slice(here.stop, here.stop + n) if is_reversed else slice(here.start - n, here.start)
            first = h0, c0
            if 0 <= before.start < steps * n:
                first = _states_after(gates[before], [a if a is None else a[before] for a in kept])
            found = backward(
                None if d_out is None else d_out[here],
                d_last,
                (x[here], first[0], *weights, first[1], w_hr),
                gates[here],
                [a if a is None else a[here] for a in kept],
                sizes[: (here.stop - here.start) // n],
                is_reversed,
                wanted,
            )
            d_last = (found[1],) if c0 is None else (found[1], found[6])
            if wanted[0]:
                d_x[here] = found[0]
            of_weights = *found[2:6], found[7]
            if totals is None:
                totals = [a if a is None else np.array(a) for a in of_weights]  # one array may be returned twice
            else:
                for total_of, a in zip(totals, of_weights):
                    if a is not None:
                        total_of += a
            del found, of_weights  # free them before the next are allocated
        return d_x, d_last[0], *totals[:4], None if c0 is None else d_last[1], totals[4]

    return by_blocks


def _states_after(gates, kept):
    """Return (h, c) after a step, from the data it kept."""
    if len(kept) == 4:
        cells, tanhs, _, out = kept
        return lstm_outputs(gates, tanhs) if out is None else out, cells
    return kept[-1] if kept else gates, None


# -- LSTM --


def lstm_outputs(gates, tanhs):
    """The outputs, from the kept data: o * tanh(c)."""
    return gates[:, 3 * tanhs.shape[1] :] * tanhs


def lstm(x, h0, w_ih, w_hh, b_ih, b_hh, c0, w_hr, sizes, is_reversed):
    """Gates i, f, g, o: c = f * c + i * g, h = o * tanh(c), projected by the transpose of w_hr if given."""
    (out_width, width), rows = (h0.shape[1], c0.shape[1]), len(x)
    gates, of_input, in_width = _gates(x, w_ih, w_hh, sizes)
    bias = _bias(w_hh, b_ih, b_hh)
    h, c = (np.array(a, order="C") for a in (h0, c0))
    out, cells, tanhs = (_new(x, rows, n) for n in (out_width, width, width))
    hidden = None if w_hr is None else _new(x, rows, width)
    projection = None if w_hr is None else dense(w_hr.T)
    if _has_loop(out):
        products = np.empty((sizes[0], 4 * width), x.dtype)
        arrays = gates, dense(w_hh), bias, h, out, products, _starts(sizes), cells, c, tanhs, hidden, projection
        _run(RECURRENT, "lstm", sizes, is_reversed, width, out_width, (*arrays, *of_input), in_width)
    else:
        by_numpy.lstm(spans(sizes, is_reversed), gates, w_hh.T, bias, h, out, cells, c, tanhs, hidden, projection)
    return out, (h, c), (gates, cells, tanhs, hidden, None if w_hr is None else out)


@_some_steps_at_a_time
def lstm_backward(d_out, d_last, arrays, gates, kept, sizes, is_reversed, wanted):
    """The gradients, from those of out and of the final states."""
    x, h0, _, w_hh, _, _, c0, w_hr = arrays
    cells, tanhs, hidden, out = kept
    rows, width = cells.shape
    out_width = width if out is None else out.shape[1]
    weight, first = fitting(w_hh, x, (4 * width, out_width)), fitting(c0, x, (sizes[0], width))
    projection = None if w_hr is None else fitting(w_hr, x, (out_width, width))
    d_out = None if d_out is None else fitting(d_out, x, (rows, out_width))
    d_h, d_c = (_or_zeros(d, like) for d, like in zip(d_last, (fitting(h0, x, (sizes[0], out_width)), first)))
    slopes, projected = _new(x, *gates.shape), None if w_hr is None else _new(x, rows, out_width)
    if _has_loop(slopes):
        d_hidden = None if w_hr is None else np.empty_like(d_c)
        of_cell = gates, weight, d_out, cells, first, _starts(sizes), d_h, slopes, d_c, tanhs, None
        given = *of_cell, projection, projected, d_hidden
        found = _gradients_by_loop("lstm", given, d_h, slopes, slopes, arrays, out, sizes, is_reversed, wanted)
    else:
        before, steps = _before(first, cells, sizes, is_reversed), spans(sizes, is_reversed)[::-1]
        by_numpy.lstm_backward(steps, gates, weight, d_out, before, d_h, slopes, d_c, tanhs, projection, projected)
        out = lstm_outputs(gates, tanhs) if out is None else out
        found = _gradients_of(slopes, slopes, d_h, arrays, out, sizes, is_reversed, wanted)
    d_w_hr = matmul(projected.T, hidden) if projected is not None and wanted[7] else None
    return *found, d_c, d_w_hr


# -- GRU --


@silent
def gru(x, h0, w_ih, w_hh, b_ih, b_hh, c0, w_hr, sizes, is_reversed):
    """Gates r, z: n = tanh(W_in x + b_in + r * (W_hn h + b_hn)), h = (1 - z) * n + z * h."""
    width = h0.shape[1]
    gates, of_input, in_width = _gates(x, w_ih, w_hh, sizes)
    bias = np.zeros(4 * width, x.dtype)
    if b_ih is not None:
        bias[: 3 * width] = b_ih
        bias[: 2 * width] += b_hh[: 2 * width]
        bias[3 * width :] = b_hh[2 * width :]
    h = np.array(h0, order="C")
    out, candidates = (_new(x, len(x), width) for _ in range(2))
    if _has_loop(out):
        products = np.empty((sizes[0], 3 * width), x.dtype)
        arrays = gates, dense(w_hh), bias, h, out, products, _starts(sizes), candidates, *[None] * 4, *of_input
        _run(RECURRENT, "gru", sizes, is_reversed, width, width, arrays, in_width)
    else:
        by_numpy.gru(spans(sizes, is_reversed), gates, w_hh.T, bias, h, out, candidates)
    return out, (h,), (gates, candidates, out)


@_some_steps_at_a_time
def gru_backward(d_out, d_last, arrays, gates, kept, sizes, is_reversed, wanted):
    """The gradients, from those of out and of the final state."""
    x, h0, _, w_hh, *_ = arrays
    candidates, out = kept
    width = out.shape[1]
    weight, first = fitting(w_hh, x, (3 * width, width)), fitting(h0, x, (sizes[0], width))
    d_out, d_h = None if d_out is None else fitting(d_out, x, out.shape), _or_zeros(d_last[0], first)
    of_input, of_state = (_new(x, *gates.shape) for _ in range(2))
    if _has_loop(out):
        room = np.empty_like(d_h)
        given = gates, weight, d_out, out, first, _starts(sizes), d_h, of_input, room, candidates, of_state
        found = _gradients_by_loop("gru", given, d_h, of_input, of_state, arrays, out, sizes, is_reversed, wanted)
    else:
        before, steps = _before(first, out, sizes, is_reversed), spans(sizes, is_reversed)[::-1]
        by_numpy.gru_backward(steps, gates, weight, d_out, before, d_h, of_input, candidates, of_state)
        found = _gradients_of(of_input, of_state, d_h, arrays, out, sizes, is_reversed, wanted)
    return *found, None, None


# -- plain --


def _rnn(kind):
    def rnn(x, h0, w_ih, w_hh, b_ih, b_hh, c0, w_hr, sizes, is_reversed):
        width = h0.shape[1]
        out, of_input, in_width = _gates(x, w_ih, w_hh, sizes)
        h, bias = np.array(h0, order="C"), _bias(w_hh, b_ih, b_hh)
        if _has_loop(out):
            products = np.empty((sizes[0], width), x.dtype)
            arrays = out, dense(w_hh), bias, h, out, products, _starts(sizes), *[None] * 5, *of_input
            _run(RECURRENT, kind, sizes, is_reversed, width, width, arrays, in_width)
        else:
            by_numpy.rnn(kind, spans(sizes, is_reversed), out, w_hh.T, bias, h)
        return out, (h,), (out,)

    return rnn


def _rnn_backward(kind):
    @_some_steps_at_a_time
    def rnn_backward(d_out, d_last, arrays, gates, kept, sizes, is_reversed, wanted):
        x, h0, _, w_hh, *_ = arrays
        out, width = gates, gates.shape[1]
        weight, first = fitting(w_hh, x, (width, width)), fitting(h0, x, (sizes[0], width))
        d_out, d_h = None if d_out is None else fitting(d_out, x, out.shape), _or_zeros(d_last[0], first)
        slopes = _new(x, *out.shape)
        if _has_loop(out):
            given = out, weight, d_out, None, None, _starts(sizes), d_h, slopes
            found = _gradients_by_loop(kind, given, d_h, slopes, slopes, arrays, out, sizes, is_reversed, wanted)
        else:
            by_numpy.rnn_backward(kind, spans(sizes, is_reversed)[::-1], out, weight, d_out, d_h, slopes)
            found = _gradients_of(slopes, slopes, d_h, arrays, out, sizes, is_reversed, wanted)
        return *found, None, None

    return rnn_backward


rnn_tanh, rnn_relu = _rnn("rnn_tanh"), _rnn("rnn_relu")
rnn_tanh_backward, rnn_relu_backward = _rnn_backward("rnn_tanh"), _rnn_backward("rnn_relu")

dispatching(globals(), " ".join(f"{kind} {kind}_backward" for kind in GATES))

FORWARD = {kind: globals()[kind] for kind in GATES}
BACKWARD = {kind: globals()[f"{kind}_backward"] for kind in GATES}
