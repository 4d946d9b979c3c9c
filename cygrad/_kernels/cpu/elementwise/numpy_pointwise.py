"""Elementwise functions by NumPy's own, with adjusted types, shapes, warnings or errors."""

import math

import numpy as np

from cygrad._kernels.cpu.base import chunks
from cygrad._kernels.cpu.base.elementary import EXP2, LOG10
from cygrad._kernels.cpu.base.elementwise import where as select
from cygrad._kernels.cpu.base.numpy_fallback import silent
from cygrad._kernels.cpu.elementwise.fused_loops import fused
from cygrad._kernels.device.cupy_library import as_array, is_array

_IS_LOG10_EXACT = bool(LOG10(np.array([100], np.float32)) == 2)


@silent
def exp2(a):
    """2 to the power a; NumPy's function does not support complex numbers."""
    if type(a) is np.ndarray and a.dtype.kind == "f":
        return EXP2(a)
    return as_array(np.exp(a * math.log(2)) if a.dtype.kind == "c" else np.exp2(a))


@silent
def ldexp(x, exponent):
    """x * 2**exponent, rounded only once if the exponent is an integer."""
    if x.dtype.kind != "f" or exponent.dtype.kind not in "iu":
        return x * exp2(exponent).astype(exponent.dtype if exponent.dtype.kind in "fc" else x.dtype, copy=False)
    if is_array(x):
        return np.ldexp(x, exponent)
    if max(x.size, exponent.size) <= chunks.SIZE:
        return _by_whole_power(x, exponent)
    return chunks.in_blocks(_by_whole_power, (x, exponent))


def _by_whole_power(x, exponent):
    found = fused("ldexp", x, exponent.astype(x.dtype))
    return as_array(np.ldexp(x, exponent.astype(np.int64))) if found is None else found


@silent
def log10(a):
    """Base-10 logarithm. NumPy's loop for float32 may return 2.0000002 for 100; then we compute in double precision."""
    if a.dtype == np.float32 and not _IS_LOG10_EXACT:
        return np.log10(a, out=np.empty_like(a), dtype=np.float64, casting="same_kind")
    return LOG10(a) if type(a) is np.ndarray and a.dtype.kind == "f" else as_array(np.log10(a))


def where(condition, a, b):
    """Elements of `a` where `condition` holds, else of `b`. All broadcast; `a` and `b` have one type."""
    try:
        return select(as_array(condition), as_array(a), as_array(b))
    except ValueError:
        raise RuntimeError(broadcast_failure(condition.shape, a.shape, b.shape)) from None


@silent
def isclose(a, b, rtol, atol, equal_nan):
    """|a - b| <= atol + rtol * |b|, or both equal; also for integers."""
    if a.dtype.kind in "biu":
        a, b = a.astype(np.float64), b.astype(np.float64)
    try:
        a, b = np.broadcast_arrays(a, b)
    except ValueError:
        raise RuntimeError(broadcast_failure(a.shape, b.shape)) from None
    distance = np.abs(a - b)
    close = (a == b) | (np.isfinite(distance) & (distance <= atol + np.abs(rtol * b)))
    if equal_nan:
        close |= np.isnan(a) & np.isnan(b)
    return as_array(close)


def broadcast_failure(*shapes):
    """The error message for shapes that do not broadcast, in PyTorch's words."""
    joined: tuple[int, ...] = ()
    for shape in shapes:
        ndim = max(len(joined), len(shape))
        left = (1,) * (ndim - len(joined)) + joined
        right = (1,) * (ndim - len(shape)) + shape
        for dim in reversed(range(ndim)):
            if left[dim] != right[dim] and left[dim] != 1 and right[dim] != 1:
                return (
                    f"The size of tensor a ({left[dim]}) must match the size of tensor b ({right[dim]}) "
                    f"at non-singleton dimension {dim}\n  the operands have shapes {' and '.join(map(str, shapes))}: "
                    "counted from the last dimension, sizes must be equal, or one of them 1"
                )
        joined = tuple(n if m == 1 else m for m, n in zip(left, right))
    return f"The shapes {', '.join(str(list(shape)) for shape in shapes)} do not broadcast"
