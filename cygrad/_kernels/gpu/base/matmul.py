"""Matrix products on GPUs, by cuBLAS.

CuPy multiplies batches of float16 matrices in float32, does not support bfloat16 batches, never uses TF32 for batches,
requires contiguous matrices, and inspects its arguments at length. We therefore call cuBLAS ourselves, and pass
transposed matrices as they are in memory.
"""

import math

from cygrad._kernels.device.cupy_library import cupy, name_of, switches
from cygrad._kernels.gpu.base import arrays
from cygrad._kernels.gpu.libraries import cublas, cublas_lt
from cygrad._kernels.gpu.runtime.graph_capture import current
from cygrad._kernels.gpu.runtime.matmul_precision import Precision, multiply
from cygrad._library import later

ufuncs = later("cygrad._kernels.gpu.base.ufunc")  # it imports this module


def matmul(a, b, tf32=None):
    """Return a @ b with NumPy's semantics; `tf32` allows TF32 for float32, None uses the user's setting."""
    dims = a.ndim, b.ndim
    if not (a.dtype == b.dtype and cublas.takes(a.dtype) and a.size and b.size and min(dims) >= 1):
        return cupy().matmul(a, b)
    if dims == (2, 2):
        return multiply(_of_two, a, b, tf32)
    if dims == (1, 1) and a.dtype.itemsize > 2 and current() is None:
        return cupy().matmul(a, b)  # cuBLAS has dedicated functions for it
    if b.ndim == 2 and a.ndim > 2 and a.shape[-1] == b.shape[0]:
        return matmul(a.reshape(-1, a.shape[-1]), b, tf32).reshape(*a.shape[:-1], b.shape[1])
    return multiply(_of_stacks, a, b, tf32)


def dot(a, b):
    """Return the dot product of two vectors."""
    return matmul(a, b)


def _of_two(a, b, tf32, held=None, beta=0, alpha=1):
    """Return alpha * (a @ b) of two matrices, plus beta * held if given, in the memory of `held`."""
    (rows, inner), columns = a.shape, b.shape[1]
    if inner != b.shape[0]:
        raise ValueError(f"shapes {a.shape} and {b.shape} not aligned")
    (a, of_a), (b, of_b) = _matrix(a), _matrix(b)
    out = cupy().ndarray((rows, columns), a.dtype) if held is None else held
    _multiply(a, of_a, b, of_b, out, inner, tf32, beta, alpha)
    return out


def _of_stacks(a, b, tf32, held=None, beta=0, alpha=1):
    """Return alpha * (a @ b) of two nonempty arrays, plus beta * held if given, in the memory of `held`."""
    first, second = (a[None] if a.ndim == 1 else a), (b[:, None] if b.ndim == 1 else b)
    if first.shape[-1] != second.shape[-2]:
        raise ValueError(f"shapes {a.shape} and {b.shape} not aligned")
    batch = cupy().broadcast_shapes(first.shape[:-2], second.shape[:-2])
    is_even = all(x.shape[:-2] == batch or math.prod(x.shape[:-2]) == 1 for x in (first, second))
    if (
        not is_even and held is None and alpha == 1 and a.dtype.itemsize > 2 and current() is None
    ):  # CuPy handles broadcasting without copies
        return cupy().matmul(a, b)
    (x, of_x), (y, of_y) = (_stack(array, batch) for array in (first, second))
    (rows, inner), columns = x.shape[1:], y.shape[2]
    size = math.prod(batch), rows, columns
    out = cupy().empty(size, a.dtype) if held is None else held.reshape(size)
    _multiply(x, of_x, y, of_y, out, inner, tf32, beta, alpha)
    return out.reshape(*batch, *([] if a.ndim == 1 else [rows]), *([] if b.ndim == 1 else [columns]))


def _multiply(x, of_x, y, of_y, out, inner, tf32, beta, alpha):
    may = Precision.matmul != "highest" if tf32 is None else tf32
    cublas.multiply(x, of_x, y, of_y, out, inner, Precision.fp16_accumulation, may, alpha, beta)


def _matrix(a):
    """Return (the matrix, its layout: (is it transposed, leading dimension, 0)), copied only if necessary."""
    found = _lines(a.shape, a.strides, a.itemsize)
    if found is None:
        a = cupy().ascontiguousarray(a)
        found = 0, a.shape[1]
    return a, (*found, 0)


def _stack(a, batch):
    """Return (matrices (count, rows, columns), their layout: (transposed or not, leading dimension, batch stride))."""
    if math.prod(a.shape[:-2]) == 1:  # one matrix for the whole batch
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
    """Return (is it transposed, leading dimension) of a matrix with these byte strides, or None if no axis is dense."""
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
    """Return the outer product of two vectors."""
    return cupy().outer(a, b)


def addmm(bias, a, b, beta=1, alpha=1):
    """Return beta * bias + alpha * (a @ b), rounded once in half precision. If beta is 0, `bias` is not read.

    Other factors than 1 are for nonempty arrays of one type that cuBLAS multiplies: matrices, a matrix and a vector, or
    two stacks of matrices.
    """
    is_plain = beta == 1 and alpha == 1
    if is_plain:
        found = _with_bias(bias, a, b)
        if found is not None:
            return found
        if not (a.dtype.itemsize == 2 and cublas.takes(a.dtype) and a.dtype == b.dtype == bias.dtype):
            return ufuncs.add(matmul(a, b), bias)
        if not (a.size and b.size and a.ndim == b.ndim == 2):
            return ufuncs.add(matmul(a, b), bias)
    shape = (*a.shape[:-1], *b.shape[-1:]) if b.ndim > 1 else a.shape[:-1]
    held = None if beta == 0 else arrays.copied(cupy().broadcast_to(bias, shape), "C")
    if a.ndim == b.ndim == 2:
        return multiply(_of_two, a, b, None, held, beta, alpha)
    return multiply(_of_stacks, a, b, None, held, beta, alpha)


def _with_bias(bias, a, b):
    """Return a @ b plus a bias for each column, computed in one launch, or None if that is not possible."""
    dtype = a.dtype
    if not (a.ndim == b.ndim == 2 and bias.ndim == 1 and dtype == b.dtype == bias.dtype and switches.own_launches):
        return None
    (rows, inner), columns = a.shape, b.shape[1]
    is_large = rows > 1 and inner > 1 and inner == b.shape[0] and columns == bias.shape[0] > 1
    if not is_large or not bias.flags.c_contiguous or not cublas_lt.takes(dtype):
        return None
    if dtype.itemsize == 2 and (Precision.fp16_accumulation or not Precision.reduced[name_of(dtype)]):
        return None  # there, cuBLASLt has no such settings
    (a, of_a), (b, of_b) = _matrix(a), _matrix(b)
    out = cupy().ndarray((rows, columns), dtype)
    return out if cublas_lt.multiply(a, of_a, b, of_b, bias, out, inner, Precision.matmul != "highest") else None
