"""Recurrent layers: states, packed sequences, checks in backward, and initial parameters."""

import copy
import math
import pickle

import numpy as np
import pytest
from ops.samples.nn.recurrent import one_direction

import cygrad as torch
from cygrad import nn
from cygrad.nn.utils import rnn as sequences
from helpers import fails

KINDS = ["LSTM", "GRU", "RNN"]


def made(kind, *args, **kwargs):
    return getattr(nn, kind)(*args, dtype=torch.float64, **kwargs)


def hidden_of(states):
    return states[0] if isinstance(states, tuple) else states


@pytest.mark.parametrize("kind", KINDS)
def test_layer_is_its_formula(kind):
    layer = made(kind, 3, 4)
    x = torch.randn(5, 2, 3, dtype=torch.float64)
    zeros = np.zeros((2, 4))
    weights = [p.detach().numpy() for p in layer.parameters()]
    mode = "rnn_tanh" if kind == "RNN" else kind.lower()
    cells = (zeros,) if kind == "LSTM" else ()
    expected = one_direction(mode, (2,) * 5, False, x.numpy().reshape(10, 3), zeros, *weights, *cells)
    out, states = layer(x)
    found = (out.flatten(0, 1), *(s[0] for s in (states if kind == "LSTM" else (states,))))
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a.detach().numpy(), b, 1e-9, 1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_one_step_of_a_layer_is_the_cell(kind):
    layer, cell = made(kind, 3, 4), made(f"{kind}Cell", 3, 4)
    cell.load_state_dict({name.removesuffix("_l0"): value for name, value in layer.state_dict().items()})
    x = torch.randn(2, 3, dtype=torch.float64)
    _, states = layer(x[None])
    assert torch.allclose(hidden_of(states)[0], hidden_of(cell(x)))
    assert torch.allclose(hidden_of(cell(x[0])), hidden_of(cell(x))[0])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("bidirectional", [False, True])
def test_packed_sequences_are_each_by_itself(kind, bidirectional):
    layer = made(kind, 3, 4, 2, bidirectional=bidirectional)
    parts = [torch.randn(n, 3, dtype=torch.float64) for n in (2, 4, 1, 4)]
    out, states = layer(sequences.pack_sequence(parts, enforce_sorted=False))
    for i, (part, found) in enumerate(zip(parts, sequences.unpack_sequence(out), strict=True)):
        expected, last = layer(part)
        assert torch.allclose(found, expected)
        assert torch.allclose(hidden_of(states)[:, i], hidden_of(last))


@pytest.mark.parametrize("kind", KINDS)
def test_gradients_with_and_without_a_graph_of_their_own(kind):
    layer = made(kind, 2, 3, 2, bidirectional=True)
    x = torch.randn(4, 2, 2, dtype=torch.float64, requires_grad=True)
    out, states = layer(x)
    loss = out.sin().sum() + hidden_of(states).cos().sum()
    inputs = [x, *layer.parameters()]
    plain = torch.autograd.grad(loss, inputs, retain_graph=True)
    recorded = torch.autograd.grad(loss, inputs, create_graph=True)
    assert all(torch.allclose(a, b) for a, b in zip(plain, recorded, strict=True))
    assert all(a.grad_fn is None and b.grad_fn is not None for a, b in zip(plain, recorded))


def test_one_tensor_in_two_places():
    w = torch.randn(3, 3, dtype=torch.float64, requires_grad=True)
    x, h = torch.randn(2, 1, 3, dtype=torch.float64), torch.zeros(1, 1, 3, dtype=torch.float64)
    y = torch.rnn_tanh(x, h, [w, w], False, 1, 0.0, False, False, False)[0].sum()
    plain = torch.autograd.grad(y, w, retain_graph=True)[0]
    assert torch.allclose(plain, torch.autograd.grad(y, w, create_graph=True)[0])


@pytest.mark.parametrize("changed", ["weight_hh_l0", "bias_hh_l0"])
def test_backward_notices_what_was_changed(changed):
    layer = nn.LSTM(2, 3)
    y = layer(torch.ones(4, 1, 2))[0].sum()
    with torch.no_grad():
        getattr(layer, changed).add_(1)
    with fails(RuntimeError, "one of the variables needed for gradient computation has been modified by an inplace..."):
        y.backward()


def test_a_freed_graph():
    layer = nn.GRU(2, 3)
    y = layer(torch.ones(4, 2))[0].sum()
    y.backward()
    with fails(RuntimeError, "Trying to backward through the graph a second time..."):
        y.backward()


@pytest.mark.parametrize("kind", KINDS)
def test_results_may_be_overwritten(kind):
    layer, x = made(kind, 2, 3), torch.ones(4, 1, 2, dtype=torch.float64)
    out, states = layer(x)
    expected = torch.autograd.grad(2 * out.sum(), list(layer.parameters()), retain_graph=True)
    out.mul_(2)
    hidden_of(states).detach_()
    found = torch.autograd.grad(out.sum(), list(layer.parameters()))
    assert all(torch.equal(a, b) for a, b in zip(found, expected, strict=True))


def test_inputs_that_are_changed_later():
    layer, x, h = nn.RNN(2, 3), torch.ones(4, 1, 2), torch.ones(1, 1, 3)
    y = layer(x, h)[1].sum()
    with torch.no_grad():
        h.mul_(2)
    with fails(RuntimeError, "one of the variables needed for gradient computation has been modified by an inplace..."):
        y.backward()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision(kind, dtype):
    layer = getattr(nn, kind)(3, 4).to(dtype)
    out, states = layer(torch.ones(2, 1, 3, dtype=dtype))
    out.sum().backward()
    assert {out.dtype, hidden_of(states).dtype, *(p.grad.dtype for p in layer.parameters())} == {dtype}


def test_dropout_between_layers_in_training_alone():
    layer = nn.GRU(2, 50, 2, dropout=0.5)
    x = torch.ones(3, 1, 2)
    assert not torch.equal(layer(x)[0], layer(x)[0])
    layer.eval()
    assert torch.equal(layer(x)[0], layer(x)[0])
    one = nn.GRU(2, 50, 2, dropout=1.0)
    below = one.bias_ih_l1 + 0
    assert one(x)[0].isfinite().all() and below.shape == (150,)


def test_parameters():
    layer = nn.LSTM(3, 16, 2, bidirectional=True, proj_size=4)
    assert [p.shape[0] for p in layer.all_weights[1]] == [64, 64, 64, 64, 4]
    assert layer._flat_weights_names[5:7] == ["weight_ih_l0_reverse", "weight_hh_l0_reverse"]
    assert all(float(p.detach().abs().max()) <= 1 / math.sqrt(16) for p in layer.parameters())
    assert layer.flatten_parameters() is None


@pytest.mark.parametrize("again", [copy.deepcopy, lambda layer: pickle.loads(pickle.dumps(layer))])
def test_copies_compute_the_same(again):
    layer, x = nn.LSTM(3, 4), torch.ones(2, 1, 3)
    assert torch.equal(again(layer)(x)[0], layer(x)[0])


def test_packing():
    x = torch.arange(6.0).reshape(3, 2).requires_grad_()
    packed = sequences.pack_padded_sequence(x, [3, 1])
    assert packed.data.tolist() == [0, 1, 2, 4] and packed.batch_sizes.tolist() == [2, 1, 1]
    packed.data.sum().backward()
    assert x.grad.tolist() == [[1, 1], [1, 0], [1, 0]]
    back, lengths = sequences.pad_packed_sequence(packed, padding_value=-1, total_length=4)
    assert back.tolist() == [[0, 1], [2, -1], [4, -1], [-1, -1]] and lengths.tolist() == [3, 1]
    assert sequences.PackedSequence(packed.data, packed.batch_sizes).to("cpu").double().data.dtype is torch.float64


def test_packing_refuses_lengths_beyond_the_end():
    with fails(RuntimeError, "Expected lengths of at most 3, the number of steps, but got 4"):
        sequences.pack_padded_sequence(torch.ones(3, 2), [4, 3])


@pytest.mark.parametrize("sizes", [[2, 3], [3, 3], [0, 5], [3, -1, 3], []])
def test_sizes_of_steps_that_do_not_fit(sizes):
    layer = made("LSTM", 2, 3)
    zeros = torch.zeros(1, max(sizes[:1] or [0]), 3, dtype=torch.float64)
    x = torch.randn(5, 2, dtype=torch.float64)
    batch_sizes = torch.tensor(sizes, dtype=torch.int64)
    with fails(RuntimeError, "lstm: ... are not steps of the sizes ..."):
        torch.lstm(x, batch_sizes, (zeros, zeros), list(layer.parameters()), True, 1, 0.0, True, False)


def test_rows_beyond_the_steps_are_left_out():
    layer = made("GRU", 2, 3)
    x, zeros = torch.randn(5, 2, dtype=torch.float64), torch.zeros(1, 3, 3, dtype=torch.float64)
    how = torch.tensor([3, 1]), zeros, list(layer.parameters()), True, 1, 0.0, True, False
    assert torch.equal(torch.gru(x, *how)[0], torch.gru(x[:4], *how)[0])
