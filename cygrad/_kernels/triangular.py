"""Systems with triangular matrices, over stacks. NumPy has no function of its own for them."""

import math

import numpy as np

from cygrad._kernels.rows import substitute_back

BLOCK = 32  # rows that are solved together


def solve_triangular(a, b, upper, unit):
    """X with A X = B, where only the `upper` or lower triangle of A is read, or without its diagonal if `unit`.

    A zero on the diagonal gives infinities and nan, as the division does. Stacks broadcast.
    """
    a = np.triu(a, int(unit)) if upper else np.tril(a, -int(unit))
    if unit:
        np.einsum("...ii->...i", a)[...] = 1
    with np.errstate(all="ignore"):
        if upper:
            return solve_upper(a, b)
        return np.ascontiguousarray(solve_upper(a[..., ::-1, ::-1], b[..., ::-1, :])[..., ::-1, :])


def solve_upper(a, b):
    """For a clean upper triangle: by blocks from the last rows up."""
    n = a.shape[-1]
    stack = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    x = np.empty((*stack, *b.shape[-2:]), np.result_type(a, b))
    for stop in range(n, 0, -BLOCK):
        start = max(stop - BLOCK, 0)
        rest = b[..., start:stop, :]
        if stop < n:
            rest = rest - a[..., start:stop, stop:] @ x[..., stop:, :]
        x[..., start:stop, :] = solve_block(a[..., start:stop, start:stop], rest)
    return x


def solve_block(a, b):
    """For few rows: one after the other, from the last up."""
    stack = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    kind = np.result_type(a, b)
    n, width = b.shape[-2:]
    x = np.broadcast_to(b, (*stack, n, width)).astype(kind, "C").reshape(math.prod(stack), n, width)
    triangles = np.broadcast_to(a, (*stack, n, n)).astype(kind, "C").reshape(math.prod(stack), n, n)
    if not substitute_back(triangles, x):
        solve_rows(triangles, x)
    return x.reshape(*stack, n, width)


def solve_rows(a, x):
    for i in range(a.shape[-1] - 1, -1, -1):
        x[:, i] = (x[:, i] - (a[:, i, None, i + 1 :] @ x[:, i + 1 :])[:, 0]) / a[:, i, i, None]
