"""Fixtures for GPU tests, which run on a GPU if there is one, otherwise on the stand-in for CuPy (CONTRIBUTING.md)."""

import pytest

import cygrad


@pytest.fixture
def second(cupy):
    """The name of a second GPU."""
    if cygrad.cuda.device_count() < 2:
        pytest.skip("needs two GPUs")
    return "cuda:1"
