"""SciPy's LAPACK, if it is installed: for factors of large matrices, and of many, that NumPy does not give out."""

from functools import cache

import numpy as np

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
