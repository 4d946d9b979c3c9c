"""Jacobians and Hessians of functions of tensors on a GPU: the unit vectors that they need are there, too."""

import pytest

import cygrad as torch
from cygrad.autograd import functional


@pytest.fixture
def x(cupy):
    return torch.tensor([[0.5, 1.0, 2.0]], device="cuda")


@pytest.mark.parametrize("jacobian", [torch.func.jacrev, torch.func.jacfwd])
def test_jacobians(jacobian, x):
    found = jacobian(lambda x: (x * x).sum(0))(x)
    assert found.is_cuda
    assert found.tolist() == [[[1, 0, 0]], [[0, 2, 0]], [[0, 0, 4]]]


def test_hessians(x):
    for found in (
        torch.func.hessian(lambda x: (x**3).sum())(x[0]),
        functional.hessian(lambda x: (x**3).sum(), x[0], vectorize=True),
    ):
        assert found.is_cuda
        assert found.tolist() == [[3, 0, 0], [0, 6, 0], [0, 0, 12]]


@pytest.mark.parametrize("options", [{}, {"vectorize": True}, {"vectorize": True, "strategy": "forward-mode"}])
def test_jacobians_of_autograd(options, x):
    found = functional.jacobian(lambda x: x * x, x[0], **options)
    assert found.is_cuda
    assert found.tolist() == [[1, 0, 0], [0, 2, 0], [0, 0, 4]]
