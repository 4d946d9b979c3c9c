"""Tests of GPU code: on a GPU where there is one, else on the stand-in for CuPy (CONTRIBUTING.md)."""

import cupy_standin
import pytest
from cupy_standin import compiler

import cygrad
from cygrad._kernels import gpu
from cygrad._kernels.gpu import library


@pytest.fixture(scope="module")
def cupy():
    """CuPy, or its stand-in, which cygrad finds in its place."""
    if library.is_available():
        with cygrad.backends.cudnn.flags(enabled=True, allow_tf32=False):
            yield library.cupy()
        return
    before = dict(gpu._forms)
    with cupy_standin.installed() as module:
        library._found = None
        library.switches.own_launches = compiler.compiler() is not None
        assert library.cupy() is module
        yield module
    library.switches.own_launches = True
    library._found = None
    gpu._forms.clear()
    gpu._forms.update(before)


@pytest.fixture
def second(cupy):
    """The name of a second GPU."""
    if cygrad.cuda.device_count() < 2:
        pytest.skip("needs two GPUs")
    return "cuda:1"
