"""The mark of tests that run CUDA kernels: on a GPU, or as C++ on the stand-in for CuPy."""

import pytest
from cupy_standin import compiler

from cygrad._kernels.device import cupy_library

runs_kernels = pytest.mark.skipif(
    compiler.compiler() is None and not cupy_library.is_available(),
    reason="kernels run by a C++ compiler: there is none",
)
