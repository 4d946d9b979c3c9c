"""Blocked Cholesky factorization on GPUs; takes the arguments of `_kernels/cpu/linalg/cholesky.py`."""

import math

import numpy as np

from cygrad._kernels.device.cupy_library import cupy
from cygrad._kernels.gpu.launch import matrix_program

_PANEL = 32  # columns


def factor(a, upper):
    """Return (L or U, info) without synchronizing."""
    lower = cupy().tril(a.swapaxes(-1, -2).conj() if upper else a)
    n = a.shape[-1]
    stack = cupy().ascontiguousarray(lower).reshape(math.prod(a.shape[:-2]), n, n)
    info = cupy().zeros(len(stack), np.int32)
    if stack.size:
        for start in range(0, n, _PANEL):
            stop = min(start + _PANEL, n)
            matrix_program.cholesky_panel(stack, info, start, stop)
            if stop < n:
                panel = stack[:, stop:, start:stop]
                stack[:, stop:, stop:] -= panel @ panel.conj().swapaxes(-1, -2)
        stack = cupy().tril(stack)
    found = stack.reshape(a.shape)
    return (found.swapaxes(-1, -2).conj() if upper else found), info.reshape(a.shape[:-2])
