"""Forms of the kernels in `cpu/nn`: activations, softmax and its losses, normalization, attention, recurrent layers."""

import numpy as np

from cygrad._kernels.meta.array import ndarray
from cygrad._kernels.meta.forms.describing import by_element, like_first, like_second, with_arrays_in_memory

gelu = gelu_exact = gelu_tanh = mish = sigmoid = silu = by_element
gelu_backward = gelu_tanh_backward = mish_backward = sigmoid_backward = silu_backward = by_element
tanh_backward = threshold_backward = by_element
softmax = log_softmax = softmax_backward = log_softmax_backward = like_first


@with_arrays_in_memory  # of the second one, only shape and dtype matter
def nll_backward(kernel, grad, like, *args):
    return like_second(kernel, grad, like)


_NONE = 0  # the reduction that keeps the losses of all rows


def _accumulator(dtype):
    """Return the type in which sums of elements are kept."""
    return np.dtype(np.float64 if dtype == np.float64 else np.float32)


def nll(kernel, logp, target, weight, ignore_index, reduction):
    return ndarray(logp.shape[:1] if reduction == _NONE else (), logp.dtype), ndarray((), logp.dtype)


def cross_entropy(kernel, x, target, weight, ignore_index, reduction):
    return *nll(kernel, x, target, weight, ignore_index, reduction), ndarray(x.shape, x.dtype)


cross_entropy_backward = like_second


# --- Distances ---------------------------------------------------------------------------------


def cdist(kernel, x, y, p, by_product):
    stack = np.broadcast_shapes(x.shape[:-2], y.shape[:-2])
    return ndarray((*stack, x.shape[-2], y.shape[-2]), x.dtype)


def pdist(kernel, x, p):
    return ndarray((len(x) * (len(x) - 1) // 2,), x.dtype)


def pdist_gradient(kernel, g, x, distance, p):
    return ndarray(x.shape, x.dtype)


# --- Normalization -----------------------------------------------------------------------------


def normalized(kernel, x, weight, bias, frame, given, running=None):
    kept = ndarray(frame.kept, _accumulator(x.dtype))
    squares = ndarray(frame.kept, _accumulator(x.dtype)) if frame.centered else None
    return ndarray(x.shape, x.dtype), kept, ndarray(frame.kept, kept.dtype), squares


def gradients(kernel, g, x, weight, middle, factor, frame, needs):
    of_input, of_weight, of_bias = needs
    parameter = ndarray(frame.parameter, g.dtype)
    return (
        ndarray(g.shape, g.dtype) if of_input else None,
        parameter if of_weight else None,
        (ndarray(frame.parameter, g.dtype) if of_bias else None),
    )


# --- Attention ---------------------------------------------------------------------------------


def takes(kernel, query, value):
    return True


def attend(kernel, query, key, value, mask, scale, is_causal):
    leading, length, width = query.shape[:-2], query.shape[-2], value.shape[-1]
    logs = ndarray((*leading, length), _accumulator(query.dtype))
    if query.ndim != 4:
        return ndarray((*leading, length, width), query.dtype), logs
    return ndarray((leading[0], length, leading[1], width), query.dtype).swapaxes(1, 2), logs


def attend_backward(kernel, grad, query, key, value, *args):
    return tuple(ndarray(a.shape, a.dtype) for a in (query, key, value))


# --- Embeddings --------------------------------------------------------------------------------


def added_rows(kernel, rows, indices, count, padding):
    return ndarray((count, rows.shape[1]), rows.dtype)


def frequency_scale(kernel, indices, dtype):
    return ndarray(indices.shape, _accumulator(dtype))


def bag_of_each(kernel, starts, count):
    return ndarray((count,), np.int64)


def bag_sizes(kernel, bags, counted, count):
    return ndarray((count,), np.int64)


def sums_of_bags(kernel, table, places, bags, weights, counted, sizes, mean):
    return ndarray((len(sizes), table.shape[1]), table.dtype)


def bag_scale(kernel, places, bags, sizes, mean, by_frequency, dtype):
    return ndarray(places.shape, _accumulator(dtype)) if mean or by_frequency else None


def largest_of_bags(kernel, table, places, bags, sizes, counted):
    shape = len(sizes), table.shape[1]
    return ndarray(shape, table.dtype), ndarray(shape, np.int64)


def scaled_to_norm(kernel, table, places, largest, p):
    """Describe as many rows as may have to be scaled: they are written back, so that their number is not seen."""
    return places, ndarray((*places.shape, table.shape[1]), table.dtype)


# --- Recurrent layers --------------------------------------------------------------------------


def _states(h0, c0):
    return tuple(ndarray(a.shape, a.dtype) for a in (h0, c0) if a is not None)


def lstm(kernel, x, h0, w_ih, w_hh, b_ih, b_hh, c0, w_hr, sizes, is_reversed):
    rows, width, out_width = len(x), c0.shape[1], h0.shape[1]
    out, cells, tanhs = (ndarray((rows, n), x.dtype) for n in (out_width, width, width))
    hidden = None if w_hr is None else ndarray((rows, width), x.dtype)
    kept = ndarray((rows, 4 * width), x.dtype), cells, tanhs, hidden, None if w_hr is None else out
    return out, _states(h0, c0), kept


def gru(kernel, x, h0, w_ih, w_hh, b_ih, b_hh, c0, w_hr, sizes, is_reversed):
    rows, width = len(x), h0.shape[1]
    out, candidates = (ndarray((rows, width), x.dtype) for _ in range(2))
    return out, _states(h0, None), (ndarray((rows, 3 * width), x.dtype), candidates, out)


def rnn(kernel, x, h0, *args):
    out = ndarray((len(x), h0.shape[1]), x.dtype)
    return out, _states(h0, None), (out,)


rnn_tanh = rnn_relu = rnn


def lstm_backward(kernel, d_out, d_last, arrays, gates, kept, sizes, is_reversed, wanted):
    *others, c0, w_hr = [None if a is None else ndarray(a.shape, a.dtype) for a in arrays]
    return *others, c0, w_hr if wanted[7] else None


gru_backward = rnn_tanh_backward = rnn_relu_backward = lstm_backward
