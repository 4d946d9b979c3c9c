"""Least squares by singular values, over stacks."""

import numpy as np

from cygrad._kernels.gpu.library import dense
from cygrad._kernels.stacks import over_stacks


@over_stacks(2, 2)
@np.errstate(all="ignore")
def lstsq(a, b, rcond, with_values):
    """(X, rank, S): of all X for which |A X - B| is least the shortest.

    Singular values up to rcond times the largest count as 0; with None all count. S is empty unless wanted.
    """
    stack = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    a = np.broadcast_to(a, (*stack, *a.shape[-2:]))
    u, s, vh = np.linalg.svd(a, full_matrices=False)
    counts = np.ones_like(s, dtype=bool)
    if rcond is not None and s.shape[-1]:
        counts = s > rcond * s.max(-1, keepdims=True)
    inverse = np.where(counts, 1 / s, 0).astype(s.dtype)
    x = adjoint(vh) @ (inverse[..., None] * (adjoint(u) @ b))
    return dense(x), counts.sum(-1), s if with_values else s[..., :0]


def adjoint(a):
    return a.conj().swapaxes(-1, -2)


@over_stacks(2, 2, 2)
@np.errstate(all="ignore")
def residuals(a, b, x):
    """The sum of squares of each column of A X - B."""
    return (np.abs(a @ x - b) ** 2).sum(-2)
