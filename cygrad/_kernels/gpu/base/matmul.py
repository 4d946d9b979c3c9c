"""Products of matrices on GPUs, by cuBLAS.

CuPy multiplies stacks of matrices in float32 where they are float16, not at all where they are bfloat16, never by TF32,
and of dense matrices alone; and it looks long at what it is given. So they are given to cuBLAS here, transposed ones as
they lie in memory.
"""

import math

from cygrad._kernels.device.cupy_library import cupy
from cygrad._kernels.gpu.libraries import cublas
from cygrad._kernels.gpu.runtime.graph_capture import current
from cygrad._kernels.gpu.runtime.matmul_precision import Precision, multiply
from cygrad._library import later

ufuncs = later("cygrad._kernels.gpu.base.ufunc")  # which imports this


def matmul(a, b, tf32=None):
    """a @ b as NumPy defines it; `tf32` tells whether TF32 may be used for float32, None asks the user's setting."""
    dims = a.ndim, b.ndim
    if not (a.dtype == b.dtype and cublas.takes(a.dtype) and a.size and b.size and min(dims) >= 1):
        return cupy().matmul(a, b)
    if dims == (2, 2):
        return multiply(_of_two, a, b, tf32)
    if dims == (1, 1) and a.dtype.itemsize > 2 and current() is None:
        return cupy().matmul(a, b)  # cuBLAS has functions for it
    if b.ndim == 2 and a.ndim > 2 and a.shape[-1] == b.shape[0]:
        return matmul(a.reshape(-1, a.shape[-1]), b, tf32).reshape(*a.shape[:-1], b.shape[1])
    return multiply(_of_stacks, a, b, tf32)


def dot(a, b):
    """The sum of the products of two vectors."""
    return matmul(a, b)


def _of_two(a, b, tf32):
    """a @ b of two matrices."""
    (rows, inner), columns = a.shape, b.shape[1]
    if inner != b.shape[0]:
        raise ValueError(f"shapes {a.shape} and {b.shape} not aligned")
    (a, of_a), (b, of_b) = _matrix(a), _matrix(b)
    out = cupy().ndarray((rows, columns), a.dtype)
    _multiply(a, of_a, b, of_b, out, inner, tf32)
    return out


def _of_stacks(a, b, tf32):
    """a @ b of arrays that are not empty."""
    first, second = (a[None] if a.ndim == 1 else a), (b[:, None] if b.ndim == 1 else b)
    if first.shape[-1] != second.shape[-2]:
        raise ValueError(f"shapes {a.shape} and {b.shape} not aligned")
    batch = cupy().broadcast_shapes(first.shape[:-2], second.shape[:-2])
    is_even = all(x.shape[:-2] == batch or math.prod(x.shape[:-2]) == 1 for x in (first, second))
    if not is_even and a.dtype.itemsize > 2 and current() is None:  # CuPy makes no copies for it
        return cupy().matmul(a, b)
    (x, of_x), (y, of_y) = (_stack(array, batch) for array in (first, second))
    (rows, inner), columns = x.shape[1:], y.shape[2]
    out = cupy().empty((math.prod(batch), rows, columns), a.dtype)
    _multiply(x, of_x, y, of_y, out, inner, tf32)
    return out.reshape(*batch, *([] if a.ndim == 1 else [rows]), *([] if b.ndim == 1 else [columns]))


def _multiply(x, of_x, y, of_y, out, inner, tf32):
    may = Precision.matmul != "highest" if tf32 is None else tf32
    cublas.multiply(x, of_x, y, of_y, out, inner, Precision.fp16_accumulation, may)


def _matrix(a):
    """(a matrix, how it lies: (is it transposed, step of lines, 0))."""
    found = _lines(a.shape, a.strides, a.itemsize)
    if found is None:
        a = cupy().ascontiguousarray(a)
        found = 0, a.shape[1]
    return a, (*found, 0)


def _stack(a, batch):
    """(matrices (count, rows, columns), how they lie: (are they transposed, step of lines, step of matrices))."""
    if math.prod(a.shape[:-2]) == 1:  # one for all
        a, found = _matrix(a.reshape(a.shape[-2:]))
        return a[None], found
    a = cupy().broadcast_to(a, (*batch, *a.shape[-2:])).reshape(-1, *a.shape[-2:])
    step = a.strides[0] // a.itemsize
    found = _lines(a.shape[1:], a.strides[1:], a.itemsize) if step > 0 else None
    if found is None:
        a = cupy().ascontiguousarray(a)
        found, step = (0, a.shape[2]), a.shape[1] * a.shape[2]
    return a, (*found, step)


def _lines(shape, strides, itemsize):
    """How a matrix with these steps in bytes lies, or None where neither rows nor columns are dense."""
    (rows, columns), (down, across) = shape, strides
    if across == itemsize or columns == 1:
        lines = down // itemsize if rows > 1 else columns
        if lines >= columns:
            return 0, lines
    if down == itemsize or rows == 1:
        lines = across // itemsize if columns > 1 else rows
        if lines >= rows:
            return 1, lines
    return None


def outer(a, b):
    """All products of an element of one vector and one of another."""
    return cupy().outer(a, b)


def addmm(bias, a, b):
    """bias + a @ b."""
    return ufuncs.add(matmul(a, b), bias)
