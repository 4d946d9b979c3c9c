"""LDL factorization of symmetric or Hermitian matrices, in the format of LAPACK's `sytrf` for lower triangles.

J. R. Bunch, L. Kaufman, "Some stable methods for calculating inertia and solving symmetric linear systems" (1977):
D has 1x1 and 2x2 blocks. pivots[k] = i > 0: a 1x1 block, for which rows k and i (1-based) were swapped;
pivots[k] = pivots[k + 1] = -i: a 2x2 block, for which rows k + 1 and i were. Swaps do not affect columns of L that were
finished earlier.
"""

import math

import numpy as np

import cygrad._kernels.cpu.base.loop_table as loop_table
from cygrad._kernels.cpu.base.arrays import private
from cygrad._kernels.cpu.base.stack_chunks import over_stacks
from cygrad._kernels.cpu.linalg.lapack import (
    as_int32,
    as_integers,
    count_of,
    integers,
    laid_by_columns,
    routine,
    spread,
    workspace,
)
from cygrad._kernels.cpu.linalg.lu import are_rows
from cygrad._kernels.cpu.linalg.triangular import stack_of
from cygrad._kernels.cpu.shape.diagonals import triu
from cygrad._kernels.device.dispatch import dispatching

ALPHA = (1 + math.sqrt(17)) / 8
TOGETHER = 64  # columns per block of LAPACK's blocked algorithm


@over_stacks(2)
def ldl_factor(a, hermitian):
    """Return (LD, pivots, info): info is the 1-based index of the first zero block of D, or 0."""
    ld = triu(a.swapaxes(-1, -2), 0).swapaxes(-1, -2)  # the lower triangles, column-major
    hermitian = hermitian and a.dtype.kind == "c"
    trf = routine("hetrf" if hermitian else "sytrf", ld)
    if trf is not None:
        n, rows, failed = a.shape[-1], integers(a.shape[:-1]), integers(a.shape[:-2])
        if ld.size:
            trf(count_of(ld.shape), "L", n, ld, n, rows, *workspace(n * TOGETHER, ld.dtype), failed)
        return ld, as_int32(rows), as_int32(failed)
    pivots = np.empty(a.shape[:-1], np.int32)
    info = np.zeros(a.shape[:-2], np.int32)
    with np.errstate(all="ignore"):
        for i in np.ndindex(a.shape[:-2]):
            info[i] = factor(ld[i], pivots[i], hermitian)
    return triu(ld.swapaxes(-1, -2), 0).swapaxes(-1, -2), pivots, info


def size(x):
    """The size of a number as measured by LAPACK: for complex numbers |real| + |imag|."""
    return abs(x.real) + abs(x.imag)


def factor(a, pivots, hermitian):
    """Factor one matrix in place; return info."""
    n, k, info = len(a), 0, 0
    while k < n:
        if hermitian:
            a[k, k] = a[k, k].real
        row, width = choose(a, k)
        if row is None:
            info = info or k + 1
            pivots[k] = k + 1
            k += 1
            continue
        last = k + width - 1
        if row != last:
            exchange(a, k, last, row, hermitian)
        eliminate(a, k, width, hermitian)
        pivots[k : k + width] = row + 1 if width == 1 else -(row + 1)
        k += width
    return info


def choose(a, k):
    """Return (row to swap with, width of the block); the row is None for a column of zeros."""
    own, below = size(a[k, k]), size(a[k + 1 :, k])
    largest = below.max() if below.size else 0.0
    if max(own, largest) == 0 and not np.isnan(largest):
        return None, 1
    if not below.size or own >= ALPHA * largest:
        return k, 1
    i = k + 1 + int(below.argmax())
    in_row = max(size(a[i, k:i]).max(), size(a[i + 1 :, i]).max() if i + 1 < len(a) else 0.0)
    if own >= ALPHA * largest * (largest / in_row):
        return k, 1
    return (i, 1) if size(a[i, i]) >= ALPHA * in_row else (i, 2)


def exchange(a, k, p, q, hermitian):
    """Swap rows and columns p < q of the remaining matrix from column k on, whose lower triangle is stored."""
    conjugate = np.conj if hermitian else np.asarray
    a[q + 1 :, [p, q]] = a[q + 1 :, [q, p]]
    between = a[p + 1 : q, p].copy()
    a[p + 1 : q, p] = conjugate(a[q, p + 1 : q])
    a[q, p + 1 : q] = conjugate(between)
    a[q, p] = conjugate(a[q, p])
    a[p, p], a[q, q] = a[q, q], a[p, p]
    if p > k:
        a[p, k], a[q, k] = a[q, k], a[p, k]


def block(a, k, width, hermitian):
    """A block of D as a full matrix."""
    d = a[k : k + width, k : k + width].copy()
    if width == 2:
        d[0, 1] = np.conj(d[1, 0]) if hermitian else d[1, 0]
    return d


def eliminate(a, k, width, hermitian):
    columns = a[k + width :, k : k + width].copy()
    if not len(columns):
        return
    lower = divided(columns, block(a, k, width, hermitian))
    a[k + width :, k + width :] -= lower @ (columns.conj() if hermitian else columns).T
    a[k + width :, k : k + width] = lower


def divided(columns, d):
    """columns D^-1 for a 1x1 or 2x2 block D."""
    if len(d) == 1:
        return columns / d[0, 0]
    determinant = d[0, 0] * d[1, 1] - d[0, 1] * d[1, 0]
    inverse = np.array([[d[1, 1], -d[0, 1]], [-d[1, 0], d[0, 0]]]) / determinant
    return columns @ inverse


@over_stacks(2, 1, 2)
def ldl_solve(ld, pivots, b, hermitian):
    """Compute A^-1 B from the factors of A; batches broadcast."""
    stack, pivots = stack_of(ld, b), private(pivots)
    if not are_rows(abs(pivots.astype(np.int64)), ld.shape[-1]):
        raise RuntimeError(f"pivots must be between 1 and {ld.shape[-1]}, or between -1 and {-ld.shape[-1]}")
    x = laid_by_columns(b, (*stack, *b.shape[-2:]))
    trs = routine("hetrs" if hermitian and ld.dtype.kind == "c" else "sytrs", ld, x)
    if trs is not None:
        n, width = x.shape[-2:]
        rows = as_integers(pivots if pivots.shape[:-1] == stack else np.broadcast_to(pivots, (*stack, n)))
        if not x.size:
            return x
        if has_pairs(rows):
            trs(count_of(x.shape), "L", n, width, spread(ld, stack), n, rows, x, n, integers(stack))
            return x
    ld = np.broadcast_to(ld, (*stack, *ld.shape[-2:]))
    pivots = np.broadcast_to(pivots, (*stack, pivots.shape[-1]))
    with np.errstate(all="ignore"):
        for i in np.ndindex(stack):
            solve(ld[i], pivots[i], x[i], hermitian and ld.dtype.kind == "c")
    return x


def has_pairs(pivots):
    """Whether both entries of each 2x2 block are negative, as LAPACK assumes."""
    if loop_table.outside(pivots, 1 << 31) is False:  # none is negative
        return True
    second = np.add.accumulate(pivots < 0, -1, dtype=np.intp) & 1
    return not (second[..., -1].any() or (second * (pivots > 0)).any())


def solve(a, pivots, x, hermitian):
    """Solve for one matrix, in place."""
    n, k, starts = len(a), 0, []
    while k < n:
        width = 1 if pivots[k] > 0 or k + 1 == n else 2
        starts.append((k, width))
        end = k + width
        swap(x, end - 1, abs(pivots[k]) - 1)
        x[end:] -= a[end:, k:end] @ x[k:end]
        x[k:end] = divided(x[k:end].T, block(a, k, width, hermitian).T).T
        k = end
    for k, width in reversed(starts):
        end = k + width
        lower = a[end:, k:end]
        x[k:end] -= (lower.conj() if hermitian else lower).T @ x[end:]
        swap(x, end - 1, abs(pivots[k]) - 1)


def swap(x, i, j):
    if i != j:
        x[[i, j]] = x[[j, i]]


dispatching(globals(), "ldl_factor ldl_solve")
