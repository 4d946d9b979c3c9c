"""Calls that end at once although a dimension is huge: nothing may loop over elements that do not exist."""

import resource
import sys

import numpy as np
import pytest

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


@pytest.mark.parametrize("name", ["hermite_polynomial_h", "hermite_polynomial_he"])
def test_hermite_polynomials_of_high_degree_are_nan_as_in_pytorch(name):
    assert getattr(torch.special, name)(torch.tensor([0.5, 1.0, 2.0]), 2**31).isnan().all()
