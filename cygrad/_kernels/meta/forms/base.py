"""Forms of the kernels in `cpu/base`: elementwise functions, reductions, and matrix products."""

import numpy as np

from cygrad._kernels.meta.array import ndarray, ordered_like
from cygrad._kernels.meta.forms.describing import by_element, dtype_of, reduced_shape

relu = copy_of_real = rsqrt = power = sign = where = erf = by_element


def clamp(kernel, a, low, high, out=None):
    return by_element(kernel, a, low, high)


def copy(kernel, a):
    return (
        a.copy("C")
        if any(step == 0 and n > 1 for step, n in zip(a.strides, a.shape))
        else ordered_like(a, a.shape, a.dtype)
    )


# --- Reductions --------------------------------------------------------------------------------


def sum(kernel, a, axes=None, keepdim=False, dtype=None):
    """Describe a reduction that takes the dtype of its result, or its number, which is -1 for none."""
    if isinstance(dtype, int):
        found = dtype_of(kernel, a) if dtype < 0 else _numbered(dtype)
    else:
        found = dtype_of(kernel, a) if dtype is None else np.dtype(dtype)
    return ndarray(reduced_shape(a.shape, axes, keepdim), found)


prod = mean = sum


def _numbered(number):
    """Return the dtype with a number."""
    codes = (code for code in "?bBhHiIlLqQefdgFDG" if np.dtype(code).num == number)
    return np.dtype(next(codes))


def sum_to(kernel, a, shape):
    return ndarray(shape, a.dtype)


def var(kernel, a, axes=None, correction=1, keepdim=False):
    return ndarray(reduced_shape(a.shape, axes, keepdim), dtype_of(kernel, a))


def norm(kernel, a, p=2, axes=None, keepdim=False):
    return ndarray(reduced_shape(a.shape, axes, keepdim), dtype_of(kernel, a))


def amax(kernel, a, axes=None, keepdim=False):
    return ndarray(reduced_shape(a.shape, axes, keepdim), dtype_of(kernel, a))


std = var
amin = all_ = any_ = logsumexp = amax


# --- Products ----------------------------------------------------------------------------------


def matmul(kernel, a, b):
    inner = b.shape[0] if b.ndim == 1 else b.shape[-2]
    if not a.ndim or not b.ndim or a.shape[-1] != inner:
        raise ValueError(f"matmul: operands of shapes {a.shape} and {b.shape} do not fit")
    stack = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    return ndarray((*stack, *a.shape[-2:-1], *(b.shape[-1:] if b.ndim > 1 else ())), a.dtype)


def matmul_into(kernel, a, b, out):
    return out


def dot(kernel, a, b):
    return ndarray((), a.dtype)


def outer(kernel, a, b):
    return ndarray((a.size, b.size), a.dtype)


def addmm(kernel, bias, a, b):
    return matmul(kernel, a, b)
