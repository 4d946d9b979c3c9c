"""Triangular solves on GPUs; takes the arguments of `_kernels/cpu/linalg/triangular.py`."""

import math

from cygrad._kernels.device.cupy_library import cupy
from cygrad._kernels.device.gpu_forms import half_as_float32
from cygrad._kernels.gpu.launch import matrix_program


@half_as_float32
def solve_block(a, b, upper, unit):
    """Solve A X = B for triangles with few rows."""
    stack = cupy().broadcast_shapes(a.shape[:-2], b.shape[:-2]) if a.shape[:-2] != b.shape[:-2] else a.shape[:-2]
    n, width = b.shape[-2:]
    count = math.prod(stack)
    x = cupy().array(cupy().broadcast_to(b, (*stack, n, width)), order="C").reshape(count, n, width)
    triangles = cupy().ascontiguousarray(cupy().broadcast_to(a, (*stack, n, n))).reshape(count, n, n)
    matrix_program.substitute(triangles, x, bool(upper), bool(unit))
    return x.reshape(*stack, n, width)
