"""NumPy fallback for the steps of recurrent layers, used if the loops of recurrent.h are disabled.

`steps` are the rows [start, stop) of each step, in the order of computation. Forward functions modify `gates` (products
with the input become gates), `h` and `c` (initial states become final states). Backward functions modify `d_h` and
`d_c`. Other outputs are the arguments from `out` on, or `slopes`: gradients with respect to the arguments of the gate
functions.
"""

import numpy as np

from cygrad._kernels.cpu.base.numpy_fallback import sigmoid, silent


def _parts(array, count):
    return np.split(array, count, 1)


@silent
def lstm(steps, gates, weight, bias, h, out, cells, c, tanhs, hidden, projection):
    for start, stop in steps:
        n = stop - start
        i, f, g, o = _parts(gates[start:stop] + (h[:n] @ weight + bias), 4)
        i, f, g, o = sigmoid(i), sigmoid(f), np.tanh(g), sigmoid(o)
        gates[start:stop] = np.concatenate([i, f, g, o], 1)
        c[:n] = cells[start:stop] = f * c[:n] + i * g
        tanhs[start:stop] = np.tanh(c[:n])
        h_now = o * tanhs[start:stop]
        if projection is not None:
            hidden[start:stop] = h_now
            h_now = h_now @ projection
        h[:n] = out[start:stop] = h_now


@silent
def lstm_backward(steps, gates, weight, d_out, before, d_h, slopes, d_c, tanhs, projection, projected):
    for start, stop in steps:
        n = stop - start
        i, f, g, o = _parts(gates[start:stop], 4)
        t = tanhs[start:stop]
        if d_out is not None:
            d_h[:n] += d_out[start:stop]
        d_hidden = d_h[:n]
        if projection is not None:
            projected[start:stop] = d_hidden
            d_hidden = d_hidden @ projection
        dc = d_c[:n] + d_hidden * o * (1 - t * t)
        d_i, d_f, d_g = dc * g * i * (1 - i), dc * before[start:stop] * f * (1 - f), dc * i * (1 - g * g)
        slopes[start:stop] = np.concatenate([d_i, d_f, d_g, d_hidden * t * o * (1 - o)], 1)
        d_c[:n] = dc * f
        d_h[:n] = slopes[start:stop] @ weight


@silent
def gru(steps, gates, weight, bias, h, out, candidates):
    b_r, b_z, b_n, b_candidate = np.split(bias, 4)
    for start, stop in steps:
        n = stop - start
        (r, z, new), (r_h, z_h, candidate) = _parts(gates[start:stop], 3), _parts(h[:n] @ weight, 3)
        r, z, candidate = sigmoid(r + (r_h + b_r)), sigmoid(z + (z_h + b_z)), candidate + b_candidate
        new = np.tanh(new + b_n + r * candidate)
        gates[start:stop] = np.concatenate([r, z, new], 1)
        candidates[start:stop] = candidate
        h[:n] = out[start:stop] = new + z * (h[:n] - new)


@silent
def gru_backward(steps, gates, weight, d_out, before, d_h, of_input, candidates, of_state):
    for start, stop in steps:
        n = stop - start
        r, z, new = _parts(gates[start:stop], 3)
        if d_out is not None:
            d_h[:n] += d_out[start:stop]
        dh = d_h[:n]
        d_new, d_z = dh * (1 - z) * (1 - new * new), dh * (before[start:stop] - new) * z * (1 - z)
        d_r = d_new * candidates[start:stop] * r * (1 - r)
        of_input[start:stop] = np.concatenate([d_r, d_z, d_new], 1)
        of_state[start:stop] = np.concatenate([d_r, d_z, d_new * r], 1)
        d_h[:n] = dh * z + of_state[start:stop] @ weight


@silent
def rnn(kind, steps, out, weight, bias, h):
    for start, stop in steps:
        n = stop - start
        x = out[start:stop] + (h[:n] @ weight + bias)
        h[:n] = out[start:stop] = np.tanh(x) if kind == "rnn_tanh" else np.maximum(x, 0)


@silent
def rnn_backward(kind, steps, out, weight, d_out, d_h, slopes):
    for start, stop in steps:
        n, now = stop - start, out[start:stop]
        if d_out is not None:
            d_h[:n] += d_out[start:stop]
        slopes[start:stop] = d_h[:n] * (1 - now * now) if kind == "rnn_tanh" else np.where(now <= 0, 0, d_h[:n])
        d_h[:n] = slopes[start:stop] @ weight
