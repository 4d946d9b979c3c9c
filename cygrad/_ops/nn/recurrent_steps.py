"""The formulas of one step of an LSTM, GRU or plain RNN, composed of other ops, for layers and cells.

They map the products with the input and with the state (including biases) and the states to the new states.
"""

from collections.abc import Callable

from cygrad._core.errors import messages
from cygrad._core.graph.tensor import Tensor
from cygrad._ops.base.arithmetic import add, mul, sub
from cygrad._ops.base.pointwise import relu, sigmoid, tanh
from cygrad._ops.base.slicing import chunk


def lstm_step(of_input, of_state, hidden, cell):
    i, f, g, o = chunk(add(of_input, of_state), 4, -1)
    cell = add(mul(sigmoid(f), cell), mul(sigmoid(i), tanh(g)))
    return mul(sigmoid(o), tanh(cell)), cell


def gru_step(of_input, of_state, hidden):
    (reset, update, new), (reset_h, update_h, new_h) = chunk(of_input, 3, -1), chunk(of_state, 3, -1)
    new = tanh(add(new, mul(sigmoid(add(reset, reset_h)), new_h)))
    return (add(new, mul(sigmoid(add(update, update_h)), sub(hidden, new))),)


def tanh_step(of_input, of_state, hidden):
    return (tanh(add(of_input, of_state)),)


def relu_step(of_input, of_state, hidden):
    return (relu(add(of_input, of_state)),)


STEPS: dict[str, Callable] = {"lstm": lstm_step, "gru": gru_step, "rnn_tanh": tanh_step, "rnn_relu": relu_step}
GATES = {"lstm": 4, "gru": 3, "rnn_tanh": 1, "rnn_relu": 1}


def require_each(tensors, position):
    """Require that all elements of a list are tensors."""
    for i, value in enumerate(tensors):
        if not isinstance(value, Tensor):
            raise TypeError(
                f"expected Tensor as element {i} in argument {position}, but got {messages.type_name(value)}"
            )
