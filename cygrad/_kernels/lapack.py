"""LAPACK: NumPy's loops over stacks, and for factors that it does not give out SciPy's functions, if installed."""

from functools import cache, partial
from typing import Any

import numpy as np

from cygrad._kernels.by_numpy import silent

loops: Any = getattr(np.linalg, "_umath_linalg", None)  # what the functions of np.linalg call
MANY = 4096  # elements from which on matrices are worth the import


@cache
def lapack():
    """SciPy's module of LAPACK functions, or None."""
    try:
        from scipy.linalg import lapack
    except ImportError:
        return None
    return lapack


def routine(name, dtype, size):
    """The function for matrices of this type, if SciPy is there and they have many elements; else None."""
    found = lapack() if size >= MANY else None
    return found and getattr(found, {"f": "s", "d": "d", "F": "c", "D": "z"}[np.dtype(dtype).char] + name)


def columns(shape, dtype):
    """Memory for matrices of which each column is dense, as LAPACK makes them."""
    if len(shape) == 2:
        return np.empty(shape, dtype, "F")
    return np.empty((*shape[:-2], shape[-1], shape[-2]), dtype).swapaxes(-1, -2)


def laid_by_columns(a):
    """A copy of matrices that lies by columns."""
    out = columns(a.shape, a.dtype)
    out[...] = a
    return out


def _fail(what, flag):
    raise np.linalg.LinAlgError(what)


@partial(silent, invalid="call", call=_fail)
def by_columns(name, kinds, arrays, *shapes):
    """What a loop of NumPy's gives of stacks of matrices, or None if there is no such loop.

    Results that have a shape here lie by columns, so that the loop need not turn what LAPACK made. `kinds` is the
    signature of the loop in double precision, with x for real or complex; results are as precise as the first array.
    Raises LinAlgError where NumPy's function does.
    """
    loop = getattr(loops, name, None)
    first = arrays[0]
    if loop is None or type(first) is not np.ndarray:
        return None
    signature = kinds.replace("x", "D" if first.dtype.kind == "c" else "d")
    codes = signature[len(arrays) + 2 :]
    found = loop(
        *arrays, out=tuple([shape and columns(shape, code) for shape, code in zip(shapes, codes)]), signature=signature
    )
    if first.dtype.char in "dD":
        return found
    if len(codes) == 1:
        return found.astype(codes.translate(_SINGLE))
    return tuple([part.astype(code.translate(_SINGLE)) for part, code in zip(found, codes)])


_SINGLE = str.maketrans("dD", "fF")
