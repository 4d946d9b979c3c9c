"""Calls that end at once although a dimension is huge: nothing may loop over elements that do not exist."""

import resource
import sys

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
