"""LAPACK access: its functions in the library that NumPy has loaded, and NumPy's batched loops, which call them too."""

import math
from functools import cache, partial
from typing import Any

import numpy as np

from cygrad._kernels.cpu.base.arrays import cast, dense
from cygrad._kernels.cpu.base.copying import contiguous
from cygrad._kernels.cpu.base.matmul import call_lapack, find_lapack
from cygrad._kernels.cpu.base.numpy_fallback import silent

INT32 = np.dtype(np.int32).num
FEW = 1 << 14  # elements; up to this, NumPy copies as fast
loops: Any = getattr(np.linalg, "_umath_linalg", None)  # NumPy's gufuncs behind np.linalg

# -- functions by name --


@cache
def _found(name):
    """Return (address, whether integers have 64 bits), or None."""
    library = getattr(loops, "__file__", None)
    return library and find_lapack(library.encode(), name.encode())


@cache
def _routine(name, code):
    if code not in "fdFD":
        return None
    if code in "FD" and name[:2] == "or":  # for complex types, LAPACK has unitary instead of orthogonal matrices
        name = "un" + name[2:]
    found = _found("sdcz"["fdFD".index(code)] + name)
    return found and partial(call_lapack, found[0])


INTEGER = np.dtype(np.int64 if (_found("dgetrf") or (0, True))[1] else np.int32)  # for pivots and info


def routine(name, *arrays):
    """LAPACK's function for the type of the first array, to be called with (count of matrices, *arguments); or None.

    None also if an array is on a GPU. Arguments that all matrices share are passed in a tuple.
    """
    for array in arrays:
        if type(array) is not np.ndarray:
            return None
    return _routine(name, arrays[0].dtype.char)


def integers(shape):
    """Zeros for pivots or info."""
    return np.zeros(shape, INTEGER)


def as_integers(pivots):
    """Convert pivots to LAPACK's integer type."""
    return dense(cast(pivots, INTEGER.num))


def as_int32(found):
    """Convert pivots or info to PyTorch's integer type."""
    return cast(found, INT32)


def workspace(size, dtype):
    """A workspace shared by all matrices, and its number of elements."""
    return (np.empty(size, dtype),), size


# -- column-major matrices, as in LAPACK --


def columns(shape, dtype):
    """Uninitialized column-major matrices."""
    if len(shape) == 2:
        return np.empty(shape, dtype, "F")
    return np.empty((*shape[:-2], shape[-1], shape[-2]), dtype).swapaxes(-1, -2)


def laid_by_columns(a, shape=None):
    """A column-major copy of matrices, broadcast to `shape` if given."""
    if shape is not None and a.shape != shape:
        a = np.broadcast_to(a, shape)
    turned = a.swapaxes(-1, -2)
    return (turned.copy() if a.size <= FEW else contiguous(turned)).swapaxes(-1, -2)


def in_columns(a):
    """The matrices themselves if they are column-major, else a copy."""
    return dense(a.swapaxes(-1, -2)).swapaxes(-1, -2)


def spread(a, stack):
    """Column-major matrices for systems with a batch of right-hand sides; a single matrix for all is put in a tuple."""
    if a.shape[:-2] == stack:
        return in_columns(a)
    return (in_columns(a),) if a.ndim == 2 else laid_by_columns(a, (*stack, *a.shape[-2:]))


def count_of(shape):
    """The number of matrices."""
    return 1 if len(shape) == 2 else math.prod(shape[:-2])


# -- NumPy's loops --


def _fail(what, flag):
    raise np.linalg.LinAlgError(what)


@partial(silent, invalid="call", call=_fail)
def by_columns(name, kinds, arrays, *shapes):
    """Apply a NumPy loop to batches of matrices; None if there is no such loop.

    Results with a given shape are column-major, so that the loop need not transpose LAPACK's output. `kinds` is the
    signature of the loop in double precision, with x for real or complex; results have the precision of the first
    array. Raises LinAlgError where NumPy's function does.
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
