"""ONNX forms of recurrent layers and cells."""

from typing import Any

from cygrad.export._onnx_forms.graph import Graph, Value
from cygrad.export._onnx_forms.table import Unsupported, form

_GATES = {"LSTM": (0, 3, 1, 2), "GRU": (1, 0, 2), "RNN": (0,)}  # ONNX's order of the gates


def _in_order(g: Graph, value: Value, kind: str) -> Value:
    """Return weights or biases with the gates in ONNX's order, and a dimension for the direction in front."""
    order = _GATES[kind]
    if len(order) > 1:
        size = value.length(0) // len(order)
        pieces = g.op("Split", value, [size] * len(order), n=len(order), axis=0)
        value = g.op("Concat", *[pieces[i] for i in order], axis=0)
    return g.op("Unsqueeze", value, [0])


def _joined(g: Graph, values: list[Value], axis: int) -> Value:
    return values[0] if len(values) == 1 else g.op("Concat", *values, axis=axis)


def _layers(kind: str, names: dict[str, Any]) -> None:
    for name, attributes in names.items():
        _layer(kind, name, attributes)


def _layer(kind: str, name: str, attributes: dict[str, Any]) -> None:
    @form(name)
    def write(g: Graph, input: Value, hx: Any, params: Any, *options: Any) -> Any:
        if isinstance(options[0], (list, tuple)):
            raise Unsupported("packed sequences")
        has_biases, layers, dropout, training, bidirectional, batch_first = options
        if dropout and training:
            raise Unsupported("random numbers (dropout in training mode); call model.eval()")
        states = list(hx) if isinstance(hx, (tuple, list)) else [hx]
        directions = 2 if bidirectional else 1
        each = len(params) // (layers * directions)
        if each != (4 if has_biases else 2):
            raise Unsupported("`proj_size`")
        x = g.op("Transpose", input, perm=[1, 0, 2]) if batch_first else input
        ends: list[list[Value]] = [[] for _ in states]
        for layer in range(layers):
            at = layer * directions
            weights = [params[(at + d) * each : (at + d + 1) * each] for d in range(directions)]
            x, final = _one_layer(g, kind, x, weights, [_rows(g, s, at, directions) for s in states], attributes)
            for collected, end in zip(ends, final):
                collected.append(end)
        out = g.op("Transpose", x, perm=[1, 0, 2]) if batch_first else x
        return (out, *[_joined(g, collected, 0) for collected in ends])


def _rows(g: Graph, state: Value, start: int, count: int) -> Value:
    return state if state.shape[0] == count else g.slice(state, 0, start, start + count)


def _one_layer(g: Graph, kind: str, x: Value, weights: Any, states: list[Value], attributes: dict[str, Any]) -> Any:
    directions = len(weights)
    hidden = weights[0][1].length(1)
    w, r = (_joined(g, [_in_order(g, each[i], kind) for each in weights], 0) for i in (0, 1))
    b = None
    if len(weights[0]) == 4:
        b = _joined(g, [_joined(g, [_in_order(g, each[i], kind) for i in (2, 3)], 1) for each in weights], 0)
    options = dict(attributes)
    if "activations" in options:
        options["activations"] = options["activations"] * directions
    found = g.op(
        kind, x, w, r, b, None, *states, n=1 + len(states), hidden_size=hidden,
        direction="bidirectional" if directions == 2 else "forward", **options)  # fmt: skip
    rows = g.op("Transpose", found[0], perm=[0, 2, 1, 3])  # (T, directions, B, H)
    return g.op("Reshape", rows, [0, 0, directions * hidden]), found[1:]


_layers("LSTM", {"lstm": {}})
_layers("GRU", {"gru": {"linear_before_reset": 1}})
_layers("RNN", {"rnn_tanh": {"activations": ["Tanh"]}, "rnn_relu": {"activations": ["Relu"]}})


# -- cells -------------------------------------------------------------------------------------------------


def _affine(g: Graph, x: Value, weight: Value, bias: Any) -> Value:
    found = g.op("MatMul", x, g.swapped(weight, 0, 1))
    return found if bias is None else g.op("Add", found, bias)


def _split(g: Graph, x: Value, weight: Value, count: int) -> Any:
    size = weight.length(0) // count
    return g.op("Split", x, [size] * count, n=count, axis=-1)


@form("lstm_cell")
def lstm_cell(g: Graph, input: Value, hx: Any, w_ih: Value, w_hh: Value, b_ih: Any = None, b_hh: Any = None) -> Any:
    gates = g.op("Add", _affine(g, input, w_ih, b_ih), _affine(g, hx[0], w_hh, b_hh))
    i, f, c, o = _split(g, gates, w_ih, 4)
    i, f, o = (g.op("Sigmoid", each) for each in (i, f, o))
    cell = g.op("Add", g.op("Mul", f, hx[1]), g.op("Mul", i, g.op("Tanh", c)))
    return g.op("Mul", o, g.op("Tanh", cell)), cell


@form("gru_cell")
def gru_cell(g: Graph, input: Value, hx: Value, w_ih: Value, w_hh: Value, b_ih: Any = None, b_hh: Any = None) -> Value:
    a, b = (_split(g, _affine(g, *each), w_ih, 3) for each in ((input, w_ih, b_ih), (hx, w_hh, b_hh)))
    reset, update = (g.op("Sigmoid", g.op("Add", a[i], b[i])) for i in (0, 1))
    new = g.op("Tanh", g.op("Add", a[2], g.op("Mul", reset, b[2])))
    return g.op("Add", new, g.op("Mul", update, g.op("Sub", hx, new)))


def _cell(name: str, kind: str) -> None:
    @form(name)
    def write(g: Graph, input: Value, hx: Value, w_ih: Value, w_hh: Value, b_ih: Any = None, b_hh: Any = None) -> Value:
        return g.op(kind, g.op("Add", _affine(g, input, w_ih, b_ih), _affine(g, hx, w_hh, b_hh)))


_cell("rnn_tanh_cell", "Tanh")
_cell("rnn_relu_cell", "Relu")
