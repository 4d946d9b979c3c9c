"""Samples for einsum and similar contractions, traces and matrix powers."""

import numpy as np
from ops.sample import Sample, booleans, complex_grid, grid, integers

A = grid(3, 3) + 3 * np.eye(3)
STACK = grid(2, 3, 3) + 3 * np.eye(3)
Z = complex_grid(2, 2) + 2 * np.eye(2)


def calls(*cases):
    """Make samples from arguments or (arguments, keywords)."""
    return [Sample(*case) if len(case) == 2 and isinstance(case[1], dict) else Sample(case) for case in cases]


def checked(function, *cases):
    return [Sample(case, numpy=function) for case in cases]


def samples():
    return sums()


def sums():
    x, y, z, i = grid(2, 3), grid(3, 4), complex_grid(2, 3), integers(2, 3)
    u, v, scalar, batch = grid(3), grid(3) * 2, np.asarray(0.7), grid(4, 2, 3)
    equations = [
        ("ij,jk->ik", x, y),
        ("ij,jk", x, y),
        ("ij->ji", x),
        ("ij->", x),
        ("ij->j", x),
        ("ba", x),
        ("ii", A),
        ("ii->i", A),
        ("iij->j", grid(2, 2, 3)),
        ("i,i", u, v),
        ("i,j->ij", u, v),
        ("ij,ij->i", x, x * 2),
        ("bij,bjk->bik", batch, grid(4, 3, 2)),
        ("bij,jk->bki", batch, y),
        ("...ij,...jk->...ik", batch, grid(1, 3, 5)),
        ("i...,i...->...", x, x + 1),
        ("...->...", x),
        ("ij,jk,kl->il", x, y, grid(4, 2)),
        ("a,b,c->cab", u, v, grid(2)),
        ("ij , jk -> ik", x, y),
        (",", scalar, np.asarray(1.4)),
        ("ij,ij->ij", x, grid(2, 1)),
        ("ij,jk->ik", z, complex_grid(3, 2)),
        ("ij,kj->ik", i, i),
        ("ij,jk->ik", np.zeros((0, 3)), y),
    ]
    return {
        "einsum": [
            *(Sample(case, numpy=np.einsum) for case in equations),
            *calls((x, [0, 1], [1, 0]), (x, [0, 1], y, [1, 2]), (x, [..., 1], y, [1, 2], [..., 2])),
        ],
        "tensordot": [
            *checked(np.tensordot, (x, y, 1), (x, x, 2), (x, y, 0)),
            *calls((x, x, ([1], [1])), (batch, batch, ([0, 2], [0, 2])), ((x, y), {"dims": 1}), (z, z, 2)),
        ],
        "kron": checked(np.kron, (x, y), (u, x), (scalar, x), (z, x[:, :2] + 0j), (i, i)),
        "trace": checked(np.trace, (A,), (x,), (z,), (integers(3, 3),), (np.zeros((0, 2)),)),
        "matrix_power": [
            *(Sample((A, n), numpy=np.linalg.matrix_power) for n in (1, 2, 5, -1, -3)),
            Sample((A, 0), numpy=np.linalg.matrix_power),
            *calls((STACK, 3), (Z, 2), (integers(2, 2), 3)),
        ],
        "chain_matmul": calls((x,), (x, y), (x, y, grid(4, 5), grid(5, 1))),
        "vdot": checked(np.vdot, (u, v), (complex_grid(2, 2)[0], complex_grid(2, 2)[1]), (integers(3), integers(3))),
    }


def errors():
    x, p, u = grid(2, 3), booleans(2, 2), grid(3)
    return {
        "einsum": calls(
            ("ij,jk->ik", x, A[:2]),
            ("ii", x),
            ("ij,jk", x),
            ("ij", x, x),
            ("ijk", x),
            ("i->j", u),
            ("i->ii", u),
            ("i1", x),
            ("i..", x),
            ("......", x),
            ("ij",),
            ("ij", 3),
            (x, [0, 52]),
            (x, [0, -1]),
            (x, [0, 1.5]),
            ("ij->i.", x),
            ("ij->......", x),
            (x,),
            ("ij,jk->ik", x, A.astype(np.float32)),
        ),
        "tensordot": calls((x, x, 1), (x, x, -1), (x, x, 3), (x, x, ([0, 1], [0])), (x, x, "a"), (x, x, ([0], [1]))),
        "kron": calls((x, 1.0), (None, x)),
        "trace": calls((u,), (p,), (None,)),
        "matrix_power": calls((x, 2), (A, 1.5), (u, 2)),
        "vdot": calls((x, x), (u, grid(4)), (u, None)),
    }
