"""Samples for matrix norms and condition numbers."""

import math

import numpy as np
from ops.sample import Sample, complex_grid, grid, integers
from ops.samples.linalg.linear_systems import HALF_SINGULAR, STACK, A, Z, calls

INF = math.inf
ORDERS = ("fro", "nuc", 1, -1, 2, -2, INF, -INF)


def samples():
    wide, cube, z = grid(2, 3), grid(2, 3, 4), complex_grid(3, 2)
    empty = (np.zeros((0, 3)), np.zeros((2, 0)), np.zeros((0, 2, 2)))

    def of_matrix(a, ord="fro"):
        return np.linalg.norm(a, ord, (-2, -1))

    def condition(a, p=None):
        return np.linalg.cond(a, p)

    return {
        "linalg_matrix_norm": [
            *(Sample((a, ord), numpy=of_matrix) for ord in ORDERS for a in (wide, A, z, STACK)),
            *(Sample((cube, ord, (2, 0), True)) for ord in ORDERS),
            *(Sample((cube, ord, (0, -2))) for ord in ORDERS),
            *(Sample((a, ord), smooth=False, oracle_grad=False) for ord in ("fro", "nuc", 1, 2, INF) for a in empty),
            *(Sample((np.zeros((2, 2)), ord), smooth=False) for ord in ("fro", 1, INF)),
            Sample((wide,), numpy=of_matrix),
            Sample((wide, 2), {"dtype": float}),
        ],
        "linalg_norm": [
            *(Sample((a, ord), numpy=np.linalg.norm) for ord in (None, *ORDERS) for a in (wide, A)),
            *(Sample((grid(4), ord), numpy=np.linalg.norm) for ord in (None, 1, 3, INF, 0)),
            *calls((cube,), (cube, 2, 1), (cube, 2, (1,)), (cube, None, (0, 1)), (cube, 2, (0, 1)), (np.asarray(3.0),)),
            *calls(((A, 2), {"keepdim": True}), ((A,), {"keepdim": True}), ((A, None, [0]), {"dtype": float})),
        ],
        "nuclear_norm": calls((wide,), (cube,), (cube, (0, 1)), (cube, (0, 2), True), (wide, True))
        + calls(((A,), {"keepdim": True})),
        "frobenius_norm": calls((wide, (0, 1)), (wide, 1), (cube, (0, 1), True), (cube, ()), (z, [0])),
        "norm": calls((wide, "nuc"), (cube, "nuc", (0, 1)), (cube, "fro", (0, 1)), (cube, INF, (0, 2)))
        + calls(((A, "nuc"), {"keepdim": True}), (A, None, (0, 1))),
        "linalg_cond": [
            *(Sample((A, p), numpy=condition) for p in (None, 2, -2)),
            # PyTorch modifies the inverse in place, so its gradient fails
            *(Sample((A, p), numpy=condition, oracle_grad=False) for p in ("fro", "nuc", 1, -1, INF, -INF)),
            *calls((STACK,), (wide,), (Z,)),
            *(Sample((a, 1), oracle_grad=False) for a in (Z, STACK)),
            *(Sample((HALF_SINGULAR, p), grad=False) for p in (1, "fro", INF)),
            Sample((np.full((2, 2), np.nan), 1), grad=False),
            *(Sample((np.zeros((0, 0)), p), smooth=False, oracle_grad=False) for p in (None, 1)),
        ],
    }


def errors():
    u, i, cube, wide = grid(3), integers(2, 2), grid(2, 3, 4), grid(2, 3)
    return {
        "linalg_matrix_norm": calls(
            (u,),
            (i,),
            (i, 1),
            (cube, 3),
            (cube, "foo"),
            (cube, 2, (0,)),
            (cube, 2, (0, 1, 2)),
            (cube, 2, (0, -3)),
            (cube, "fro", (0, -3)),
            (cube, 2, (0, 5)),
        )
        + calls(((cube,), {"dim": 1}), ((wide, 2), {"dtype": int}), ((wide, "nuc"), {"dtype": int})),
        "linalg_norm": calls(
            (cube, 2),
            (cube, None, (0, 1, 2)),
            (cube, 2, (0, 1, 2)),
            (cube, "fro"),
            (u, "fro"),
            (u, "nuc"),
            (wide, 3),
            (wide, "foo"),
            (i,),
            (i, 2),
            (wide, 2, (0, 0)),
            (wide, None, 5),
            (np.asarray(1.0), 2),
            (3,),
        )
        + calls(((wide,), {"dtype": int}), ((wide,), {"dtype": complex})),
        "linalg_vector_norm": calls((i,), (wide, "fro"), (np.zeros(0), INF), (np.zeros(0), -1)),
        "norm": calls((cube, "nuc"), (cube, "nuc", 1), (cube, "fro", (0, 1, 2)), (cube, "foo"), (cube, "foo", 1))
        + calls((u, "nuc"), (i, "nuc"), (wide, [1])),
        "frobenius_norm": calls((cube, (0, 1, 2)), (i, 1), (cube, (0, 0))),
        "nuclear_norm": calls((cube, (0,)), (i,), (u,)),
        "linalg_cond": calls((u,), (wide, 1), (wide, "nuc"), (A, 3), (A, "foo"), (i,)),
    }
