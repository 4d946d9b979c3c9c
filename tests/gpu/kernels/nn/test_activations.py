"""Activation functions whose formulas on GPUs differ from those on the CPU."""

import math

import cupy_standin
import numpy as np
import pytest
from cuda_kernels import runs_kernels

import cygrad as torch
import cygrad.nn.functional as F

pytestmark = runs_kernels


@pytest.fixture(autouse=True)
def gpu(cupy):
    return cupy


def exact_gelu(x):
    """gelu and its derivative in double precision."""
    x = x.detach().cpu().numpy().astype(float)
    normal = np.array([math.erfc(-value / math.sqrt(2)) / 2 for value in x])
    return x * normal, normal + x * np.exp(-x * x / 2) / math.sqrt(2 * math.pi)


def test_gelu_of_floats_has_six_digits_wherever_it_is_a_normal_number():
    x = torch.linspace(-12.8, 12.8, 20001).cuda().requires_grad_()
    y = F.gelu(x)
    y.sum().backward()
    expected, slope = exact_gelu(x)
    np.testing.assert_allclose(y.detach().cpu(), expected, 1.5e-6, 0)
    np.testing.assert_allclose(x.grad.cpu(), slope, 2e-6, 2e-7)  # the slope crosses 0


@pytest.mark.parametrize("value", [0.0, -0.0, 15.0, 1e20, -1e20, float("inf"), float("-inf"), float("nan"), 1e-30])
def test_gelu_and_sigmoid_at_the_ends(value):
    x = torch.tensor([value], device="cuda", requires_grad=True)
    for function in (F.gelu, torch.sigmoid, F.silu):
        (found,), (expected,) = (function(t).tolist() for t in (x.detach(), x.detach().cpu()))
        np.testing.assert_allclose(found, expected, 1e-6)
    if math.isinf(value):
        return  # the gradient is infinity times 0, as in PyTorch
    (F.gelu(x) + torch.sigmoid(x)).backward(torch.ones(1, device="cuda"))
    other = x.detach().cpu().requires_grad_()
    (F.gelu(other) + torch.sigmoid(other)).backward(torch.ones(1))
    np.testing.assert_allclose(x.grad.cpu(), other.grad, 1e-6)


def test_the_gradient_of_a_sum_is_no_array_of_its_own():
    x = torch.randn(64, 40, device="cuda", requires_grad=True)
    y = x.sigmoid()
    with cupy_standin.watch() as seen:
        y.sum().backward()
    assert "cygrad_sigmoid_backward" in seen.launches or not seen.launches
    np.testing.assert_allclose(x.grad.cpu(), (y * (1 - y)).detach().cpu(), 1e-6)
