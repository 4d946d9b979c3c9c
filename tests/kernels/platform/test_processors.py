"""The choice between modules compiled for processors with and without AVX2, in builds that have both."""

import ctypes
import os
import re
from pathlib import Path

import pytest

from cygrad import _library
from cygrad.backends.cpu import get_cpu_capability

FILE = Path(_library._compiled.__file__)
CHOSEN = sorted({name.decode() for name in re.findall(rb"\0PyInit_(\w+)_avx2(?=\0)", FILE.read_bytes())})

pytestmark = pytest.mark.skipif(not CHOSEN, reason="in this build each function is compiled for several processors")


def test_modules_are_those_with_loops():
    assert {"matmul", "reduce", "softmax", "ufunc"} <= set(CHOSEN) <= {n.rpartition(".")[2] for n in _library.names}


@pytest.mark.skipif("NPY_DISABLE_CPU_FEATURES" in os.environ, reason="NumPy, which the test asks, must not pretend")
def test_modules_are_those_for_this_processor():
    library = ctypes.PyDLL(str(FILE))

    def definition(name):
        function = getattr(library, f"PyInit_{name}")
        function.restype = ctypes.c_void_p
        return function()

    kind = "plain" if get_cpu_capability() == "DEFAULT" else "avx2"
    for name in CHOSEN:
        assert definition(f"{name}_avx2") != definition(f"{name}_plain")
        assert definition(name) == definition(f"{name}_{kind}")
