"""Functions of NumPy's that CuPy has for fewer types."""

from cygrad._kernels.gpu.library import cupy


def logical_not(a):
    """Whether an element is 0."""
    return a == 0 if a.dtype.kind == "c" else cupy().logical_not(a)
