"""Tests of GPU code: on a GPU where there is one, else on the stand-in for CuPy (CONTRIBUTING.md)."""

import pytest

import cygrad


@pytest.fixture
def second(cupy):
    """The name of a second GPU."""
    if cygrad.cuda.device_count() < 2:
        pytest.skip("needs two GPUs")
    return "cuda:1"
