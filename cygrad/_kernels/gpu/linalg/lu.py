"""Blocked LU factorization with partial pivoting on GPUs; takes the arguments of `_kernels/cpu/linalg/lu.py`."""

import math

import numpy as np

from cygrad._kernels.cpu.linalg.lu import update
from cygrad._kernels.device.cupy_library import cupy
from cygrad._kernels.gpu.launch import matrix_program

_PANEL = 32  # columns


def lu_factor(a):
    """Return (LU, pivots, info) without synchronizing."""
    lu = cupy().array(a, order="C")
    m, n = lu.shape[-2:]
    count, k = math.prod(lu.shape[:-2]), min(m, n)
    pivots = cupy().empty((count, k), np.int32)
    info = cupy().zeros(count, np.int32)
    if lu.size:
        stack = lu.reshape(count, m, n)
        for start in range(0, k, _PANEL):
            stop = min(start + _PANEL, k)
            matrix_program.lu_panel(stack, pivots, info, start, stop)
            update(stack, start, stop)
    return lu, pivots.reshape(*lu.shape[:-2], k), info.reshape(lu.shape[:-2])


def order_of_rows(pivots, m):
    """Return the permutation of the rows, shape (..., m), that the pivots describe."""
    stack = pivots.reshape(math.prod(pivots.shape[:-1]), pivots.shape[-1])
    return matrix_program.order_of_rows(stack, m).reshape(*pivots.shape[:-1], m)


def permutation(pivots, m, dtype):
    """Return the matrices P with A = P L U."""
    rows = cupy().arange(m)[:, None]
    return (order_of_rows(pivots, m)[..., None, :] == rows).astype(dtype)
