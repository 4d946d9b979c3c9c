"""Recurrent cells: one step of an LSTM, GRU or plain RNN, composed of other ops; on GPUs, by a layer's kernels."""

from cygrad._core.errors import messages
from cygrad._core.graph.internals import array_of
from cygrad._core.graph.opdef import FUNCTION_ONLY, facts, publish
from cygrad._kernels.device.cupy_library import is_array
from cygrad._ops.base.arguments import require
from cygrad._ops.base.products import linear
from cygrad._ops.nn.recurrent import recurrent_layer
from cygrad._ops.nn.recurrent_steps import GATES, STEPS, require_each


def _cell(kind, input, states, w_ih, w_hh, b_ih, b_hh):
    """Check the shapes and return the new states."""
    name = f"{kind}_cell"
    for position, (value, what) in enumerate(((input, "input"), *((s, "hx") for s in states)), 1):
        require(value, name, what, position)
    require(w_ih, name, "w_ih", 3)
    require(w_hh, name, "w_hh", 4)
    if input.ndim > 1 and w_ih.ndim > 1 and input.shape[1] != w_ih.shape[1]:
        raise RuntimeError(f"input has inconsistent input_size: got {input.shape[1]} expected {w_ih.shape[1]}")
    _require_batch(input, name)
    for i, state in enumerate(states):
        if state.ndim and input.shape[0] != state.shape[0]:
            raise RuntimeError(f"Input batch size {input.shape[0]} doesn't match hidden{i} batch size {state.shape[0]}")
    for state in states:
        _require_batch(state, name)
    width = w_hh.shape[1]
    for i, state in enumerate(states):
        if state.shape[1] != width:
            raise RuntimeError(f"hidden{i} has inconsistent hidden_size: got {state.shape[1]}, expected {width}")
    for weight, what in ((w_ih, "weight_ih"), (w_hh, "weight_hh")):
        if weight.shape[0] != GATES[kind] * width:
            raise RuntimeError(
                f"{what} first dim must be {GATES[kind]} * hidden_size = {GATES[kind] * width}, but got "
                f"{weight.shape[0]}"
            )
    if is_array(array_of(input)) and _fit(input, w_ih, w_hh, b_ih, b_hh, *states):
        # a layer of one step, whose gates are computed by one kernel
        _, *new = recurrent_layer(kind, (len(input),), False, input, states[0], w_ih, w_hh, b_ih, b_hh, *states[1:])
        return tuple(new)
    return STEPS[kind](linear(input, w_ih, b_ih), linear(states[0], w_hh, b_hh), *states)


def _require_batch(tensor, name):
    if tensor.ndim < 2:
        raise IndexError(
            f"Dimension out of range (expected to be in range of [-1, 0], but got 1)\n  {name} expects a batch"
        )


def _fit(input, w_ih, w_hh, b_ih, b_hh, *states):
    """Whether there are rows of one dtype, and both biases, of full size, or neither."""
    biases = [b for b in (b_ih, b_hh) if b is not None]
    fit = len(input) > 0 and len(biases) != 1 and all(b.shape == w_ih.shape[:1] for b in biases)
    return fit and all(t.dtype is input.dtype for t in (w_ih, w_hh, *biases, *states))


@facts(autocast_gpu="lower")
def lstm_cell(input, hx, w_ih, w_hh, b_ih=None, b_hh=None):
    """Compute one step of an LSTM: (h, c) from `input` (N, I) and `hx` = (h, c) (N, H); see `LSTM` for the formula.

    i, f, o = sigmoid and g = tanh of w_ih x + b_ih + w_hh h + b_hh; c = f c + i g, and h = o tanh(c).

    Weights are (4 H, I) and (4 H, H), biases (4 H,). Raises RuntimeError for mismatched sizes.

    >>> import cygrad
    >>> h, c = cygrad.lstm_cell(cygrad.ones(1, 1), (cygrad.ones(1, 1),) * 2, cygrad.zeros(4, 1), cygrad.zeros(4, 1))
    >>> c
    tensor([[0.5000]])
    """
    if not isinstance(hx, (tuple, list)):
        raise messages.wrong_type("lstm_cell", "hx", 2, "tuple of Tensors", hx)
    require_each(hx, 1)
    if len(hx) != 2:
        raise RuntimeError("lstm_cell expects two hidden states")
    return _cell("lstm", input, tuple(hx), w_ih, w_hh, b_ih, b_hh)


@facts(autocast_gpu="lower")
def gru_cell(input, hx, w_ih, w_hh, b_ih=None, b_hh=None):
    """Compute one step of a GRU: the new state from `input` (N, I) and `hx` (N, H); see `GRU` for the formula.

    With r, z = sigmoid(w_ih x + b_ih + w_hh h + b_hh) and n = tanh(w_in x + b_in + r (w_hn h + b_hn)), the result is
    (1 - z) n + z h.

    Weights are (3 H, I) and (3 H, H), biases (3 H,). Raises RuntimeError for mismatched sizes.

    >>> import cygrad
    >>> cygrad.gru_cell(cygrad.ones(1, 1), cygrad.ones(1, 1), cygrad.zeros(3, 1), cygrad.zeros(3, 1))
    tensor([[0.5000]])
    """
    return _cell("gru", input, (hx,), w_ih, w_hh, b_ih, b_hh)[0]


@facts(autocast_gpu="lower")
def rnn_tanh_cell(input, hx, w_ih, w_hh, b_ih=None, b_hh=None):
    """`tanh(input @ w_ih^T + b_ih + hx @ w_hh^T + b_hh)`: shapes (N, I), (N, H), weights (H, I), (H, H).

    >>> import cygrad
    >>> cygrad.rnn_tanh_cell(cygrad.ones(1, 1), cygrad.ones(1, 1), cygrad.zeros(1, 1), cygrad.ones(1, 1))
    tensor([[0.7616]])
    """
    return _cell("rnn_tanh", input, (hx,), w_ih, w_hh, b_ih, b_hh)[0]


@facts(autocast_gpu="lower")
def rnn_relu_cell(input, hx, w_ih, w_hh, b_ih=None, b_hh=None):
    """`relu(input @ w_ih^T + b_ih + hx @ w_hh^T + b_hh)`: shapes (N, I), (N, H), weights (H, I), (H, H).

    >>> import cygrad
    >>> cygrad.rnn_relu_cell(cygrad.ones(1, 1), cygrad.ones(1, 1), cygrad.zeros(1, 1), cygrad.ones(1, 1))
    tensor([[1.]])
    """
    return _cell("rnn_relu", input, (hx,), w_ih, w_hh, b_ih, b_hh)[0]


composite = dict.fromkeys(("lstm_cell", "gru_cell", "rnn_tanh_cell", "rnn_relu_cell"), FUNCTION_ONLY)
functions = publish(globals())
