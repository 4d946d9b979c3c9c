"""Batched least squares, by LAPACK's orthogonal factorizations or by singular values."""

import numpy as np

from cygrad._kernels.cpu.base.stack_chunks import over_stacks
from cygrad._kernels.cpu.linalg.lapack import columns, count_of, integers, laid_by_columns, routine, workspace
from cygrad._kernels.cpu.linalg.triangular import stack_of
from cygrad._kernels.tape.calls import noted

TOGETHER = 64  # columns per block of LAPACK's blocked algorithm


@over_stacks(2, 2)
def lstsq(a, b, rcond, with_values):
    """Return (X, rank, S, info); X is the shortest of all that minimize |A X - B|.

    Singular values up to rcond times the largest count as 0; with None, A is assumed to have full rank, and info is
    nonzero if it does not. S is empty unless `with_values`.
    """
    stack = stack_of(a, b)
    solver = None if with_values else routine("gels" if rcond is None else "gelsy", a, b)
    if solver is not None and a.size and b.size:
        return by_factors(solver, a, b, stack, rcond)
    a = np.broadcast_to(a, (*stack, *a.shape[-2:]))
    return by_values(a, b, rcond, with_values)


def by_factors(solver, a, b, stack, rcond):
    """`lstsq` by LAPACK's functions; X is column-major, a slice of longer columns if A has more rows."""
    (m, n), width = a.shape[-2:], b.shape[-1]
    rows, few = max(m, n), min(m, n)
    a, x = laid_by_columns(a, (*stack, m, n)), laid_within(b, rows, stack)
    ranks, info, count = np.full(stack, few), integers(stack), count_of(a.shape)
    work = workspace(few + rows + TOGETHER * (n + 1 + max(few, width)), a.dtype.char)
    if rcond is None:
        solver(count, "N", m, n, width, a, m, x, rows, *work, info)
    else:
        ranks, smallest = integers(stack), (np.full(1, rcond, a.real.dtype),)
        more = [(np.empty(2 * n, a.real.dtype),)] if a.dtype.kind == "c" else []
        solver(count, m, n, width, a, m, x, rows, integers((*stack, n)), smallest, ranks, *work, *more, info)
    return x[..., :n, :], ranks, np.empty((*stack, 0), a.real.dtype), info


def laid_within(b, rows, stack):
    """Columns with `rows` rows: B first, then zeros."""
    own, width = b.shape[-2:]
    x = columns((*stack, rows, width), b.dtype.char)
    x[..., :own, :], x[..., own:, :] = b, 0
    return x


@np.errstate(all="ignore")
def by_values(a, b, rcond, with_values):
    """`lstsq` by singular values."""
    u, s, vh = np.linalg.svd(a, full_matrices=False)
    counts = np.ones_like(s, dtype=bool)
    if rcond is not None and s.shape[-1]:
        counts = s > rcond * s.max(-1, keepdims=True)
    inverse = np.where(counts, 1 / s, 0).astype(s.dtype)
    x = adjoint(vh) @ (inverse[..., None] * (adjoint(u) @ b))
    if type(x) is np.ndarray:  # in PyTorch, X is stored in the memory of B
        x = laid_within(x, max(a.shape[-2:]), a.shape[:-2])[..., : a.shape[-1], :]
    return x, counts.sum(-1), s if with_values else s[..., :0], np.zeros(a.shape[:-2], np.int32, like=a)


def adjoint(a):
    return a.conj().swapaxes(-1, -2)


@noted
@over_stacks(2, 2, 2)
@np.errstate(all="ignore")
def residuals(a, b, x):
    """The sum of squares of each column of A X - B."""
    return (np.abs(a @ x - b) ** 2).sum(-2)
