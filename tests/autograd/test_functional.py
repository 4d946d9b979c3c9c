"""`autograd.functional` against formulas, and where it supports more than PyTorch."""

import pytest

import cygrad as torch
from cygrad.autograd import functional
from helpers import fails

X = torch.tensor([1.0, 2.0, 3.0], dtype=torch.float64)
V = torch.tensor([1.0, -1.0, 0.5], dtype=torch.float64)
M = torch.tensor([[1.0, 2.0, 0.5], [0.0, -1.0, 1.0]], dtype=torch.float64)


def network(x):
    return torch.tanh(M @ x)


def slope(x):
    return torch.diag(1 - network(x) ** 2) @ M


@pytest.mark.parametrize("how", [{}, {"vectorize": True}, {"vectorize": True, "strategy": "forward-mode"}])
def test_jacobian(how):
    assert torch.allclose(functional.jacobian(network, X, **how), slope(X))
    (by_x, by_m), *_ = functional.jacobian(lambda x, m: (m @ x, m), (X, M), **how)
    assert by_x.shape == (2, 3) and by_m.shape == (2, 2, 3)
    assert torch.equal(by_x, M) and torch.equal(by_m[0, 0], X) and not by_m[0, 1].any()


def test_products_with_the_jacobian():
    w = torch.tensor([2.0, -3.0], dtype=torch.float64)
    assert torch.allclose(functional.jvp(network, X, V)[1], slope(X) @ V)
    assert torch.allclose(functional.vjp(network, X, w)[1], w @ slope(X))


def energy(x):
    return (x[0] * x[1]) ** 2 + torch.exp(x[2]) * x[0]


def curvature(x):
    a, b, c = x.tolist()
    e = torch.exp(x[2]).item()
    return torch.tensor([[2 * b * b, 4 * a * b, e], [4 * a * b, 2 * a * a, 0], [e, 0, a * e]], dtype=torch.float64)


@pytest.mark.parametrize("strategy", ["reverse-mode", "forward-mode"])
def test_hessian(strategy):
    how = {"outer_jacobian_strategy": strategy, "vectorize": True}
    found = functional.hessian(energy, X, **how)
    assert torch.allclose(found, curvature(X)) and not found.requires_grad
    blocks = functional.hessian(lambda x, y: energy(x * y), (X, X + 1), **how)
    assert torch.allclose(blocks[0][1], blocks[1][0].T)


def test_products_with_the_hessian():
    for product in (functional.vhp, functional.hvp):
        value, found = product(energy, X, V)
        assert torch.allclose(value, energy(X)) and torch.allclose(found, curvature(X) @ V)


def test_create_graph():
    x = X.clone().requires_grad_()
    third = functional.jacobian(lambda x: functional.hessian(energy, x, create_graph=True), x)
    assert third.shape == (3, 3, 3) and third[1, 1, 0] == 4 * x[0]
    functional.jvp(network, x, V, create_graph=True)[1].sum().backward()
    assert torch.allclose(x.grad, functional.vjp(lambda x: slope(x) @ V, X, torch.ones(2, dtype=x.dtype))[1])


def test_the_inputs_are_left_alone():
    x = X.clone().requires_grad_()
    functional.jacobian(network, x)
    functional.hessian(energy, x)
    assert x.grad is None and not X.requires_grad


def test_empty_inputs_and_outputs():
    """PyTorch raises because it cannot stack an empty list."""
    for how in ({}, {"vectorize": True, "strategy": "forward-mode"}):
        assert functional.jacobian(lambda x: x * 2, torch.zeros(0, 3), **how).shape == (0, 3, 0, 3)
    assert functional.hessian(lambda x: x.sum(), torch.zeros(0)).shape == (0, 0)


def test_strict_mode_finds_what_is_cut():
    with fails(
        RuntimeError, "Output 0 of the user-provided function does not require gradients. The outputs must be..."
    ):
        functional.jacobian(lambda x: x.detach(), X, strict=True)
