"""LU factorization with partial pivoting, for batches of matrices, in LAPACK's format.

If LAPACK's functions are unavailable, the elimination is done here.
"""

import math

import numpy as np

import cygrad._kernels.cpu.base.loop_table as loop_table
from cygrad._kernels.cpu.base.arrays import cast, private
from cygrad._kernels.cpu.base.matmul import has_normal_diagonal, matmul
from cygrad._kernels.cpu.base.stack_chunks import over_stacks
from cygrad._kernels.cpu.linalg.lapack import (
    as_int32,
    as_integers,
    count_of,
    integers,
    laid_by_columns,
    routine,
    spread,
)
from cygrad._kernels.cpu.linalg.triangular import has_normal_diagonals, solve_triangular, stack_of
from cygrad._kernels.cpu.shape.diagonals import tril, triu
from cygrad._kernels.device.cupy_library import is_meta
from cygrad._kernels.device.dispatch import dispatching
from cygrad._kernels.tape.calls import noted

INT64 = np.dtype(np.int64).num
BLOCK = 32  # columns that are eliminated before the rest is updated


@over_stacks(2)
def lu_factor(a):
    """Return (LU, pivots, info) for A of shape (..., m, n): L without its unit diagonal and U in one matrix.

    pivots, of shape (..., min(m, n)), holds the 1-based index of the row that each row was swapped with. info, of shape
    (...), is the 1-based index of the first zero on the diagonal of U, or 0.
    """
    lu = laid_by_columns(a)
    m, n = lu.shape[-2:]
    k = min(m, n)
    getrf = routine("getrf2", a) and routine("getrf", a)
    if getrf is not None:
        rows, failed = integers((*lu.shape[:-2], k)), integers(lu.shape[:-2])
        if lu.size:
            getrf(count_of(lu.shape), m, n, lu, m, rows, failed)
            if not has_normal_diagonal(lu, False):  # which getrf2 handles correctly
                lu, failed = laid_by_columns(a), integers(lu.shape[:-2])
                routine("getrf2", a)(count_of(lu.shape), m, n, lu, m, rows, failed)
        return lu, as_int32(rows), as_int32(failed)
    pivots = np.empty((*lu.shape[:-2], k), np.int32)
    info = np.zeros(lu.shape[:-2], np.int32)
    if lu.size:
        stack = lu.reshape(-1, m, n)
        with np.errstate(all="ignore"):
            for start in range(0, k, BLOCK):
                stop = min(start + BLOCK, k)
                eliminate(stack, start, stop, pivots.reshape(-1, k), info.reshape(-1))
                update(stack, start, stop)
    return lu, pivots, info


def eliminate(lu, start, stop, pivots, info):
    """Find the pivots of these columns, swap rows, and eliminate within the columns."""
    number = np.arange(len(lu))
    for j in range(start, stop):
        pivot = j + magnitude(lu[:, j:, j]).argmax(-1)
        pivots[:, j] = pivot + 1
        exchanged = lu[number, pivot]
        lu[number, pivot] = lu[:, j]
        lu[:, j] = exchanged
        diagonal = lu[:, j, j]
        zero = diagonal == 0
        info[zero & (info == 0)] = j + 1
        lu[:, j + 1 :, j] /= np.where(zero, 1, diagonal)[:, None]
        lu[:, j + 1 :, j + 1 : stop] -= lu[:, j + 1 :, j, None] * lu[:, j, None, j + 1 : stop]


def magnitude(column):
    """The size of numbers as measured by LAPACK: for complex numbers |real| + |imag|."""
    return np.abs(column.real) + np.abs(column.imag) if column.dtype.kind == "c" else np.abs(column)


def update(lu, start, stop):
    """Eliminate in the columns to the right."""
    if stop < lu.shape[2]:
        done = slice(start, stop)
        lu[:, done, stop:] = solve_triangular(lu[:, done, done], lu[:, done, stop:], False, True)
        lu[:, stop:, stop:] -= lu[:, stop:, done] @ lu[:, done, stop:]


def order_of_rows(pivots, m):
    """The row permutation (..., m) described by the pivots: row i of L U is row order[i] of A."""
    stack = pivots.reshape(math.prod(pivots.shape[:-1]), pivots.shape[-1]).astype(np.intp) - 1
    order = np.broadcast_to(np.arange(m), (len(stack), m)).copy()
    number = np.arange(len(stack))
    for j in range(stack.shape[1]):
        exchanged = order[number, stack[:, j]]
        order[number, stack[:, j]] = order[:, j]
        order[:, j] = exchanged
    return order.reshape(*pivots.shape[:-1], m)


def are_rows(pivots, m):
    """Whether all pivots are valid row numbers."""
    if is_meta(pivots):
        return True
    outside = loop_table.outside(cast(pivots, INT64) - 1, m) if type(pivots) is np.ndarray else None
    if outside is None:
        return not pivots.size or (pivots.min() >= 1 and pivots.max() <= m)
    return not outside


@noted
@over_stacks(2)
def factors(a):
    """Return P, L and U."""
    lu, pivots, _ = lu_factor(a)
    return permutation(pivots, a.shape[-2], a.dtype), *triangles(lu)


@noted
@over_stacks(2)
def triangles(lu):
    """Return L and U."""
    k = min(lu.shape[-2:])
    lower, upper = tril(lu[..., :, :k], -1), triu(lu[..., :k, :], 0)
    if lower.dtype != lu.dtype:  # CuPy computes those of bfloat16 in float32
        lower, upper = lower.astype(lu.dtype), upper.astype(lu.dtype)
    set_diagonal(lower, k)
    return lower, upper


def set_diagonal(a, k):
    """Set the diagonal of the first k rows of dense matrices with k columns to ones."""
    a.reshape(count_of(a.shape), a.shape[-2] * k)[:, : k * k : k + 1] = 1


@over_stacks(1)
def permutation(pivots, m, dtype):
    """The matrices P with A = P L U."""
    *stack, k = pivots.shape
    pivots = private(pivots)
    p = np.zeros((*stack, m, m), dtype)
    laswp = routine("laswp", p)
    if laswp is None or not are_rows(pivots, m):
        return np.eye(m, dtype=dtype)[np.argsort(order_of_rows(pivots, m), -1)]
    set_diagonal(p, m)
    if p.size:  # laswp swaps rows of column-major matrices: this yields P in row-major order
        laswp(count_of(p.shape), m, p, m, 1, k, as_integers(pivots), 1)
    return p


@noted
@over_stacks(2, 1, 2)
def lu_solve(lu, pivots, b, left=True, turned=False):
    """Solve A X = B, or X A = B if not `left`, from the factors of A, or of A^H if `turned`; batches broadcast.

    If LAPACK computes X, it is column-major, or row-major if not `left`.
    """
    getrs, pivots = routine("getrs", lu, b), private(pivots)
    if getrs is None or not (are_rows(pivots, lu.shape[-1]) and has_normal_diagonals(lu)):
        p = permutation(pivots, lu.shape[-1], lu.dtype)
        if left:
            return solve_factored(lu, p, b, turned)
        return solve_factored(lu, p, b.swapaxes(-1, -2).conj(), not turned).swapaxes(-1, -2).conj()
    b = b if left else b.swapaxes(-1, -2)
    n, width = b.shape[-2:]
    x = laid_by_columns(b, (*stack_of(lu, b), n, width))
    if x.size:
        stack, rows = x.shape[:-2], as_integers(pivots)
        if lu.shape[:-2] != stack:
            rows = (rows,) if lu.ndim == 2 else np.broadcast_to(rows, (*stack, n)).copy()
        conjugates = turned and not left and x.dtype.kind == "c"  # LAPACK has no option for the transpose of A^H
        how = ("C" if turned else "N") if left else ("N" if turned else "T")
        if conjugates:
            np.conjugate(x, out=x)
        getrs(count_of(x.shape), how, n, width, spread(lu, stack), n, rows, x, n, integers(stack))
        if conjugates:
            np.conjugate(x, out=x)
    return x if left else x.swapaxes(-1, -2)


@np.errstate(all="ignore")
def solve_factored(lu, p, b, turned):
    """A^-1 B, or A^-H B if `turned`, by triangular solves."""
    if turned:
        lu = lu.swapaxes(-1, -2).conj()
        return matmul(p, solve_triangular(lu, solve_triangular(lu, b, False, False), True, True))
    return solve_triangular(lu, solve_triangular(lu, matmul(p.swapaxes(-1, -2), b), False, True), True, False)


dispatching(globals(), "lu_factor order_of_rows permutation")
