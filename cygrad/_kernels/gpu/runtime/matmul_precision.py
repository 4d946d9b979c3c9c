"""Precision of matrix products on GPUs: the user's settings, passed to cuBLAS through CuPy."""

from contextlib import contextmanager
from importlib import import_module

import numpy as np

from cygrad._kernels.device.cupy_library import cupy, is_loaded

_NO_REDUCED_REDUCTIONS = 16  # CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION


class Precision:
    """The user's settings; defaults are PyTorch's."""

    matmul = "highest"  # for float32: unless "highest", TF32 may be used ("high" and "medium" are equivalent)
    fp16_accumulation = False  # may float16 products be accumulated in float16?
    reduced = {"float16": True, "bfloat16": True}  # may partial sums of a product be reduced in its own type?


def apply():
    """Pass the settings to CuPy if it is loaded; CuPy also applies its own environment variables."""
    if not is_loaded():
        return
    products = import_module("cupy._core._routines_linalg")
    default = products.COMPUTE_TYPE_DEFAULT
    tf32 = products.COMPUTE_TYPE_TF32 if Precision.matmul != "highest" else default
    products.set_compute_type(np.dtype(np.float32), tf32)
    half = products.COMPUTE_TYPE_FP16 if Precision.fp16_accumulation else default
    products.set_compute_type(np.dtype(np.float16), half)


def multiply(function, a, b, *args):
    """Call `function(a, b, *args)`, a product by cuBLAS, at the requested precision."""
    if a.dtype.itemsize != 2 or Precision.reduced[a.dtype.name]:
        return function(a, b, *args)
    with _exact_reductions():
        return function(a, b, *args)


@contextmanager
def _exact_reductions():
    cublas = import_module("cupy_backends.cuda.libs.cublas")
    handle = cupy().cuda.get_cublas_handle()  # this thread's handle, for its GPU
    before = cublas.getMathMode(handle)
    cublas.setMathMode(handle, before | _NO_REDUCED_REDUCTIONS)
    try:
        yield
    finally:
        cublas.setMathMode(handle, before)
