"""Samples for least squares and for LDL factors."""

import numpy as np
from ops.sample import Sample, booleans, complex_grid, grid, integers
from ops.samples.linalg.linear_systems import COLUMNS, STACK, A, Z, calls

TALL, WIDE = grid(4, 3), grid(2, 4)
SYMMETRIC = [a + np.swapaxes(a, -1, -2) for a in (A, STACK, Z, grid(7, 7), complex_grid(5, 5))]
HERMITIAN = [Z + Z.conj().T, complex_grid(2, 6, 6) + complex_grid(2, 6, 6).conj().swapaxes(-1, -2)]
INDEFINITE = np.array([[0.0, 2.0, 1.0], [2.0, 0.0, 3.0], [1.0, 3.0, 0.0]])


def samples():
    return {**least_squares(), **ldl()}


def least_squares():
    def solution(a, b, driver=None):
        found = np.linalg.lstsq(a, b)
        residuals = found[1] if driver in ("gelsd", "gelss") else np.empty(0)
        values = found[3] if driver in ("gelsd", "gelss") else np.empty(0)
        return found[0], residuals, found[2], values

    b = grid(4, 2)
    deficient = np.outer([1.0, 2.0, 3.0, 1.0], [2.0, 1.0])
    return {
        "linalg_lstsq": [
            Sample((TALL, b), numpy=solution),
            Sample((WIDE, grid(2, 3)), numpy=solution),
            *(Sample((TALL, b), {"driver": driver}, solution) for driver in ("gelsd", "gelss")),
            *calls(((TALL, b), {"driver": "gels"}), (A, COLUMNS), (A, grid(3)), ((TALL, grid(4)), {"driver": "gels"})),
            *calls((STACK, grid(2, 3)), (STACK, grid(2, 3, 1)), (STACK, grid(1, 3, 2))),
            *calls(((complex_grid(3, 2), complex_grid(3, 1)), {"driver": "gelsd"}), (Z, complex_grid(2, 2))),
            *(Sample((deficient, b), {"driver": driver}, smooth=False) for driver in ("gelsd", "gelsy")),
            # With pivoting ("gelsy"), PyTorch's rank depends on uninitialized memory.
            Sample((np.diag([4.0, 2.0, 0.1]), COLUMNS, 0.1), {"driver": "gelsd"}, smooth=False),
            *calls(((np.zeros((0, 3, 2)), np.zeros((0, 3, 1))), {"driver": "gelss"}), (np.zeros((3, 0)), grid(3, 1))),
        ],
    }


def ldl():
    hermitian = {"hermitian": True}
    one, two = np.array([1, 2, 3], np.int32), np.array([3, -3, -3], np.int32)
    factors = [
        *(Sample((a,), grad=False) for a in (*SYMMETRIC, INDEFINITE, np.zeros((0, 0)), np.zeros((0, 2, 2)))),
        *(Sample((a,), hermitian, grad=False) for a in (*HERMITIAN, SYMMETRIC[0])),
    ]
    z = np.stack([HERMITIAN[0], HERMITIAN[0].T])
    return {
        "linalg_ldl_factor": factors,
        "linalg_ldl_factor_ex": [*factors, Sample((np.zeros((2, 2)),), grad=False)],
        "linalg_ldl_solve": [
            Sample((A, one, COLUMNS), grad=False),
            Sample((A, two, COLUMNS), grad=False),
            Sample((STACK, np.stack([one, two]), COLUMNS), grad=False),
            Sample((z, one[[[0, 1], [1, 1]]], complex_grid(2, 3)), hermitian, grad=False),
            Sample((z, -one[[[1, 1], [1, 1]]], complex_grid(2, 3)), hermitian, grad=False),
            Sample((np.zeros((0, 0)), one[:0], np.zeros((0, 2))), grad=False),
        ],
    }


def errors():
    u, i, single = grid(3), integers(2, 2), COLUMNS.astype(np.float32)
    one = np.array([1, 2, 3], np.int32)
    square = calls((WIDE,), (u,), (i,))
    return {
        "linalg_lstsq": calls(
            (TALL, u),
            (u, u),
            (A, np.asarray(1.0)),
            (STACK, COLUMNS),
            (STACK, u),
            (TALL, grid(2, 4, 1)),
            (A, WIDE),
            (A, single),
            (i, i),
            (grid(5, 2, 4), grid(3, 2, 1)),
        )
        + calls(((A, COLUMNS), {"driver": "foo"})),
        "linalg_ldl_factor": square,
        "linalg_ldl_factor_ex": square,
        "linalg_ldl_solve": calls(
            (A, one, WIDE),
            (A, one[:2], COLUMNS),
            (A, one.astype(np.float32), COLUMNS),
            (WIDE, one, COLUMNS),
            (A, one * 0, COLUMNS),
            (A, one + 4, COLUMNS),
            (A, one, single),
            (A, booleans(3), COLUMNS),
        ),
    }
