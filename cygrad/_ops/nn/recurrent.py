"""Recurrent layers: LSTM, GRU and plain RNN over all time steps, layers and directions.

One recorded op computes all steps of one layer in one direction. Its inputs are
(x, h0, w_ih, w_hh, b_ih, b_hh, c0, w_hr), where the biases, c0 and w_hr may be None.
"""

import math
from typing import Any

from cygrad._core.engine.backward import grad
from cygrad._core.errors import messages
from cygrad._core.graph.dual import keep
from cygrad._core.graph.internals import array_of, tensor_of
from cygrad._core.graph.kernel_call import as_float32
from cygrad._core.graph.opdef import FUNCTION_ONLY, PRIVATE, declare, facts, publish
from cygrad._core.graph.record import record_outputs
from cygrad._core.graph.tensor import Tensor
from cygrad._core.runtime.thread_state import get_modes
from cygrad._kernels.cpu.base.arrays import may_overlap
from cygrad._kernels.cpu.base.copying import contiguous, copy, in_dtype
from cygrad._kernels.cpu.nn import recurrent as kernels
from cygrad._kernels.tape.tape import is_open
from cygrad._ops.base.arguments import require
from cygrad._ops.base.batching.rules import regroup, rule
from cygrad._ops.base.products import linear
from cygrad._ops.base.slicing import cat, narrow, stack, unbind
from cygrad._ops.base.views import reshape, transpose, view
from cygrad._ops.common.saved_lists import keep_tensors, kept_tensors
from cygrad._ops.nn.recurrent_steps import GATES, STEPS, require_each
from cygrad._ops.random.dropout import dropout

# -- one layer in one direction --


def layer_rule(n, grads):
    tensors = kept_tensors(n, 0)
    wanted = [n.needs(i) for i in range(len(tensors))]
    kind, sizes, is_reversed = n.args
    if not get_modes():
        return _recorded_gradients(tensors, grads, wanted, n.args)
    d_out, *d_last = (None if g is None else as_float32(array_of(g)) for g in grads)
    d_out = None if d_out is None else _rows(d_out)
    gates, *kept = n.saved(1)
    found = list(kernels.BACKWARD[kind](d_out, d_last, _arrays(tensors), gates, kept, sizes, is_reversed, wanted))
    if wanted[0]:
        found[0] = found[0].reshape(tensors[0].shape)
    return tuple(tensor_of(array) if want else None for array, want in zip(found, wanted))


def _recorded_gradients(tensors, grads, wanted, args):
    """Compute differentiable gradients: those of the same layer composed of ops, step by step."""
    own = [t if t is None else view(t, t.shape) for t in tensors]  # views: one tensor may be several inputs
    for t, want in zip(own, wanted):
        if want and t is not None and not t.requires_grad:  # the input has a tangent instead
            t.requires_grad_()
    results = [(out, g) for out, g in zip(by_steps(*args, *own), grads) if g is not None]
    inputs = [t for t, want in zip(own, wanted) if want]
    outs, given = zip(*results)
    found = iter(grad(outs, inputs, given, create_graph=True, allow_unused=True))
    return tuple(next(found) if want else None for want in wanted)


LAYER = declare(
    "recurrent_layer",
    layer_rule,
    engine="all steps of a layer: PyTorch shows the products and gates of each",
    flags=PRIVATE,
    inputs="_ _ _",
    outputs="output h_n c_n",
    attributes="mode batch_sizes reverse",
    devices="recurrent",
    float8="add_stub",
)


def recurrent_layer(kind, sizes, is_reversed, x, h0, w_ih, w_hh, b_ih=None, b_hh=None, c0=None, w_hr=None):
    """Return (outputs, last h[, last c]) of one layer in one direction; `x` holds sizes[t] rows for each step t."""
    tensors = (x, h0, w_ih, w_hh, b_ih, b_hh, c0, w_hr)
    _check_layer(kind, sizes, *tensors)
    if x.dtype.is_complex:
        return by_steps(kind, sizes, is_reversed, *tensors)
    out, last, kept = kernels.FORWARD[kind](*_arrays(tensors), sizes, is_reversed)
    dtype = array_of(x).dtype
    shaped = out.reshape(*array_of(x).shape[:-1], out.shape[1])
    results = tuple([in_dtype(array, dtype) for array in (shaped, *last)])
    results = record_outputs(LAYER, results, tensors, (kind, sizes, is_reversed), len(results))
    keep_tensors(results[0], 0, tensors)
    keep(results[0], 1, [copy(out) if array is out else array for array in kept])  # the result may be modified in place
    return results


@rule("recurrent_layer")
def _recurrent(call):
    x, h0, *weights = call.inputs
    kind, sizes, is_reversed = call.args
    c0 = weights.pop(4)
    if any(call.has(w) for w in weights) or x.ndim != 3 or len(set(sizes)) > 1:
        return _each(call)
    steps, n = x.shape[:2]
    rows = call.full(x).transpose(0, 1).reshape(steps, call.size * n, x.shape[2])
    h0, c0 = (None if s is None else call.full(s).reshape(call.size * n, -1) for s in (h0, c0))
    inputs = [rows, h0, *weights[:4], c0, *weights[4:]]
    out, *last = recurrent_layer(kind, (call.size * n,) * steps, is_reversed, *inputs)
    out = regroup(out, (steps, call.size, n, -1)).transpose(0, 1)
    return [out, *[regroup(s, (call.size, n, -1)) for s in last]]


def _each(call):
    """Run the layer once per sample: for samples with weights of their own, or sequences of different lengths."""
    found = []
    for i in range(call.size):
        inputs = [call.samples(t)[i] if call.has(t) else t for t in call.inputs]
        found.append(recurrent_layer(*call.args, *inputs))
    return [stack(parts) for parts in zip(*found, strict=True)]


def _arrays(tensors):
    """Return the arrays in at least single precision; the first is reshaped to rows."""
    arrays = [None if t is None else as_float32(array_of(t)) for t in tensors]
    arrays[0] = _rows(arrays[0])
    return arrays


def _rows(array):
    shape = math.prod(array.shape[:-1]), array.shape[-1]
    rows = array.reshape(shape)
    if is_open() and not may_overlap(rows, array):
        return contiguous(array).reshape(shape)  # a copy that the tape knows
    return rows


def by_steps(kind, sizes, is_reversed, x, h0, w_ih, w_hh, b_ih, b_hh, c0, w_hr):
    """Compute the same as `recurrent_layer`, composed of recorded ops."""
    of_input = linear(reshape(x, (sum(sizes), x.shape[-1])), w_ih, b_ih)
    first = (h0,) if c0 is None else (h0, c0)
    spans = kernels.spans(sizes, is_reversed)
    states = tuple(narrow(s, 0, 0, spans[0][1] - spans[0][0]) for s in first)
    ended, outputs = [], []
    for start, stop in spans:
        n, running = stop - start, len(states[0])
        if n < running:
            ended.append([narrow(s, 0, n, running - n) for s in states])
            states = tuple(narrow(s, 0, 0, n) for s in states)
        elif n > running:
            states = tuple(cat([s, narrow(f, 0, running, n - running)]) for s, f in zip(states, first))
        hidden, *cell = STEPS[kind](narrow(of_input, 0, start, n), linear(states[0], w_hh, b_hh), *states)
        states = (hidden if w_hr is None else linear(hidden, w_hr), *cell)
        outputs.append(states[0])
    last = [cat(parts) for parts in zip(states, *reversed(ended))]
    out = cat(outputs[::-1] if is_reversed else outputs)
    return reshape(out, (*x.shape[:-1], out.shape[1])), *last


NAMES = "input", "hx", "weight_ih", "weight_hh", "bias_ih", "bias_hh", "cx", "weight_hr"


def _check_layer(kind, sizes, x, h0, w_ih, w_hh, b_ih, b_hh, c0, w_hr):
    *before, size = array_of(x).shape
    _check_sizes(kind, sizes, math.prod(before))
    width = len(w_hh) // GATES[kind]
    gates = GATES[kind] * width
    out = width if w_hr is None else len(w_hr)
    expected = (
        (*before, size),
        (sizes[0], out),
        (gates, size),
        (gates, out),
        (gates,),
        (gates,),
        (sizes[0], width),
    )
    dtype = x.dtype
    for i, (tensor, shape) in enumerate(zip((x, h0, w_ih, w_hh, b_ih, b_hh, c0, w_hr), (*expected, (out, width)))):
        if tensor is None:
            continue
        if array_of(tensor).shape != shape:
            raise RuntimeError(f"{kind}: {NAMES[i]} has the shape {list(tensor.shape)}, but {list(shape)} was expected")
        if tensor.dtype is not dtype:
            raise RuntimeError(f"{kind}: input has the type {dtype}, but {NAMES[i]} {tensor.dtype}")
    if not (dtype.is_floating_point or dtype.is_complex):
        raise messages.not_implemented_for("addmm_impl_cpu_", dtype)


def _check_sizes(kind, sizes, rows):
    is_sorted = not sizes or sizes.count(sizes[0]) == len(sizes) or sorted(sizes, reverse=True) == list(sizes)
    if not sizes or sizes[-1] < 0 or sum(sizes) != rows or not is_sorted:
        raise RuntimeError(f"{kind}: {rows} rows are not steps of the sizes {list(sizes)}, each at most the one before")


# -- layers and directions --


def _layers(kind, x, sizes, states, params, has_biases, num_layers, dropout_p, train, bidirectional):
    """Return (outputs, last states) of all layers; `x` is (T, N, I), or the rows of packed sequences."""
    directions = 2 if bidirectional else 1
    is_projected = len(states) == 2 and states[0].size(2) != states[1].size(2)
    each = (4 if has_biases else 2) + is_projected
    if len(params) != num_layers * directions * each:
        raise RuntimeError("got an incorrect number of RNN parameters")
    if any(len(state) < num_layers * directions for state in states):
        raise RuntimeError("Expected more hidden states in stacked_rnn")
    states = [unbind(state) for state in states]
    last = []
    for layer in range(num_layers):
        outs = []
        for index in range(layer * directions, (layer + 1) * directions):
            own = list(params[index * each : (index + 1) * each])
            w_hr = own.pop() if is_projected else None
            w_ih, w_hh, b_ih, b_hh = own if has_biases else (*own, None, None)
            h0, c0 = states[0][index], states[1][index] if len(states) == 2 else None
            is_reversed = index % directions == 1
            out, *ends = recurrent_layer(kind, sizes, is_reversed, x, h0, w_ih, w_hh, b_ih, b_hh, c0, w_hr)
            outs.append(out)
            last.append(ends)
        x = outs[0] if directions == 1 else cat(outs, -1)
        if dropout_p and layer < num_layers - 1:
            x = dropout(x, dropout_p, train)
    return x, *map(stack, zip(*last))


def _padded(kind, input, states, *how, batch_first):
    """Run the layers on `input`, (T, N, I) or with `batch_first` (N, T, I)."""
    x = transpose(input, 0, 1) if batch_first else input
    if not len(x):
        raise RuntimeError("Expected sequence length to be larger than 0 in RNN")
    out, *last = _layers(kind, x, (x.size(1),) * len(x), states, *how)
    return transpose(out, 0, 1) if batch_first else out, *last


KINDS: dict[str, Any] = {
    **dict.fromkeys(("has_biases", "train", "bidirectional", "batch_first"), bool),
    "params": (tuple, list),
    "num_layers": int,
    "dropout": (int, float),
}
SETTINGS = ("params", "has_biases", "num_layers", "dropout", "train", "bidirectional")
FORMS = {False: ("input", "hx", *SETTINGS, "batch_first"), True: ("data", "batch_sizes", "hx", *SETTINGS)}


TYPES = {form: tuple(KINDS.get(name, object) for name in names) for form, names in FORMS.items()}


def _ordered(names, given, named):
    """Return the arguments in the order of their names; None if any are missing or unknown."""
    if not named and len(given) == len(names):
        return given
    arguments = dict(zip(names, given)) | named
    is_complete = len(given) + len(named) == len(names) and arguments.keys() == set(names)
    return tuple(arguments[name] for name in names) if is_complete else None


def _call(kind, given, named):
    """Run either form of cygrad's recurrent functions: for padded or for packed sequences."""
    hx_is_list = kind == "lstm"
    is_packed = "batch_sizes" in named or (len(given) > 3 and isinstance(given[3], (list, tuple)))
    names, types = FORMS[is_packed], TYPES[is_packed]
    values = _ordered(names, given, named)
    if (
        values is None
        or not all(map(isinstance, values, types))
        or isinstance(values[names.index("num_layers")], bool)
        or not isinstance(values[names.index("hx")], (tuple, list) if hx_is_list else Tensor)
    ):
        raise messages.no_such_call(kind, given, named, [_signature(form, hx_is_list) for form in FORMS.values()])
    if is_packed:
        x, batch_sizes, hx, *how = values
    else:
        x, hx, *how, batch_first = values
    states = tuple(hx) if hx_is_list else (hx,)
    for name, tensors in (("hx", states), ("params", how[0])):
        require_each(tensors, names.index(name))
    if hx_is_list and len(states) != 2:
        raise RuntimeError("lstm expects two hidden states")
    x = require(x, kind, names[0])
    if is_packed:
        sizes = tuple(batch_sizes.tolist())
        return _layers(kind, x if sum(sizes) >= len(x) else narrow(x, 0, 0, sum(sizes)), sizes, states, *how)
    if how[0] and how[0][0].dtype is not x.dtype:
        raise RuntimeError(
            f"mat1 and mat2 must have the same dtype, but got {x.dtype.type_name} and {how[0][0].dtype.type_name}"
        )
    if x.ndim != 3:
        raise IndexError(f"Dimension out of range (expected to be in range of [-{x.ndim}, {x.ndim - 1}], but got 2)")
    return _padded(kind, x, states, *how, batch_first=batch_first)


def _signature(names, hx_is_list):
    types = {
        "hx": "tuple of Tensors" if hx_is_list else "Tensor",
        "params": "tuple of Tensors",
        "num_layers": "int",
        "dropout": "float",
        **dict.fromkeys(("input", "data", "batch_sizes"), "Tensor"),
    }
    return ", ".join(f"{types.get(name, 'bool')} {name}" for name in names)


# -- public functions --


@facts(devices="recurrent", autocast="lower", autocast_gpu="lower", overloads="")
def lstm(*args, **kwargs):
    """(out, h_n, c_n): `nn.LSTM` as a function, `lstm(input, (h0, c0), params, has_biases, num_layers, dropout, train,
    bidirectional, batch_first)`, or with `data, batch_sizes` of a packed sequence for `input`, without batch_first.

    `params` holds, for each layer and direction, w_ih (4 H, I), w_hh (4 H, H or P), b_ih and b_hh (4 H,) if
    `has_biases`, and w_hr (P, H) if there are projections. i, f, o = sigmoid, g = tanh of
    w_ih x + b_ih + w_hh h + b_hh; c = f c + i g, h = o tanh(c). Saves gates and cells of all steps; a second derivative
    recomputes the steps.

    >>> import cygrad
    >>> zeros = cygrad.zeros(1, 1, 1)
    >>> weights = [cygrad.ones(4, 1), cygrad.ones(4, 1)]
    >>> cygrad.lstm(cygrad.ones(2, 1, 1), (zeros, zeros), weights, False, 1, 0.0, False, False, False)[0].flatten()
    tensor([0.3696, 0.6505])
    """
    return _call("lstm", args, kwargs)


@facts(devices="recurrent", autocast="state", autocast_gpu="lower", overloads="")
def gru(*args, **kwargs):
    """(out, h_n): `nn.GRU` as a function, `gru(input, h0, params, has_biases, num_layers, dropout, train,
    bidirectional, batch_first)`, or with `data, batch_sizes` of a packed sequence for `input`, without batch_first.

    `params` holds, for each layer and direction, w_ih (3 H, I), w_hh (3 H, H), and b_ih, b_hh (3 H,) if `has_biases`.
    r, z = sigmoid of w_ih x + b_ih + w_hh h + b_hh; n = tanh(w_in x + b_in + r (w_hn h + b_hn)); h = (1 - z) n + z h.

    >>> import cygrad
    >>> weights = [cygrad.ones(3, 1), cygrad.ones(3, 1)]
    >>> how = weights, False, 1, 0.0, False, False, False
    >>> cygrad.gru(cygrad.ones(2, 1, 1), cygrad.zeros(1, 1, 1), *how)[0].flatten()
    tensor([0.2048, 0.3468])
    """
    return _call("gru", args, kwargs)


@facts(devices="recurrent", autocast="lower", autocast_gpu="lower", overloads="")
def rnn_tanh(*args, **kwargs):
    """(out, h_n): `nn.RNN` as a function, with the arguments of `gru`; h = tanh(w_ih x + b_ih + w_hh h + b_hh).

    >>> import cygrad
    >>> eye = [cygrad.ones(1, 1), cygrad.ones(1, 1)]
    >>> cygrad.rnn_tanh(cygrad.ones(2, 1, 1), cygrad.zeros(1, 1, 1), eye, False, 1, 0.0, False, False, False)[1]
    tensor([[[0.9427]]])
    """
    return _call("rnn_tanh", args, kwargs)


@facts(devices="recurrent", autocast="lower", autocast_gpu="lower", overloads="")
def rnn_relu(*args, **kwargs):
    """(out, h_n): `nn.RNN` as a function, with the arguments of `gru`; h = relu(w_ih x + b_ih + w_hh h + b_hh).

    Gradient: like that of `relu`, 0 at 0.

    >>> import cygrad
    >>> eye = [cygrad.ones(1, 1), cygrad.ones(1, 1)]
    >>> cygrad.rnn_relu(cygrad.ones(2, 1, 1), cygrad.zeros(1, 1, 1), eye, False, 1, 0.0, False, False, False)[1]
    tensor([[[2.]]])
    """
    return _call("rnn_relu", args, kwargs)


composite = dict.fromkeys(("lstm", "gru", "rnn_tanh", "rnn_relu"), FUNCTION_ONLY)
functions = publish(globals())
