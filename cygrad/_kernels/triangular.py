"""Systems with triangular matrices, over stacks. NumPy has no function of its own for them."""

import numpy as np

BLOCK = 64  # rows that are solved together


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
    """By LAPACK's general solver, which exchanges no rows of an upper triangle, nor changes any; rows if that fails."""
    try:
        x = np.linalg.solve(a, np.ascontiguousarray(b))
    except np.linalg.LinAlgError:
        return solve_rows(a, b)
    return x if np.isfinite(x).all() else solve_rows(a, b)


def solve_rows(a, b):
    x = np.broadcast_to(b, (*np.broadcast_shapes(a.shape[:-2], b.shape[:-2]), *b.shape[-2:])).copy()
    for i in range(a.shape[-1] - 1, -1, -1):
        x[..., i, :] = (x[..., i, :] - (a[..., i, None, i + 1 :] @ x[..., i + 1 :, :])[..., 0, :]) / a[..., i, i, None]
    return x
