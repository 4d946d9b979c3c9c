"""Products of Householder reflectors H = 1 - tau v v^H, as produced by QR, for batches of matrices.

Vector i has zeros above row i, a one there (not stored), and the rest below the diagonal of column i. The product of k
reflectors is 1 - V T V^H with T = D (1 + triu(V^H V, 1) D)^-1, D = diag(tau): R. Schreiber, C. Van Loan, "A
storage-efficient WY representation for products of Householder transformations" (1989).
"""

import numpy as np

from cygrad._kernels.cpu.base import chunks
from cygrad._kernels.cpu.base.arrays import dense as dense_in_memory
from cygrad._kernels.cpu.base.stack_chunks import over_stacks
from cygrad._kernels.cpu.linalg.lapack import (
    columns,
    count_of,
    in_columns,
    integers,
    laid_by_columns,
    routine,
    workspace,
)
from cygrad._kernels.cpu.linalg.triangular import solve_triangular
from cygrad._kernels.cpu.shape.diagonals import tril
from cygrad._kernels.device.cupy_library import dense, module_of
from cygrad._kernels.tape.calls import noted

TOGETHER = 64  # reflectors that LAPACK applies at a time


@noted
def vectors(a, k, start=0):
    """Rows of V, of shape (..., rows, k), where `a` holds the rows from `start` on."""
    if start >= k:
        return a[..., :, :k]
    v = np.tril(a[..., :, :k], start - 1)
    v += module_of(v).eye(v.shape[-2], k, start, dtype=v.dtype)
    return v


def adjoint(v):
    return v.conj().swapaxes(-1, -2)


def inner(squares, tau):
    """1 + triu(V^H V, 1) D."""
    m = np.triu(squares, 1) * tau[..., None, :]
    m += module_of(m).eye(m.shape[-1], dtype=m.dtype)
    return m


@noted
@over_stacks(2, 1)
def product(a, tau):
    """The first n columns of the product, for A of shape (..., m, n). Column-major if LAPACK computes it."""
    orgqr = None if is_tall(a) else routine("orgqr", a, tau)
    if orgqr is None:
        return _product(a, tau, None)
    q, (m, n) = laid_by_columns(a), a.shape[-2:]
    if q.size:
        work = workspace(n * TOGETHER, q.dtype)
        orgqr(count_of(q.shape), m, n, tau.shape[-1], q, m, dense_in_memory(tau), *work, (integers(1),))
    return q


@noted
@over_stacks(2, 1, 2)
def multiplied(a, tau, c, left, turned):
    """Q C, or C Q unless `left`, column-major, for the square Q of the reflectors, or its adjoint if `turned`.

    None if LAPACK is not available.
    """
    ormqr = routine("ormqr", a, tau, c)
    if ormqr is None:
        return None
    x, (m, n) = laid_by_columns(c), c.shape[-2:]
    if x.size and tau.size:
        how = "RL"[left], ("C" if x.dtype.kind == "c" else "T") if turned else "N"
        work = workspace(TOGETHER * (max(m, n) + TOGETHER + 1), x.dtype)
        count, k, rows = count_of(x.shape), tau.shape[-1], a.shape[-2]
        ormqr(count, *how, m, n, k, in_columns(a), rows, dense_in_memory(tau), x, m, *work, (integers(1),))
    return x


@np.errstate(all="ignore")
def _product(a, tau, out):
    """`product` by chunks of rows; into `out`, which may be `a`, unless it is None."""
    (m, n), k = a.shape[-2:], tau.shape[-1]
    step = max(1, m * chunks.SIZE // a.size if is_tall(a) else m)
    parts = [slice(start, start + step) for start in range(0, max(m, 1), step)]
    squares = 0
    for rows in parts:
        v = vectors(a[..., rows, :], k, rows.start)
        squares = adjoint(v) @ v + squares
    w = solve_triangular(inner(squares, tau), adjoint(vectors(a[..., :n, :], k)), True, True)
    w *= tau[..., :, None]
    for rows in parts:
        found = vectors(a[..., rows, :], k, rows.start) @ w
        np.subtract(module_of(a).eye(*found.shape[-2:], rows.start, dtype=a.dtype), found, out=found)
        if len(parts) == 1:
            return found
        out = np.empty(a.shape, a.dtype) if out is None else out
        out[rows] = found
    return out


# -- QR by the LAPACK functions behind `np.linalg.qr`, whose own overhead exceeds theirs for small matrices --

BLOCK = 32  # columns for which they use memory at a time, as they request


def can_factor(a):
    return routine("geqrf", a) is not None


@noted
def packed_factors(a):
    """R and the reflectors in one column-major matrix, and tau, in double precision."""
    packed = columns(a.shape, "D" if a.dtype.kind == "c" else "d")
    packed[...] = a
    *stack, m, n = a.shape
    tau = np.empty((*stack, min(m, n)), packed.dtype)
    if packed.size:
        work = workspace(n * BLOCK, packed.dtype)
        routine("geqrf", packed)(count_of(a.shape), m, n, packed, m, tau, *work, (integers(1),))
    return packed, tau


@noted
def triangle(packed, k):
    """R, column-major, with k rows."""
    return tril(packed.swapaxes(-1, -2)[..., :k], 0).swapaxes(-1, -2)


@noted
def factors(a, is_complete):
    """Q and R of matrices, computed in double precision."""
    m, n = a.shape[-2:]
    packed, tau = packed_factors(a)
    width = m if is_complete else min(m, n)
    r = triangle(packed, width).astype(a.dtype, copy=False)
    q = packed
    if width != n:
        q = columns((*a.shape[:-1], width), packed.dtype)
        q[..., : min(width, n)] = packed[..., :width]
    if q.size:
        work = workspace(width * BLOCK, q.dtype)
        routine("orgqr", q)(count_of(q.shape), m, width, tau.shape[-1], q, m, tau, *work, (integers(1),))
    return q.astype(a.dtype, copy=False), r


# -- tall matrices --

TALL = 4  # rows per column


def is_tall(a):
    """Whether building Q from the reflectors in chunks takes less memory than LAPACK does."""
    m, n = a.shape[-2:]
    return type(a) is np.ndarray and a.ndim == 2 and a.size > chunks.SIZE and m >= TALL * n


@noted
@np.errstate(all="ignore")
def tall_factors(a):
    """Q and R of a matrix (m, n), computed in double precision.

    Chunks of rows are factored separately, and the stack of their R is factored again: J. Demmel, L. Grigori,
    M. Hoemmen, J. Langou, "Communication-optimal parallel and sequential QR and LU factorizations" (2012).
    """
    m, n = a.shape
    wide = np.result_type(a.dtype, np.float64)
    step = max(chunks.SIZE // n, 4 * TALL * n)
    parts = [slice(start, start + step) for start in range(0, m - n, step)]  # the last has at least n rows
    parts[-1] = slice(parts[-1].start, m)
    q, rs = np.empty(a.shape, a.dtype), np.empty((len(parts), n, n), wide)
    for rows, r in zip(parts, rs):
        q[rows], r[...] = factors(a[rows].astype(wide, copy=False), False)
    qs, r = factors(rs.reshape(-1, n), False)
    qs = qs.reshape(rs.shape)
    signs = _signs_of_reflectors(q[:n].astype(wide) @ qs[0]) if _has_full_rank(r) else None
    if signs is None:
        return _factors_by_lapack(a, q)
    qs *= signs
    for rows, own in zip(parts, qs):
        q[rows] = q[rows] @ own
    return q, (signs[:, None] * r).astype(a.dtype)


def _has_full_rank(r):
    size = abs(r.diagonal())
    return size.min() > len(r) * np.finfo(r.dtype).eps * size.max()


def _signs_of_reflectors(top):
    """The sign that each column of Q would have in a product of reflectors, from its first rows.

    None if some column needs no reflector. G. Ballard et al., "Reconstructing Householder vectors from tall-skinny QR"
    (2015).
    """
    signs = np.empty(len(top), top.real.dtype)
    for j in range(len(top)):
        if abs(top[j, j]) >= 1 - 1e-12:
            return None
        signs[j] = -1 if top[j, j].real >= 0 else 1
        top[j, j] -= signs[j]
        top[j + 1 :, j] /= top[j, j]
        top[j + 1 :, j + 1 :] -= top[j + 1 :, j, None] * top[j, j + 1 :]
    return signs


def _factors_by_lapack(a, q):
    """`tall_factors` with copies of the whole matrix; into `q`."""
    packed, tau = packed_factors(a)
    r = np.triu(packed[: a.shape[1]]).astype(a.dtype)
    return _product(packed, tau, q), r


@noted
@over_stacks(2)
def geqrf(a):
    """R on and above the diagonal, the reflectors below it, and tau."""
    if not a.size:
        return a.copy(), np.zeros((*a.shape[:-2], min(a.shape[-2:])), a.dtype, like=a)
    if can_factor(a):
        packed, tau = packed_factors(a)
        return packed.astype(a.dtype, copy=False), tau.astype(a.dtype, copy=False)
    with np.errstate(all="ignore"):
        packed, tau = np.linalg.qr(a, mode="raw")
    return dense(packed.swapaxes(-1, -2)), tau
