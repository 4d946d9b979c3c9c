"""Fixtures for GPU tests, which run on a GPU if there is one, otherwise on the stand-in for CuPy (CONTRIBUTING.md)."""

import pytest

import cygrad
from cygrad._kernels.device import gpu_forms


@pytest.fixture
def second(cupy):
    """The name of a second GPU."""
    if cygrad.cuda.device_count() < 2:
        pytest.skip("needs two GPUs")
    return "cuda:1"


@pytest.fixture
def captures(cupy):
    """The GPU, for tests that capture graphs: all captures must end with the test, and so does their stream."""
    yield cupy
    cygrad.cuda.graph.default_capture_stream = None
    assert not gpu_forms.captures
