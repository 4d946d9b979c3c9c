"""Calls that end at once although a dimension is huge: nothing may loop over elements that do not exist."""

import resource
import signal
import sys

import numpy as np
import pytest
from scipy import special

import cygrad as torch

HUGE = 2**40


@pytest.fixture
def little_memory():
    """Limit the address space, so that a result of terabytes can not be allocated lazily."""
    before = resource.getrlimit(resource.RLIMIT_AS)
    with open("/proc/self/statm") as file:
        used = int(file.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + 2**32, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_AS, before)


def test_matrices_without_rows():
    a = torch.ones(0, HUGE)
    assert torch.linalg.svdvals(a).shape == (0,)
    u, s, vh = torch.linalg.svd(a, full_matrices=False)
    assert (u.shape, s.shape, vh.shape) == ((0, 0), (0,), (0, HUGE))
    assert torch.linalg.svdvals(a.mT).shape == (0,)
    assert torch.linalg.matrix_rank(a).item() == 0
    assert torch.linalg.svd(torch.ones(2, 0, 3, dtype=torch.complex64))[1].dtype is torch.float32


def test_batches_of_empty_matrices():
    assert torch.linalg.eigvals(torch.ones(HUGE, 0, 0)).shape == (HUGE, 0)
    assert torch.linalg.eigvals(torch.ones(2, 0, 0, dtype=torch.float64)).dtype is torch.complex128
    assert torch.linalg.eigvalsh(torch.ones(HUGE, 0, 0)).shape == (HUGE, 0)


@pytest.mark.skipif(sys.platform != "linux", reason="limits memory as Linux does")
@pytest.mark.parametrize("name", ["angle", "isposinf", "sinc", "abs", "sin", "sgn", "isfinite"])
def test_results_that_do_not_fit_into_memory(name, little_memory):
    with pytest.raises((MemoryError, RuntimeError), match="[Uu]nable to allocate|allocate memory"):
        getattr(torch, name)(torch.ones(1).expand(HUGE))


CHEBYSHEV = {  # the values at cos(t), sin(t) != 0
    "t": lambda n, t: np.cos(n * t),
    "u": lambda n, t: np.sin((n + 1) * t) / np.sin(t),
    "v": lambda n, t: np.cos((n + 0.5) * t) / np.cos(t / 2),
    "w": lambda n, t: np.sin((n + 0.5) * t) / np.sin(t / 2),
}


@pytest.mark.parametrize("kind", list(CHEBYSHEV))
@pytest.mark.parametrize("shifted", [False, True])
@pytest.mark.parametrize("degree", [1001, 2**20, 2**31])
def test_chebyshev_polynomials_of_high_degree(kind, shifted, degree):
    name = f"{'shifted_' * shifted}chebyshev_polynomial_{kind}"
    t = np.array([0.3, 1.0, 2.0, 3.0])
    x = (np.cos(t) + 1) / 2 if shifted else np.cos(t)
    found = getattr(torch.special, name)(torch.tensor(x), degree)
    np.testing.assert_allclose(found.numpy(), CHEBYSHEV[kind](degree, t), rtol=0, atol=1e-13 * degree)
    sign = (-1) ** degree
    ends = {
        "t": (1, sign),
        "u": (degree + 1, sign * (degree + 1)),
        "v": (1, sign * (2 * degree + 1)),
        "w": (2 * degree + 1, sign),
    }
    points = torch.tensor([1.0, 0.0 if shifted else -1.0, 2.0, float("nan")], dtype=torch.float64)
    found = getattr(torch.special, name)(points, degree).tolist()
    assert found[:2] == [*ends[kind]] and found[2] > 1e300 and found[3] != found[3]


def test_degrees_of_all_sizes_together():
    x, degree = torch.tensor([[0.5], [-1.0]], dtype=torch.float64), torch.tensor([-3, 0, 3, 2**31 - 1])
    found = torch.special.chebyshev_polynomial_t(x, degree)
    expected = [[0.0, 1.0, -1.0, np.cos((2**31 - 1) * np.pi / 3)], [0.0, 1.0, -1.0, -1.0]]
    np.testing.assert_allclose(found.numpy(), expected, rtol=0, atol=1e-5)


@pytest.mark.parametrize("degree", [1001, 5000, 2**20 + 1])
def test_legendre_polynomials_of_high_degree(degree):
    x = torch.tensor([0.3, -0.7, 0.99999, -1.0, 1.5, -1.5, np.nan], dtype=torch.float64, requires_grad=True)
    y = torch.special.legendre_polynomial_p(x, degree)
    (slopes,) = torch.autograd.grad(y.sum(), x)
    y, slopes, x = (t.detach().numpy() for t in (y, slopes, x))
    inside, lower = x[:3], special.eval_legendre(degree - 1, x[:3])
    expected = special.eval_legendre(degree, inside)
    accuracy = 1e-13 * degree / 1000  # the values of SciPy have such errors
    np.testing.assert_allclose(y[:3], expected, rtol=0, atol=accuracy)
    expected_slopes = degree * (lower - inside * expected) / (1 - inside**2)
    np.testing.assert_allclose(slopes[:3], expected_slopes, rtol=1e-9, atol=accuracy * degree)
    sign, slope = (-1) ** degree, degree * (degree + 1) / 2
    assert [y[3], slopes[3]] == pytest.approx([sign, -sign * slope], rel=1e-14)
    np.testing.assert_array_equal(y[4:], [np.inf, sign * np.inf, np.nan])
    np.testing.assert_array_equal(slopes[4:], [np.inf, -sign * np.inf, np.nan])


@pytest.mark.parametrize("degree", [1001, 5000, 2**20])
def test_laguerre_polynomials_of_high_degree(degree):
    x = torch.tensor([0.0, 1e-3, 0.5, 30.0, -1e6, np.nan], dtype=torch.float64, requires_grad=True)
    y = torch.special.laguerre_polynomial_l(x, degree)
    (slopes,) = torch.autograd.grad(y.sum(), x)
    y, slopes, points = (t.detach().numpy() for t in (y, slopes, x))
    np.testing.assert_allclose(y[:4], special.eval_laguerre(degree, points[:4]), rtol=1e-8)
    expected = -special.eval_genlaguerre(degree - 1, 1, points[:4])
    np.testing.assert_allclose(slopes[:4], expected, rtol=1e-7)
    np.testing.assert_array_equal([*y[4:], *slopes[4:]], [np.inf, np.nan, -np.inf, np.nan])


@pytest.mark.parametrize("shifted", [False, True])
@pytest.mark.parametrize("kind", list(CHEBYSHEV))
def test_derivatives_of_chebyshev_polynomials_of_high_degree(kind, shifted):
    """They are compared with differences of the polynomials, and the second ones with differences of the first."""
    function = getattr(torch.special, f"{'shifted_' * shifted}chebyshev_polynomial_{kind}")
    step, degree = 1e-7, torch.tensor([1500, 1501, 2000])
    x = torch.tensor([[0.3], [0.77], [0.9], [-0.4]], dtype=torch.float64)
    x = (x + 1) / 2 if shifted else x

    def derivatives(x):
        x = x.expand(4, 3).clone().requires_grad_()
        y = function(x, degree)
        (first,) = torch.autograd.grad(y.sum(), x, create_graph=True)
        (second,) = torch.autograd.grad(first.sum(), x)
        return y.detach(), first.detach(), second

    upper, middle, lower = (derivatives(x + move) for move in (step, 0, -step))
    for order in (1, 2):
        differences = (upper[order - 1] - lower[order - 1]) / (2 * step)
        torch.testing.assert_close(middle[order], differences, rtol=1e-4, atol=1e-4 * 2000**order)


def test_a_recurrence_of_many_steps_with_degrees_of_all_sizes():
    x = torch.tensor([[0.3], [-1.0], [1.5]])
    degree = torch.tensor([[-3, 0, 1, 2, 7, 999, 4000, 4000]])
    found = torch.special.legendre_polynomial_p(x, degree)
    wide = special.eval_legendre(np.maximum(degree.numpy(), 0), x.double().numpy()) * (degree.numpy() >= 0)
    with np.errstate(over="ignore"):
        np.testing.assert_allclose(found.numpy(), wide.astype(np.float32), rtol=1e-5, atol=1e-7)


def test_a_recurrence_that_overflows_ends_at_once():
    x = torch.tensor([1.5, -2.0, np.nan, np.inf], requires_grad=True)
    found = torch.special.legendre_polynomial_p(x, 2**62)
    found.sum().backward()
    assert found.tolist()[:2] == [np.inf, np.inf] and found[2].isnan() and x.grad[0] == np.inf


@pytest.mark.skipif(sys.platform == "win32", reason="has no such timer")
def test_a_recurrence_of_many_steps_can_be_interrupted():
    def interrupt(*_):
        raise KeyboardInterrupt

    former = signal.signal(signal.SIGALRM, interrupt)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.2)
        with pytest.raises(KeyboardInterrupt):
            torch.special.legendre_polynomial_p(torch.tensor([0.5]), 2**62)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, former)


@pytest.mark.parametrize("name", ["hermite_polynomial_h", "hermite_polynomial_he"])
def test_hermite_polynomials_of_high_degree_are_nan_as_in_pytorch(name):
    assert getattr(torch.special, name)(torch.tensor([0.5, 1.0, 2.0]), 2**31).isnan().all()
