"""Samples for matrix exponentials, chained products, vector products, and fused multiply-adds."""

import numpy as np
from ops.sample import Sample, booleans, complex_grid, grid, integers
from ops.samples.linalg.linear_systems import STACK, A, Z, calls


def samples():
    return {**of_matrices(), **of_vectors(), **added()}


def series(a):
    """The exponential of a small matrix by its series."""
    small, total = a / 2**10, 0
    for k in range(12, -1, -1):
        total = np.eye(a.shape[-1]) + (total @ small / (k + 1) if k < 12 else 0)
    for _ in range(10):
        total = total @ total
    return total


def of_matrices():
    x, y = grid(2, 3), grid(3, 4)
    small = [Sample((a * scale,), numpy=series) for a in (A, STACK, Z) for scale in (1e-3, 0.05, 0.2, 0.5, 1.0)]
    large = [Sample((A * 5,), smooth=False, single=False)]
    return {
        "linalg_matrix_exp": [
            *small,
            *large,
            *calls((np.zeros((0, 2, 2)),), (np.zeros((2, 0, 0)),), (np.zeros((2, 2)),)),
        ],
        "matrix_exp": calls((A,)),
        "linalg_multi_dot": calls(
            ([x, y],),
            ([x, y, grid(4, 5), grid(5, 1)],),
            ([grid(2), x, grid(3)],),
            ([grid(3), grid(3) * 2],),
            ([x, grid(3)],),
            ([Z, complex_grid(2, 3)],),
            ([integers(2, 3), integers(3, 2)],),
        ),
    }


def of_vectors():
    x, y, z = grid(2, 3), grid(2, 3)[::-1] * 2, complex_grid(2, 3)

    return {
        "linalg_vecdot": [
            *calls((x, y), (z, z * 1j + 1), (x, grid(3)), (grid(3), x), (np.asarray(2.0), grid(3))),
            *calls(((x, y), {"dim": 0}), (np.zeros((2, 0)), np.zeros((2, 0))), (np.zeros((0, 2)), np.zeros((0, 2)))),
        ],
        "linalg_vander": calls((grid(3),), ((x,), {"N": 2}), ((z,), {"N": 4}), (integers(3),), (np.zeros((0, 2)),))
        + [Sample((np.asarray(1.5),), {"N": 2}, numpy=lambda a, N: np.array([[1, a]]))],
        "linalg_diagonal": calls((A,), (STACK,), ((grid(2, 3, 4),), {"offset": 1, "dim1": 0, "dim2": 1})),
    }


def added():
    base, u, v = grid(2, 3), grid(2), grid(3)
    a, b, z = grid(4, 2, 3), grid(4, 3, 5), complex_grid(2, 2)
    wide = grid(2, 5)

    def addr(base, u, v, beta=1, alpha=1):
        return (beta * base if beta else 0) + alpha * np.outer(u, v)

    def addbmm(base, a, b, beta=1, alpha=1):
        return (beta * base if beta else 0) + alpha * (a @ b).sum(0)

    scales = ({}, {"beta": 2, "alpha": -3}, {"beta": 0}, {"alpha": 0.5})
    imaginary = {"beta": 1j, "alpha": 2 - 1j}
    none = np.zeros((0, 2, 3)), np.zeros((0, 3, 5))
    return {
        "addr": [
            *(Sample((base, u, v), scale, addr) for scale in scales),
            *(Sample((other, u, v), numpy=addr) for other in (v, grid(2, 1), np.asarray(0.5))),
            Sample((z, z[0], z[1]), imaginary, addr),
            Sample((integers(2, 2), integers(2), integers(2)), {"alpha": 3}, addr),
            Sample((booleans(2, 2), booleans(2), booleans(2))),
            Sample((booleans(2, 2), booleans(2), booleans(2)), {"beta": 0}),
            Sample((np.full((2, 3), np.nan), u, v), {"beta": 0}, addr, grad=False),
            *calls((integers(2, 3), u, v), (np.zeros((0, 3)), np.zeros(0), v)),
        ],
        "addbmm": [
            *(Sample((wide, a, b), scale, addbmm) for scale in scales),
            *(Sample((other, a, b), numpy=addbmm) for other in (grid(5), grid(2, 1), np.asarray(0.5))),
            Sample((z, complex_grid(3, 2, 2), complex_grid(3, 2, 2)), imaginary, addbmm),
            Sample((integers(2, 2), integers(3, 2, 2), integers(3, 2, 2)), numpy=addbmm),
            Sample((wide, *none), numpy=addbmm),
            Sample((wide, *none), {"beta": 0}, addbmm, grad=False),
            Sample((np.full((2, 5), np.nan), a, b), {"beta": 0}, addbmm, grad=False),
        ],
        "addmm": [Sample((z, Z, z), imaginary, lambda c, a, b, beta, alpha: beta * c + alpha * (a @ b))],
        "addmv": [Sample((z[0], Z, z[1]), imaginary, lambda c, a, b, beta, alpha: beta * c + alpha * (a @ b))],
    }


# --- Invalid input -----------------------------------------------------------------------------


def errors():
    x, u, v, i, p = grid(2, 3), grid(2), grid(3), integers(2, 2), booleans(2)
    single = v.astype(np.float32)
    a, b = grid(2, 3, 4), grid(2, 4, 3)
    return {
        "linalg_matrix_exp": calls((x,), (u,), (i,)),
        "linalg_multi_dot": calls(
            ([A],),
            ([],),
            ([A, v, A],),
            ([x, x],),
            ([A, single],),
            ([STACK, A],),
            ([A, STACK],),
            ((v, v, 3),),
            (A,),
        ),
        "linalg_vecdot": calls((A, x), (A, single), (i, i), (A, A[:2]), ((A, A), {"dim": 5})),
        "linalg_vander": calls(((v,), {"N": 1}), ((v,), {"N": 0}), (p,), (np.asarray(1.0),), (np.zeros((2, 0)),)),
        "linalg_diagonal": calls((v,)),
        "addr": calls((x, u, x), (x, u, u), (grid(4), u, v), (x, 3, v), (x, A, v), ((x, u, v), {"alpha": 1j}))
        + calls(((i, i[0], i[1]), {"alpha": 2.5}), ((i, i[0], i[1]), {"beta": 2.5})),
        "addbmm": calls(
            (A, a, a),
            (grid(4, 4), a, b),
            (A, a, grid(3, 4, 3)),
            (A, a, grid(2, 3, 3)),
            (A, A, A),
            (A, a, A),
            (A.astype(np.float32), a, b),
            (A, a, b.astype(np.float32)),
            (a, a, b),
        ),
    }
