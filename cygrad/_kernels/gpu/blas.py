"""Products of matrices on GPUs, by cuBLAS.

CuPy multiplies stacks of matrices in float32 where they are float16, not at all where they are bfloat16, never by TF32,
and of dense matrices alone. So stacks of them are given to cuBLAS here, transposed ones as they lie in memory.
"""

import math
from importlib import import_module

import numpy as np

from cygrad._kernels.gpu.library import cupy
from cygrad._kernels.gpu.precision import Precision, multiply

_CODES = {"float16": 2, "bfloat16": 14, "float32": 0, "float64": 1}  # of types, in CUDA
_DEFAULT = -1  # CUBLAS_GEMM_DEFAULT
_FACTORS = {kind: (np.array(1, kind), np.array(0, kind)) for kind in ("float32", "float64")}


def matmul(a, b):
    """a @ b as NumPy defines it."""
    if min(a.ndim, b.ndim) >= 1 and a.dtype == b.dtype and a.size and b.size and a.dtype.name in _CODES:
        if b.ndim == 2 and a.ndim > 2 and a.shape[-1] == b.shape[0]:
            return matmul(a.reshape(-1, a.shape[-1]), b).reshape(*a.shape[:-1], b.shape[1])
        if max(a.ndim, b.ndim) > 2 or (a.dtype.itemsize == 2 and (a.ndim == 1 or len(a) == 1)):
            return multiply(_of_stacks, a, b)
    return multiply(cupy().matmul, a, b)


def dot(a, b):
    """The sum of the products of two vectors."""
    return matmul(a, b)


def _of_stacks(a, b):
    """a @ b of arrays that are not empty."""
    first, second = (a[None] if a.ndim == 1 else a), (b[:, None] if b.ndim == 1 else b)
    if first.shape[-1] != second.shape[-2]:
        raise ValueError(f"shapes {a.shape} and {b.shape} not aligned")
    batch = cupy().broadcast_shapes(first.shape[:-2], second.shape[:-2])
    is_even = all(x.shape[:-2] == batch or math.prod(x.shape[:-2]) == 1 for x in (first, second))
    if not is_even and a.dtype.itemsize > 2:  # CuPy makes no copies for it
        return cupy().matmul(a, b)
    (x, of_x), (y, of_y) = (_stack(array, batch) for array in (first, second))
    (rows, inner), columns = x.shape[1:], y.shape[2]
    out = cupy().empty((math.prod(batch), rows, columns), a.dtype)
    _multiply(x, of_x, y, of_y, out, inner)
    return out.reshape(*batch, *([] if a.ndim == 1 else [rows]), *([] if b.ndim == 1 else [columns]))


def _multiply(x, of_x, y, of_y, out, inner):
    """x @ y into dense `out`. cuBLAS has its matrices in columns: what it multiplies are the transposes."""
    cublas = import_module("cupy_backends.cuda.libs.cublas")
    count, rows, columns = out.shape
    code, is_double = _CODES[out.dtype.name], out.dtype.itemsize == 8
    one, zero = _FACTORS["float64" if is_double else "float32"]
    is_tf32 = out.dtype.itemsize == 4 and Precision.matmul != "highest"
    how = cublas.CUBLAS_COMPUTE_32F_FAST_TF32 if is_tf32 else cublas.CUBLAS_COMPUTE_32F
    how = cublas.CUBLAS_COMPUTE_64F if is_double else how
    cublas.gemmStridedBatchedEx(
        cupy().cuda.get_cublas_handle(), of_y[0], of_x[0], columns, rows, inner, one.ctypes.data,
        y.data.ptr, code, of_y[1], of_y[2], x.data.ptr, code, of_x[1], of_x[2], zero.ctypes.data,
        out.data.ptr, code, columns, rows * columns, count, how, _DEFAULT
    )  # fmt: skip


def _stack(a, batch):
    """(matrices (count, rows, columns), how they lie: (are they transposed, step of lines, step of matrices))."""
    if math.prod(a.shape[:-2]) == 1:  # one for all
        a = a.reshape(1, *a.shape[-2:])
    else:
        a = cupy().broadcast_to(a, (*batch, *a.shape[-2:])).reshape(-1, *a.shape[-2:])
    found = _lines(a)
    if found is None:
        a = cupy().ascontiguousarray(a)
        found = 0, a.shape[2], a.shape[1] * a.shape[2] if len(a) > 1 else 0
    return a, found


def _lines(a):
    """How matrices lie in memory, or None where neither rows nor columns are dense."""
    _, rows, columns = a.shape
    step, down, across = (n // a.itemsize for n in a.strides)
    step = step if len(a) > 1 else 0
    if step < 0 or (len(a) > 1 and step == 0):
        return None
    for is_turned, dense, lines, length, count in ((0, across, down, columns, rows), (1, down, across, rows, columns)):
        if length == 1 or dense == 1:
            lines = lines if count > 1 else length
            if lines >= length:
                return is_turned, lines, step
    return None


def outer(a, b):
    """All products of an element of one vector and one of another."""
    return cupy().outer(a, b)


def addmm(bias, a, b):
    """bias + a @ b."""
    out = matmul(a, b)
    if bias.dtype != out.dtype or out.shape != cupy().broadcast_shapes(bias.shape, out.shape):
        return bias + out
    out += bias
    return out
