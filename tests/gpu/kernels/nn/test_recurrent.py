"""Recurrent layers: results and gradients as on the CPU, with one launch for all steps and with some for each."""

import cupy_standin
import numpy as np
import pytest

import cygrad as torch
from cygrad import nn
from cygrad._kernels.device.cupy_library import switches
from cygrad._kernels.gpu.nn import recurrent_loops as loops


@pytest.fixture(autouse=True)
def gpu(cupy):
    return cupy


@pytest.fixture(params=["one launch", "some per step"])
def way(request, monkeypatch):
    if request.param == "some per step":
        monkeypatch.setattr(loops, "fits", lambda *args: False)
    elif not switches.own_launches:
        pytest.skip("kernels run by a C++ compiler: there is none")


KINDS = {
    "lstm": lambda *a, **k: nn.LSTM(*a, **k),
    "gru": lambda *a, **k: nn.GRU(*a, **k),
    "tanh": lambda *a, **k: nn.RNN(*a, **k),
    "relu": lambda *a, **k: nn.RNN(*a, nonlinearity="relu", **k),
    "projected": lambda *a, **k: nn.LSTM(*a, proj_size=2, **k),
}
dtypes = pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=["single", "double"])
kinds = pytest.mark.parametrize("kind", KINDS)


def compared(make, call, dtype):
    """Run a layer on both devices, with gradients of everything."""
    found = []
    for device in ("cpu", "cuda"):
        torch.manual_seed(3)
        layer = make().to(dtype)
        results, inputs = call(layer.to(device), lambda t, device=device: t.to(dtype).to(device).requires_grad_())
        generator = torch.Generator().manual_seed(5)
        weights = [torch.rand(r.shape, generator=generator).to(dtype).to(device) for r in results]
        torch.autograd.backward([(r * w).sum() for r, w in zip(results, weights)])
        grads = [t.grad for t in (*inputs, *layer.parameters())]
        found.append([t.detach().cpu() for t in (*results, *grads)])
    bound = 1e-4 if dtype == torch.float32 else 1e-11
    for expected, result in zip(*found, strict=True):
        assert expected.shape == result.shape and expected.dtype == result.dtype
        np.testing.assert_allclose(result, expected, bound, bound)


def flat(out, last):
    return [out, *(last if isinstance(last, tuple) else [last])]


@kinds
@dtypes
@pytest.mark.parametrize(("n", "width"), [(1, 3), (5, 33), (67, 5), (130, 4)], ids=str)
def test_sequences_of_one_length(kind, dtype, n, width, way):
    def call(layer, on):
        x = on(torch.randn(6, n, 4))
        return flat(*layer(x)), [x]

    compared(lambda: KINDS[kind](4, width, num_layers=2, bidirectional=True), call, dtype)


@kinds
@pytest.mark.parametrize("bidirectional", [False, True])
def test_sequences_of_many_lengths(kind, bidirectional, way):
    lengths = [7, 7, 5, 3, 3, 2, 1] + [1] * 60

    def call(layer, on):
        x = on(torch.randn(7, len(lengths), 3))
        out, last = layer(nn.utils.rnn.pack_padded_sequence(x, torch.tensor(lengths)))
        return flat(out.data, last), [x]

    compared(lambda: KINDS[kind](3, 5, bidirectional=bidirectional, bias=not bidirectional), call, torch.float64)


@kinds
def test_packing_and_padding(kind):
    def call(layer, on):
        x = on(torch.randn(3, 5, 3))
        packed = nn.utils.rnn.pack_padded_sequence(x, torch.tensor([2, 5, 3]), batch_first=True, enforce_sorted=False)
        out, last = layer(packed)
        padded, lengths = nn.utils.rnn.pad_packed_sequence(out, batch_first=True, padding_value=2.0)
        assert lengths.tolist() == [2, 5, 3] and lengths.device.type == "cpu" and padded.device == x.device
        return flat(padded, last), [x]

    compared(lambda: KINDS[kind](3, 5), call, torch.float64)


@kinds
def test_given_states_and_gradients_of_some_results(kind, way):
    def call(layer, on):
        x, h = on(torch.randn(4, 3, 2)), on(torch.randn(1, 3, 2 if kind == "projected" else 5))
        states = (h, on(torch.randn(1, 3, 5))) if kind in ("lstm", "projected") else h
        out, last = layer(x, states)
        both = [h, states[1]] if isinstance(states, tuple) else [h]
        return ([out] if kind == "gru" else flat(out, last)[1:]), [x, *both]

    compared(lambda: KINDS[kind](2, 5), call, torch.float64)


@pytest.mark.parametrize("kind", ["lstm", "gru", "tanh", "relu"])
def test_launches_do_not_grow_with_the_length(kind):
    layer, counts = KINDS[kind](3, 8).cuda(), []
    for steps in (2, 30):
        layer.zero_grad()
        with cupy_standin.watch() as seen:
            layer(torch.ones(steps, 2, 3, device="cuda"))[0].sum().backward()
        counts.append(len(seen.launches))
    if not seen.launches or not switches.own_launches:
        pytest.skip("only the stand-in tells of launches")
    assert counts[0] == counts[1] <= 17


def test_layers_that_are_too_wide_or_have_too_many_sequences(gpu):
    x = gpu.zeros((2, 3), np.float32)
    most = 4 * gpu.cuda.runtime.deviceGetAttribute(loops._MULTIPROCESSORS, 0)
    if switches.own_launches:
        assert loops.fits("lstm", x, most, 512)
    assert not loops.fits("lstm", x, most + 1, 512) and not loops.fits("lstm", x, 1, 513)
    assert not loops.fits("lstm", x, 0, 5) and not loops.fits("lstm", x.astype(np.int32), 1, 5)


def test_a_layer_in_a_captured_graph(way):
    layer, x = nn.LSTM(3, 8).cuda(), torch.randn(4, 2, 3, device="cuda")
    replay = torch.cuda.graph(lambda: layer(x)[0])
    with torch.no_grad():
        x.mul_(2)
    np.testing.assert_allclose(replay().detach().cpu(), layer(x)[0].detach().cpu(), 1e-6, 1e-6)
    packed = nn.utils.rnn.pack_padded_sequence(x, torch.tensor([4, 2]))
    replay = torch.cuda.graph(lambda: layer(packed)[0].data)
    np.testing.assert_allclose(replay().detach().cpu(), layer(packed)[0].data.detach().cpu(), 1e-6, 1e-6)
