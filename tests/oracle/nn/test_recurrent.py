"""Recurrent layers, cells and packed sequences give PyTorch's results."""

import copy
import inspect
import warnings

import numpy as np
import pytest

import cygrad
from helpers import first_line

torch = pytest.importorskip("torch")
pytestmark = [
    pytest.mark.oracle,
    pytest.mark.filterwarnings("ignore:LSTM with projections is not supported with oneDNN"),
    pytest.mark.filterwarnings("ignore:dropout option adds dropout"),
]


def numbers(*shape):
    return np.random.default_rng(sum(shape)).standard_normal(shape)


LAYERS = [
    "RNN(3, 4)",
    "RNN(3, 4, 2, 'relu', False)",
    "RNN(3, 4, nonlinearity='relu', bidirectional=True)",
    "GRU(3, 4)",
    "GRU(3, 4, 2, bidirectional=True, batch_first=True)",
    "GRU(3, 4, bias=False, dropout=0.5)",
    "LSTM(3, 4)",
    "LSTM(3, 4, 2, bidirectional=True)",
    "LSTM(3, 4, 2, bias=False, batch_first=True)",
    "LSTM(3, 4, 2, bidirectional=True, proj_size=2)",
    "LSTM(3, 4, proj_size=2, bias=False)",
]
CELLS = [f"{kind}Cell(3, 4{bias})" for kind in ("RNN", "GRU", "LSTM") for bias in ("", ", False")]
CELLS.append("RNNCell(3, 4, nonlinearity='relu')")


def made(library, text):
    return eval(f"nn.{text}", {"nn": library.nn, "torch": library, "rnn": library.nn.utils.rnn})


def pair(text):
    """The layer in both libraries, with the same weights."""
    ours, theirs = made(cygrad, text).double(), made(torch, text).double()
    ours.load_state_dict({k: cygrad.from_numpy(v.numpy().copy()) for k, v in theirs.state_dict().items()})
    return ours, theirs


def flat(value):
    return [t for v in value for t in flat(v)] if isinstance(value, tuple) else [] if value is None else [value]


def run(library, layer, x, states):
    """Return results, gradients, and second-order gradients."""
    tensors = [library.from_numpy(a.copy()).requires_grad_() for a in (x, *states)]
    x, *states = tensors
    hx = None if not states else tuple(states) if len(states) == 2 else states[0]
    results = flat(layer(x, hx))
    weights = [library.from_numpy(numbers(*r.shape)) for r in results]
    loss = sum((r * w).sum() for r, w in zip(results, weights))
    inputs = [*tensors, *layer.parameters()]
    first = library.autograd.grad(loss, inputs, create_graph=True)
    second = library.autograd.grad(sum((g * g).sum() for g in first), inputs, materialize_grads=True)
    layer.zero_grad()
    flat(layer(x.detach(), hx))[0].sum().backward()
    return [t.detach().numpy() for t in (*results, *first, *second, *(p.grad for p in layer.parameters()))]


def close(found, expected):
    for a, b in zip(found, expected, strict=True):
        assert a.dtype == b.dtype and a.shape == b.shape
        np.testing.assert_allclose(a, b, 1e-8, 1e-8)


def state_shapes(layer, batch):
    """The shapes of the states, two for an LSTM."""
    directions = layer.num_layers * (2 if layer.bidirectional else 1)
    shapes = [(directions, *batch, layer.proj_size or layer.hidden_size)]
    return shapes + [(directions, *batch, layer.hidden_size)] * (layer.mode == "LSTM")


@pytest.mark.parametrize("text", LAYERS)
@pytest.mark.parametrize("shape", [(5, 2, 3), (5, 3), (1, 1, 3)])
@pytest.mark.parametrize("has_states", [False, True])
def test_layer(text, shape, has_states):
    ours, theirs = (layer.eval() for layer in pair(text))
    batch = () if len(shape) == 2 else (shape[0] if ours.batch_first else shape[1],)
    states = [numbers(*s) for s in state_shapes(ours, batch)] if has_states else []
    close(*(run(library, layer, numbers(*shape), states) for library, layer in ((cygrad, ours), (torch, theirs))))


@pytest.mark.parametrize("text", LAYERS)
@pytest.mark.parametrize("has_states", [False, True])
def test_packed(text, has_states):
    found = []
    layers = pair(text)
    for library, layer in zip((cygrad, torch), layers):
        layer.eval()
        parts = [library.from_numpy(numbers(n, 3)).requires_grad_() for n in (2, 4, 1)]
        packed = library.nn.utils.rnn.pack_sequence(parts, enforce_sorted=False)
        states = tuple(library.from_numpy(numbers(*s)) for s in state_shapes(layer, (3,)))
        hx = None if not has_states else states if len(states) == 2 else states[0]
        out, last = layer(packed, hx)
        padded, lengths = library.nn.utils.rnn.pad_packed_sequence(out)
        results = [padded, *flat(last)]
        sum((r * library.from_numpy(numbers(*r.shape))).sum() for r in results).backward()
        gradients = [t.grad for t in (*parts, *layer.parameters())]
        found.append([t.detach().numpy() for t in (*results, lengths, *out[1:], *gradients)])
    close(*found)


@pytest.mark.parametrize("text", CELLS)
@pytest.mark.parametrize("batch", [(), (2,)])
@pytest.mark.parametrize("has_states", [False, True])
def test_cell(text, batch, has_states):
    ours, theirs = pair(text)
    states = [numbers(*batch, 4), numbers(*batch, 4) + 1][: (1 + text.startswith("LSTM")) * has_states]
    close(*(run(library, cell, numbers(*batch, 3), states) for library, cell in ((cygrad, ours), (torch, theirs))))


@pytest.mark.parametrize("text", [*LAYERS, *CELLS])
def test_state_and_repr(text):
    ours, theirs = made(cygrad, text), made(torch, text)
    assert repr(ours) == repr(theirs)
    assert {k: tuple(v.shape) for k, v in ours.state_dict().items()} == {
        k: tuple(v.shape) for k, v in theirs.state_dict().items()
    }
    assert list(ours.state_dict()) == list(theirs.state_dict())
    assert {k for k in vars(ours) if k[0] != "_"} == {k for k in vars(theirs) if k[0] != "_"}
    assert getattr(ours, "_all_weights", None) == getattr(theirs, "_all_weights", None)
    assert getattr(ours, "_flat_weights_names", None) == getattr(theirs, "_flat_weights_names", None)
    for a, b in zip(ours.parameters(), theirs.parameters()):
        assert a.detach().abs().max() <= 0.5 and str(a.dtype) == str(b.dtype)


@pytest.mark.parametrize("kind", "RNNBase RNN LSTM GRU RNNCellBase RNNCell LSTMCell GRUCell".split())
def test_signatures(kind):
    ours, theirs = (getattr(library.nn.modules.rnn, kind) for library in (cygrad, torch))
    names = [name for name in vars(theirs) if not name.startswith("_") and callable(getattr(theirs, name))]
    for name in ("__init__", *names, *(["forward"] if kind != "RNNBase" else [])):
        if kind.endswith("Base") and name == "forward":
            continue
        found, expected = (inspect.signature(getattr(cls, name)) for cls in (ours, theirs))
        assert [(p.name, p.kind, p.default) for p in found.parameters.values()] == [
            (p.name, p.kind, p.default) for p in expected.parameters.values()
        ], name


X, H = "torch.zeros(5, 2, 3)", "torch.zeros(1, 2, 4)"
BAD = [
    "RNN(3, 4, 2, 'foo')",
    "RNN(3, 4, nonlinearity='foo')",
    "RNN(3, 4, proj_size=2)",
    "LSTM(3, 4, dropout=2)",
    "LSTM(3, 4, dropout=True)",
    "LSTM(3, 4, dropout='a')",
    "LSTM(3, 4, proj_size=4)",
    "LSTM(3, 4, proj_size=-1)",
    "LSTM(3, 4, num_layers=0)",
    "LSTM(3, 0)",
    "LSTM(3, 4.0)",
    "LSTM('a', 4)",
    "RNNBase('FOO', 3, 4)",
    "LSTM(3, 4)(torch.zeros(5, 2, 5))",
    "LSTM(3, 4)(torch.zeros(5))",
    "RNN(3, 4)(torch.zeros(5))",
    "GRU(3, 4)(torch.zeros(5, 2, 3, 1))",
    f"LSTM(3, 4)({X}, (torch.zeros(1, 2, 5), {H}))",
    f"LSTM(3, 4)({X}, ({H}, torch.zeros(1, 3, 4)))",
    f"LSTM(3, 4)({X}, (torch.zeros(2, 4), torch.zeros(2, 4)))",
    f"LSTM(3, 4)(torch.zeros(5, 3), ({H}, {H}))",
    f"GRU(3, 4)({X}, torch.zeros(2, 2, 4))",
    f"GRU(3, 4)({X}, torch.zeros(2, 4))",
    f"RNN(3, 4)(torch.zeros(5, 3), {H})",
    f"RNN(3, 4)({X}.double())",
    "GRU(3, 4)(torch.zeros(0, 2, 3))",
    "GRU(3, 4)(rnn.pack_sequence([torch.zeros(2, 3)]), torch.zeros(1, 4))",
    "RNNCell(3, 4, nonlinearity='foo')(torch.zeros(2, 3))",
    "GRUCell(3, 4)(torch.zeros(2, 5))",
    "GRUCell(3, 4)(torch.zeros(2, 2, 3))",
    "GRUCell(3, 4)(torch.zeros(2, 3), torch.zeros(3, 4))",
    "GRUCell(3, 4)(torch.zeros(2, 3), torch.zeros(1, 2, 4))",
    "LSTMCell(3, 4)(torch.zeros(2, 3), (torch.zeros(2, 4), torch.zeros(2, 5)))",
    "LSTMCell(3, 4)(torch.zeros(2, 3), (torch.zeros(2, 4, 1), torch.zeros(2, 4)))",
    "LSTMCell(3, 4)(torch.zeros(2, 3), torch.zeros(2, 4))",
    "utils.rnn.pad_sequence([])",
    "utils.rnn.pad_sequence(3)",
    "utils.rnn.pad_sequence([3])",
    "utils.rnn.pad_sequence([torch.ones(2)], padding_side='foo')",
    "utils.rnn.pack_sequence([torch.ones(1), torch.ones(2)])",
    "utils.rnn.pack_sequence([])",
    "utils.rnn.pack_padded_sequence(torch.ones(3, 2), [2, 0])",
    "utils.rnn.pack_padded_sequence(torch.ones(3, 2), [2])",
    "utils.rnn.pack_padded_sequence(torch.ones(3, 2), torch.tensor([[3, 1]]))",
    "utils.rnn.pack_padded_sequence(torch.ones(3), [3])",
    "utils.rnn.pack_padded_sequence(torch.ones(0, 2), [0, 0])",
    "utils.rnn.pad_packed_sequence(rnn.pack_sequence([torch.ones(3)]), total_length=2)",
    "utils.rnn.PackedSequence(torch.ones(3))",
]


@pytest.mark.parametrize("text", BAD)
def test_errors(text):
    told = []
    for library in (cygrad, torch):
        with pytest.raises(Exception) as found:
            made(library, text)
        told.append((found.type, first_line(found.value)))
    assert told[0] == told[1]


SEQUENCES = "[torch.arange(1.0, 4.0), torch.arange(4.0, 6.0), torch.ones(1)]"
CALLS = [
    f"pad_sequence({SEQUENCES})",
    f"pad_sequence({SEQUENCES}, True, -1.0)",
    f"pad_sequence({SEQUENCES}, True, -1.0, 'left')",
    "pad_sequence(torch.ones(2, 3))",
    "pad_sequence([torch.ones(2, 2), torch.ones(3, 2)])",
    "pad_sequence([torch.tensor([1, 2]), torch.tensor([1])], padding_value=2.5)",
    "pad_sequence([torch.ones(2), torch.ones(2).double()])",
    f"pack_sequence({SEQUENCES})",
    f"pack_sequence({SEQUENCES}[::-1], False)",
    "pack_sequence([torch.ones(1, 2), torch.ones(3, 2)], False)",
    "pack_padded_sequence(torch.arange(6.0).reshape(3, 2), torch.tensor([3.0, 1.0]))",
    "pack_padded_sequence(torch.arange(6.0).reshape(2, 3), [3, 1], True)",
    "pack_padded_sequence(torch.arange(6.0).reshape(3, 2), [2, 1])",
    "pack_padded_sequence(torch.arange(12.0).reshape(3, 2, 2), [1, 3], enforce_sorted=False)",
    f"pad_packed_sequence(pack_sequence({SEQUENCES}))",
    f"pad_packed_sequence(pack_sequence({SEQUENCES}[::-1], False), True, -1.0, 5)",
    f"unpack_sequence(pack_sequence({SEQUENCES}[::-1], False))",
    "unpad_sequence(torch.arange(6.0).reshape(3, 2), torch.tensor([3, 1]))",
    "unpad_sequence(torch.arange(6.0).reshape(3, 2), torch.tensor([3, 1, 2]), True)",
    "PackedSequence(torch.ones(3), torch.tensor([2, 1]), torch.tensor([1, 0]))",
    "PackedSequence((torch.ones(3), torch.tensor([2, 1])))",
    "PackedSequence(torch.ones(3), torch.tensor([2, 1])).int()",
    "PackedSequence(torch.ones(3), torch.tensor([2, 1])).half().data",
    "PackedSequence(torch.ones(3), torch.tensor([2, 1])).is_cuda",
    "invert_permutation(torch.tensor([2, 0, 1]))",
    "invert_permutation(None)",
]


@pytest.mark.parametrize("text", CALLS)
def test_sequences(text):
    texts = [
        repr(eval(f"rnn.{text}".replace("(pack_", "(rnn.pack_"), {"rnn": library.nn.utils.rnn, "torch": library}))
        for library in (cygrad, torch)
    ]
    assert texts[0] == texts[1]


def test_sequence_functions_take_the_same():
    assert set(cygrad.nn.utils.rnn.__all__) == set(torch.nn.utils.rnn.__all__)
    for name in cygrad.nn.utils.rnn.__all__:
        found, expected = (list(inspect.signature(getattr(n.nn.utils.rnn, name)).parameters) for n in (cygrad, torch))
        assert found == expected


def test_warning_about_dropout():
    told = []
    for library in (cygrad, torch):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            library.nn.GRU(2, 3, dropout=0.5)
        told.append([(w.category, str(w.message)) for w in caught])
    assert told[0] == told[1] and told[0]


@pytest.mark.filterwarnings("ignore:Complex modules are a new feature")
def test_complex_numbers():
    ours, theirs = (made(n, "GRU(3, 4)").to(n.complex128) for n in (cygrad, torch))
    ours.load_state_dict({k: cygrad.from_numpy(v.numpy().copy()) for k, v in theirs.state_dict().items()})
    x = numbers(2, 1, 3) + 1j * numbers(2, 3, 1).reshape(2, 1, 3)
    found = [layer(n.from_numpy(x))[0].detach().numpy() for n, layer in ((cygrad, ours), (torch, theirs))]
    np.testing.assert_allclose(*found, 1e-9)


def test_copies_have_their_own_weights():
    layer = made(cygrad, "LSTM(3, 4)")
    again = copy.deepcopy(layer)
    assert again._flat_weights[0] is again.weight_ih_l0 is not layer.weight_ih_l0
