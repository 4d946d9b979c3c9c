"""Systems with triangular matrices, over stacks. NumPy has no function of its own for them."""

import math

import numpy as np

from cygrad._kernels import blocks
from cygrad._kernels.arrays import dense
from cygrad._kernels.blas import matmul
from cygrad._kernels.by_numpy import silent
from cygrad._kernels.copying import contiguous
from cygrad._kernels.dispatch import dispatching
from cygrad._kernels.rows import substitute_back
from cygrad._kernels.stacks import over_stacks

BLOCK = 32  # rows that are solved together


@over_stacks(2, 2)
def solve_triangular(a, b, upper, unit, is_own=False):
    """X with A X = B, where only the `upper` or lower triangle of A is read, or without its diagonal if `unit`.

    A zero on the diagonal gives infinities and nan, as the division does. Stacks broadcast. X takes the memory of B if
    that `is_own`. By blocks of columns, and of rows, each after those that it depends on.
    """
    n = a.shape[-1]
    stack, kind = stack_of(a, b), a.dtype
    if b.dtype != kind:
        kind = np.result_type(kind, b.dtype)
        a, b = a.astype(kind, copy=False), b.astype(kind, copy=False)
    shape = (*stack, *b.shape[-2:])
    if n <= BLOCK and type(a) is type(b) is np.ndarray and 0 < math.prod(shape) <= blocks.SIZE:
        return dense(solve_few(a, b, upper, unit))
    x = b if is_own and b.shape == shape and isinstance(b, np.ndarray) else np.empty(shape, kind, like=a)
    width = x.shape[-1]
    step = max(1, blocks.SIZE // max(1, math.prod(stack) * min(n, BLOCK))) if isinstance(x, np.ndarray) else width
    for start in range(0, width, max(1, step)):
        columns = (..., slice(start, start + step))
        solve_columns(a, b[columns], x[columns], upper, unit)
    return x


def stack_of(a, b):
    """The shape of two stacks of matrices together."""
    stack = a.shape[:-2]
    return stack if b.shape[:-2] == stack else np.broadcast_shapes(stack, b.shape[:-2])


@silent
def solve_columns(a, b, x, upper, unit):
    """The same, written into `x`, which may be `b`."""
    n = a.shape[-1]
    starts = range(0, n, BLOCK)
    for start in reversed(starts) if upper else starts:
        rows = slice(start, min(start + BLOCK, n))
        known = slice(rows.stop, n) if upper else slice(0, start)
        rest = b[..., rows, :]
        if known.start < known.stop:
            rest = rest - matmul(a[..., rows, known], x[..., known, :])
        x[..., rows, :] = solve_block(a[..., rows, rows], rest, upper, unit)


def solve_block(a, b, upper, unit):
    """The same for few rows: one after the other, from the last of an upper triangle up."""
    if not upper:
        a, b = a[..., ::-1, ::-1], b[..., ::-1, :]
    stack = stack_of(a, b)
    n, width = b.shape[-2:]
    x, triangles = stacked(b, stack, True), stacked(a, stack, unit)
    if unit:
        np.einsum("...ii->...i", triangles)[...] = 1
    if not substitute_back(triangles, x):
        solve_rows(triangles, x)
    x = x.reshape(*stack, n, width)
    return x if upper else x[..., ::-1, :]


def stacked(a, stack, is_changed):
    """Matrices that broadcast to a stack, dense, as a stack of one dimension; a copy, if that is to be changed."""
    if a.shape[:-2] != stack:
        a = np.broadcast_to(a, (*stack, *a.shape[-2:]))
    return (contiguous(a) if is_changed else dense(a)).reshape(math.prod(stack), *a.shape[-2:])


def solve_rows(a, x):
    for i in range(a.shape[-1] - 1, -1, -1):
        x[:, i] = (x[:, i] - (a[:, i, None, i + 1 :] @ x[:, i + 1 :])[:, 0]) / a[:, i, i, None]


solve_few = silent(solve_block)
dispatching(globals(), "solve_block")
