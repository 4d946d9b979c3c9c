"""Recurrent cells on a GPU: one kernel for the gates in each direction."""

import cupy_standin
import pytest
from cuda_kernels import runs_kernels

import cygrad as torch
from cygrad import nn

pytestmark = runs_kernels


@pytest.fixture(autouse=True)
def gpu(cupy):
    return cupy


def run(kind, device, bias):
    """Return (new states after three steps, all gradients, a second-order gradient) of a cell."""
    torch.manual_seed(0)
    cell = getattr(nn, kind)(3, 5, bias=bias, dtype=torch.float64)
    x = torch.randn(4, 3, dtype=torch.float64)
    cell, x = cell.to(device), x.to(device).requires_grad_()
    state = None
    for _ in range(3):
        state = cell(x, state)
    states = state if isinstance(state, tuple) else (state,)
    loss = sum((s * s).sum() for s in states)
    inputs = [x, *cell.parameters()]
    plain = torch.autograd.grad(loss, inputs, retain_graph=True)
    grads = torch.autograd.grad(loss, inputs, create_graph=True)
    (second,) = torch.autograd.grad(grads[0].square().sum(), x)
    return [t.detach().cpu() for t in (*states, *grads, *plain, second)]


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("kind", ["LSTMCell", "GRUCell", "RNNCell"])
def test_cells_are_those_of_the_cpu(kind, bias):
    expected = run(kind, "cpu", bias)
    with cupy_standin.watch() as seen:
        found = run(kind, "cuda", bias)
    for a, b in zip(found, expected, strict=True):
        assert torch.allclose(a, b, rtol=1e-9, atol=1e-12)
    if torch.cuda.get_device_name().startswith("Stand-in"):
        name = kind.removesuffix("Cell").lower()
        assert seen.launches.count(name) == 3
        assert seen.launches.count(f"{name}_backward") == 6  # includes the second derivative


def test_cells_of_one_bias_or_two_types_are_made_of_ops():
    cell = nn.LSTMCell(3, 5).cuda()
    x, h = torch.ones(2, 3, device="cuda"), torch.zeros(2, 5, device="cuda")
    with cupy_standin.watch() as seen:
        found = torch.lstm_cell(x, (h, h), cell.weight_ih, cell.weight_hh, cell.bias_ih)
        none = torch.lstm_cell(x[:0], (h[:0], h[:0]), cell.weight_ih, cell.weight_hh)
    expected = torch.lstm_cell(x, (h, h), cell.weight_ih, cell.weight_hh, cell.bias_ih, torch.zeros(20, device="cuda"))
    assert torch.allclose(found[0], expected[0])
    assert none[0].shape == (0, 5)
    assert "lstm" not in seen.launches
