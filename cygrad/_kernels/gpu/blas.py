"""Products of matrices on GPUs, by cuBLAS."""

from cygrad._kernels.gpu.library import cupy
from cygrad._kernels.gpu.precision import multiply


def matmul(a, b):
    """a @ b as NumPy defines it."""
    return multiply(cupy().matmul, a, b)


def dot(a, b):
    """The sum of the products of two vectors."""
    return multiply(cupy().dot, a, b)


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
