"""Batched triangular solves, for which NumPy has no function."""

import math

import numpy as np

from cygrad._kernels.cpu.base import chunks
from cygrad._kernels.cpu.base.arrays import dense
from cygrad._kernels.cpu.base.copying import contiguous
from cygrad._kernels.cpu.base.matmul import has_normal_diagonal, matmul
from cygrad._kernels.cpu.base.numpy_fallback import silent
from cygrad._kernels.cpu.base.stack_chunks import over_stacks
from cygrad._kernels.cpu.linalg.lapack import count_of, laid_by_columns, routine, spread
from cygrad._kernels.device.cupy_library import is_meta
from cygrad._kernels.device.dispatch import dispatching
from cygrad._kernels.tape.calls import noted

BLOCK = 32  # rows solved at a time
ONE = {code: (np.ones(1, code),) for code in "fdFD"}


@noted
@over_stacks(2, 2)
def solve_triangular(a, b, upper, unit, is_own=False, by_rows=False):
    """Solve A X = B, reading only the `upper` or lower triangle of A, without its diagonal if `unit`.

    A zero on the diagonal gives infinities and NaN, like the division. Batches broadcast. X reuses the memory of B if
    `is_own`; else, if BLAS computes it, it is column-major, or row-major with `by_rows`. Without BLAS, works by chunks
    of columns, and by blocks of rows, each after those it depends on.
    """
    n = a.shape[-1]
    stack, kind = stack_of(a, b), a.dtype
    if b.dtype != kind:
        kind = np.result_type(kind, b.dtype)
        a, b = a.astype(kind, copy=False), b.astype(kind, copy=False)
    shape = (*stack, *b.shape[-2:])
    trsm = routine("trsm", a, b)
    if trsm is not None and (unit or has_normal_diagonals(a)):
        return solve_by_blas(trsm, a, b, shape, upper, unit, is_own, by_rows)
    x = b if is_own and b.shape == shape and isinstance(b, np.ndarray) else np.empty(shape, kind, like=a)
    width = x.shape[-1]
    step = max(1, chunks.SIZE // max(1, math.prod(stack) * min(n, BLOCK))) if isinstance(x, np.ndarray) else width
    for start in range(0, width, max(1, step)):
        columns = (..., slice(start, start + step))
        solve_columns(a, b[columns], x[columns], upper, unit)
    return laid_by_columns(x) if is_meta(x) and not by_rows else x


def has_normal_diagonals(a):
    """Like `has_normal_diagonal`, also allowing zeros."""
    lies_close = a.ndim == 2 or a.flags.c_contiguous or a.swapaxes(-1, -2).flags.c_contiguous
    return has_normal_diagonal(dense(a) if not lies_close or not a.flags.aligned else a, True)


def solve_by_blas(trsm, a, b, shape, upper, unit, is_own, by_rows):
    """`solve_triangular` by BLAS, which takes A and X in column-major order, or transposed."""
    x = None
    if is_own and b.shape == shape:
        by_rows = b.flags.c_contiguous
        x = b if by_rows or b.swapaxes(-1, -2).flags.c_contiguous else None
    if x is None and by_rows:
        x = laid_by_columns(b.swapaxes(-1, -2), (*shape[:-2], shape[-1], shape[-2])).swapaxes(-1, -2)
    elif x is None:
        x = laid_by_columns(b, shape)
    if not x.size:
        return x
    n, width = shape[-2:]
    turned = a.flags.c_contiguous
    if a.ndim == len(shape) == 2:  # like `spread`
        a = dense(a if turned else a.T)
    else:
        a = spread(a.swapaxes(-1, -2) if turned else a, shape[:-2])
    how = "RL"[not by_rows], "LU"[upper != turned], "NT"[turned != by_rows], "NU"[unit]
    sizes = (width, n) if by_rows else (n, width)
    trsm(count_of(shape), *how, *sizes, ONE[x.dtype.char], a, n, x, sizes[0])
    return x


def stack_of(a, b):
    """The common batch shape of two batches of matrices."""
    stack = a.shape[:-2]
    return stack if b.shape[:-2] == stack else np.broadcast_shapes(stack, b.shape[:-2])


@silent
def solve_columns(a, b, x, upper, unit):
    """`solve_triangular` without BLAS, written to `x`, which may be `b`."""
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
    """Solve for few rows: one after the other, from the last of an upper triangle up."""
    if not upper:
        a, b = a[..., ::-1, ::-1], b[..., ::-1, :]
    stack = stack_of(a, b)
    n, width = b.shape[-2:]
    x, triangles = stacked(b, stack, True), stacked(a, stack, unit)
    if unit:
        np.einsum("...ii->...i", triangles)[...] = 1
    solve_rows(triangles, x)
    x = x.reshape(*stack, n, width)
    return x if upper else x[..., ::-1, :]


def stacked(a, stack, is_changed):
    """Broadcast matrices to a batch and flatten it to one dimension, dense; a copy if `is_changed`."""
    if a.shape[:-2] != stack:
        a = np.broadcast_to(a, (*stack, *a.shape[-2:]))
    return (contiguous(a) if is_changed else dense(a)).reshape(math.prod(stack), *a.shape[-2:])


def solve_rows(a, x):
    for i in range(a.shape[-1] - 1, -1, -1):
        x[:, i] = (x[:, i] - (a[:, i, None, i + 1 :] @ x[:, i + 1 :])[:, 0]) / a[:, i, i, None]


dispatching(globals(), "solve_block")
