"""LU factors with partial pivoting, over stacks of matrices, in LAPACK's format.

NumPy does not give them out: SciPy does, or the elimination is done here.
"""

import math

import numpy as np

from cygrad._kernels.dispatch import dispatching
from cygrad._kernels.gpu.library import module_of
from cygrad._kernels.lapack import columns, routine
from cygrad._kernels.stacks import over_stacks
from cygrad._kernels.triangular import solve_triangular

BLOCK = 32  # columns that are eliminated before the rest is updated
ONE_BY_ONE = 16  # rows from which on matrices are factored one after the other and not all at once


@over_stacks(2)
def lu_factor(a):
    """(LU, pivots, info): L without its diagonal of ones and U in one matrix, for A of shape (..., m, n).

    pivots, of shape (..., min(m, n)), numbers from 1 the row that was exchanged with each. info, of shape (...), is
    the number from 1 of the first zero on the diagonal of U, or 0.
    """
    lu = columns(a.shape, a.dtype)
    lu[...] = a
    m, n = lu.shape[-2:]
    k = min(m, n)
    pivots = np.empty((*lu.shape[:-2], k), np.int32)
    info = np.zeros(lu.shape[:-2], np.int32)
    getrf = routine("getrf", a.dtype, a.size) if k >= ONE_BY_ONE else None
    if getrf is not None:
        for i in np.ndindex(lu.shape[:-2]):
            found, rows, info[i] = getrf(lu[i], overwrite_a=True)
            pivots[i] = rows + 1
            if not np.may_share_memory(found, lu):
                lu[i] = found
    elif lu.size:
        stack = lu.reshape(-1, m, n)
        with np.errstate(all="ignore"):
            for start in range(0, k, BLOCK):
                stop = min(start + BLOCK, k)
                eliminate(stack, start, stop, pivots.reshape(-1, k), info.reshape(-1))
                update(stack, start, stop)
    return lu, pivots, info


def eliminate(lu, start, stop, pivots, info):
    """Find the pivots of these columns, exchange rows, and eliminate within the columns."""
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
    """As LAPACK measures it: of a complex number the sum of both parts' sizes."""
    return np.abs(column.real) + np.abs(column.imag) if column.dtype.kind == "c" else np.abs(column)


def update(lu, start, stop):
    """Eliminate in the columns to the right."""
    if stop < lu.shape[2]:
        done = slice(start, stop)
        lu[:, done, stop:] = solve_triangular(lu[:, done, done], lu[:, done, stop:], False, True)
        lu[:, stop:, stop:] -= lu[:, stop:, done] @ lu[:, done, stop:]


def order_of_rows(pivots, m):
    """The permutation, of shape (..., m), that the pivots make of the rows: row i of L U is row order[i] of A."""
    stack = pivots.reshape(math.prod(pivots.shape[:-1]), pivots.shape[-1]).astype(np.intp) - 1
    order = np.broadcast_to(np.arange(m), (len(stack), m)).copy()
    number = np.arange(len(stack))
    for j in range(stack.shape[1]):
        exchanged = order[number, stack[:, j]]
        order[number, stack[:, j]] = order[:, j]
        order[:, j] = exchanged
    return order.reshape(*pivots.shape[:-1], m)


@over_stacks(2)
def factors(a):
    """The arrays P, L, U."""
    lu, pivots, _ = lu_factor(a)
    return permutation(pivots, a.shape[-2], a.dtype), *triangles(lu)


@over_stacks(2)
def triangles(lu):
    """L and U."""
    k = min(lu.shape[-2:])
    lower, upper = np.tril(lu[..., :, :k], -1), np.triu(lu[..., :k, :])
    lower, upper = (a.astype(lu.dtype, copy=False) for a in (lower, upper))  # CuPy's of bfloat16 are float32
    lower += module_of(lu).eye(lower.shape[-2], k, dtype=lu.dtype)
    return lower, upper


@over_stacks(1)
def permutation(pivots, m, dtype):
    """The matrices P with A = P L U."""
    return np.eye(m, dtype=dtype)[np.argsort(order_of_rows(pivots, m), -1)]


dispatching(globals(), "lu_factor order_of_rows permutation")
