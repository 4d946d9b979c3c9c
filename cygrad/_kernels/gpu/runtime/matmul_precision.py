"""How precise products of matrices are on GPUs, as the user asks and cuBLAS is told through CuPy."""

from contextlib import contextmanager
from importlib import import_module

import numpy as np

from cygrad._kernels.device.cupy_library import cupy, is_loaded

_NO_REDUCED_REDUCTIONS = 16  # CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION


class Precision:
    """What the user asks for; as PyTorch has it at first."""

    matmul = "highest"  # of float32: else TF32 may be used, "high" and "medium" alike
    fp16_accumulation = False  # may products of float16 be added up in float16?
    reduced = {"float16": True, "bfloat16": True}  # may sums of parts of a product be added up in its type?


def apply():
    """Tell CuPy, if it is loaded, which also applies what its own environment variables say."""
    if not is_loaded():
        return
    products = import_module("cupy._core._routines_linalg")
    default = products.COMPUTE_TYPE_DEFAULT
    tf32 = products.COMPUTE_TYPE_TF32 if Precision.matmul != "highest" else default
    products.set_compute_type(np.dtype(np.float32), tf32)
    half = products.COMPUTE_TYPE_FP16 if Precision.fp16_accumulation else default
    products.set_compute_type(np.dtype(np.float16), half)


def multiply(function, a, b, *args):
    """`function(a, b, *args)`, a product by cuBLAS, as precise as is asked for."""
    if a.dtype.itemsize != 2 or Precision.reduced[a.dtype.name]:
        return function(a, b, *args)
    with _exact_reductions():
        return function(a, b, *args)


@contextmanager
def _exact_reductions():
    cublas = import_module("cupy_backends.cuda.libs.cublas")
    handle = cupy().cuda.get_cublas_handle()  # that of the thread, on its GPU
    before = cublas.getMathMode(handle)
    cublas.setMathMode(handle, before | _NO_REDUCED_REDUCTIONS)
    try:
        yield
    finally:
        cublas.setMathMode(handle, before)
