"""Samples for inverses, linear systems, determinants, and the factors used to solve systems."""

import numpy as np
from ops.sample import Sample, complex_grid, grid, integers

A = grid(3, 3) + 3 * np.eye(3)
STACK = grid(2, 3, 3) + 3 * np.eye(3)
Z = complex_grid(2, 2) + 2 * np.eye(2)
SINGULAR = np.ones((2, 2))
HALF_SINGULAR = np.stack([np.eye(2), SINGULAR])
SQUARE = (A, STACK, Z, np.zeros((0, 2, 2)), np.zeros((2, 0, 0)))
COLUMNS = grid(3, 2)


def calls(*cases):
    """Make samples from arguments or (arguments, keywords)."""
    return [Sample(*case) if len(case) == 2 and isinstance(case[1], dict) else Sample(case) for case in cases]


def checked(function, *cases):
    return [Sample(case, numpy=function) for case in cases]


def positive_definite(a):
    return a @ np.swapaxes(a, -1, -2).conj() + np.eye(a.shape[-1])


def samples():
    return {**inverses(), **systems(), **determinants(), **cholesky(), **lu()}


def with_info(function):
    """`function`'s result followed by info codes of 0 (success)."""

    def both(a, *others):
        return function(a, *others), np.zeros(a.shape[:-2], np.int32)

    return both


def inverses():
    return {
        "linalg_inv": checked(np.linalg.inv, *((a,) for a in SQUARE)),
        "linalg_inv_ex": checked(with_info(np.linalg.inv), *((a,) for a in SQUARE))
        + [Sample((HALF_SINGULAR,), grad=False)],
        "inverse": checked(np.linalg.inv, (A,)),
        "linalg_tensorinv": [
            Sample((STACK.reshape(2, 9)[:, :6].reshape(3, 4) @ np.ones((4, 3)) * 0.1 + A,), {"ind": 1}),
            Sample(((grid(6, 6) + 4 * np.eye(6)).reshape(6, 2, 3),), {"ind": 1}),
            Sample(((grid(6, 6) + 4 * np.eye(6)).reshape(2, 3, 3, 2),)),
        ],
    }


def systems():
    empty = np.zeros((0, 2, 2))
    solve = [
        *checked(np.linalg.solve, (A, COLUMNS), (STACK, COLUMNS), (STACK, grid(2, 3, 2)), (Z, complex_grid(2, 3))),
        *calls(((A, grid(2, 3)), {"left": False}), (empty, np.zeros((0, 2, 1)))),
    ]
    upper, lower = np.triu(A), np.tril(Z) + np.eye(2)
    triangular = [
        Sample((upper, COLUMNS), {"upper": True}, lambda a, b, upper: np.linalg.solve(a, b)),
        Sample((lower, complex_grid(2, 3)), {"upper": False}, lambda a, b, upper: np.linalg.solve(a, b)),
        *calls(
            ((A, COLUMNS), {"upper": True}),
            ((A, COLUMNS), {"upper": False, "unitriangular": True}),
            ((STACK, COLUMNS), {"upper": False}),
            ((A, grid(2, 3, 2)), {"upper": True, "unitriangular": True}),
            ((STACK, grid(2, 4, 3)), {"upper": True, "left": False}),
            ((Z, complex_grid(4, 2)), {"upper": False, "left": False, "unitriangular": True}),
            ((np.zeros((0, 0)), np.zeros((0, 2))), {"upper": True}),
            ((A, np.zeros((3, 0))), {"upper": True}),
            ((empty, np.zeros((0, 2, 1))), {"upper": True}),
        ),
    ]
    return {
        "linalg_solve": [
            *solve,
            Sample((A, grid(3)), numpy=np.linalg.solve),
            *calls((STACK, grid(2, 3))),
        ],
        "linalg_solve_ex": calls(*((s.args, s.kwargs) for s in solve))
        + [Sample((HALF_SINGULAR, np.ones((2, 1))), grad=False)],
        "linalg_tensorsolve": calls(
            (A, grid(3)),
            ((grid(6, 6) + 4 * np.eye(6)).reshape(2, 3, 6), grid(2, 3)),
            (((grid(6, 6) + 4 * np.eye(6)).reshape(3, 6, 2), grid(3, 2)), {"dims": (1,)}),
        ),
        "linalg_solve_triangular": triangular,
        "triangular_solve": [
            *calls(
                (COLUMNS, A),
                ((COLUMNS, A), {"upper": False}),
                ((COLUMNS, STACK), {"transpose": True}),
                ((complex_grid(2, 1), Z), {"upper": False, "transpose": True, "unitriangular": True}),
                (grid(2, 3, 2), A),
            )
        ],
    }


def determinants():
    return {
        "det": [
            *checked(np.linalg.det, *((a,) for a in SQUARE)),
            # PyTorch's gradient for singular matrices is 0 or imprecise
            Sample((np.array([[1.0, 2.0], [2.0, 4.0]]),), numpy=np.linalg.det, oracle_grad=False),
            Sample((np.outer([1.0, 2.0, 3.0], [2.0, 1.0, -1.0]),), oracle_grad=False),
            Sample((np.stack([A, A * [1.0, 1.0, 0.0]]),), oracle_grad=False),
            Sample((np.outer([1.0, 2j], [2.0, 1 - 1j]),), oracle_grad=False),
        ],
        "slogdet": [Sample((a,)) for a in SQUARE[:3]],
        "linalg_slogdet": [Sample((a,)) for a in SQUARE] + [Sample((np.full((2, 2), np.nan),), grad=False)],
        "logdet": [Sample((positive_definite(a),)) for a in SQUARE[:2]],
    }


def cholesky():
    positive = [positive_definite(a) for a in SQUARE]

    def lower(a):
        return np.linalg.cholesky(a)

    def both(*more):
        """Samples with smooth=False: gradients cover both triangles, but the factorization reads one."""
        return [Sample((a,), numpy=lower, smooth=False) for a in positive] + [
            Sample((a,), {"upper": True}, smooth=False) for a in (*positive, *more)
        ]

    factors = [np.linalg.cholesky(a) for a in positive]
    # PyTorch's gradients of a factor are not those of the triangle that is read
    solve = [
        Sample((COLUMNS, factors[0]), numpy=lambda b, f: np.linalg.solve(f @ f.T, b), oracle_grad=False),
        Sample((COLUMNS, A), {"upper": True}, oracle_grad=False),
        Sample((COLUMNS, STACK), oracle_grad=False),
        Sample((grid(2, 3, 1), A), oracle_grad=False),
        Sample((complex_grid(2, 3), factors[2]), oracle_grad=False),
        Sample((complex_grid(2, 3), factors[2].T), {"upper": True}, oracle_grad=False),
        Sample((np.zeros((0, 2)), np.zeros((0, 0)))),
    ]
    return {
        "linalg_cholesky": both(),
        "linalg_cholesky_ex": [Sample(s.args, s.kwargs, smooth=False) for s in both()]
        + [Sample((-np.eye(2),), grad=False), Sample((HALF_SINGULAR,), grad=False)]
        + [Sample((np.stack([np.eye(2), np.full((2, 2), np.nan)]),), grad=False)],
        "cholesky": both(),
        "cholesky_solve": solve,
        "cholesky_inverse": [
            Sample((factors[0],), numpy=lambda f: np.linalg.inv(f @ f.T), oracle_grad=False),
            Sample((A,), {"upper": True}, oracle_grad=False),
            Sample((STACK,), oracle_grad=False),
            Sample((factors[2],), oracle_grad=False),
            Sample((np.zeros((0, 0)),)),
        ],
    }


def lu():
    tall, wide = grid(4, 3), grid(2, 4)
    matrices = (A, STACK, Z, tall, wide, complex_grid(2, 3, 2), grid(40, 36)[:, :35], np.zeros((2, 0)))
    small = [(a,) for a in matrices if a.size < 100]
    pivots = np.array([2, 3, 3], np.int32)
    stacked = np.stack([pivots, pivots[[2, 2, 2]]])
    solve = [
        Sample((A, pivots, COLUMNS)),
        Sample((A, pivots, COLUMNS), {"adjoint": True}),
        Sample((A, pivots, grid(2, 3)), {"left": False}),
        Sample((STACK, stacked, COLUMNS)),
        Sample((Z, pivots[:2] * 0 + 2, complex_grid(3, 2)), {"left": False, "adjoint": True}),
        Sample((Z, pivots[:2] * 0 + 2, complex_grid(2, 3)), {"adjoint": True}),
        Sample((np.zeros((0, 0)), pivots[:0], np.zeros((0, 2)))),
    ]
    return {
        "linalg_lu": calls(*small),
        "linalg_lu_factor": calls(*small),
        "linalg_lu_factor_ex": calls(*small) + [Sample((HALF_SINGULAR,), grad=False)],
        "lu": calls(*small[:2], ((A,), {"get_infos": True})),
        "lu_unpack": calls(
            (A, pivots),
            (STACK, stacked),
            (tall, pivots),
            (wide, pivots[:2] * 0 + 2),
            ((A, pivots), {"unpack_pivots": False}),
        )
        + [Sample((A, pivots), {"unpack_data": False}, grad=False)],
        "linalg_lu_solve": solve,
        "lu_solve": calls((COLUMNS, A, pivots), (COLUMNS, STACK, stacked)),
    }


# --- Invalid input -----------------------------------------------------------------------------


def errors():
    x, i, u = grid(2, 3), integers(2, 2), grid(3)
    single, three = A.astype(np.float32), np.array([1, 2, 3], np.int32)
    square = {
        name: calls((x,), (u,), (i,))
        for name in (
            "linalg_inv",
            "linalg_inv_ex",
            "det",
            "linalg_slogdet",
            "linalg_cholesky",
            "linalg_cholesky_ex",
            "cholesky_inverse",
        )
    }
    solve = calls((x, u), (A, grid(2, 2)), (A, single), (A, np.asarray(1.0)), (i, i))
    check = {"check_errors": True}
    negative = np.stack([np.eye(2), -np.eye(2)])
    return {
        **square,
        "linalg_inv": [*square["linalg_inv"], *calls((SINGULAR,), (HALF_SINGULAR,))],
        "linalg_inv_ex": [*square["linalg_inv_ex"], *calls(((SINGULAR,), check), ((HALF_SINGULAR,), check))],
        "linalg_cholesky": [*square["linalg_cholesky"], *calls((-np.eye(2),), (negative,))],
        "linalg_cholesky_ex": [*square["linalg_cholesky_ex"], *calls(((-np.eye(2),), check), ((negative,), check))],
        "cholesky": calls((x,), (i,), (-np.eye(2),), (negative,)),
        "cholesky_inverse": [*square["cholesky_inverse"], *calls((np.zeros((2, 2)),))],
        "cholesky_solve": calls((u, A), (x, A), (COLUMNS, x), (COLUMNS, single), (i, i), (COLUMNS, u)),
        "linalg_solve": solve
        + calls((SINGULAR, np.ones(2)), (A, grid(2)), ((A, grid(2, 2)), {"left": False}), ((A, u), {"left": False})),
        "linalg_solve_ex": solve + calls(((HALF_SINGULAR, SINGULAR), check)),
        "linalg_tensorinv": calls(x, np.ones((6, 2, 3)))
        + calls(((np.ones((6, 2, 3)),), {"ind": 1}), ((np.ones((6, 2, 3)),), {"ind": 0})),
        "linalg_tensorsolve": calls((A, grid(2)), (x, grid(2)), (SINGULAR, np.ones(2))),
        "linalg_solve_triangular": calls(
            ((A, x), {"upper": True}),
            ((A, u), {"upper": True}),
            ((x, COLUMNS), {"upper": True}),
            ((i, i), {"upper": True}),
        ),
        "triangular_solve": calls((u, A), (x, A), (COLUMNS, x), (COLUMNS, single), (COLUMNS, u), (i, i)),
        "linalg_lu": calls((u,), (i,), ((A,), {"pivot": False}), ("A",)),
        "linalg_lu_factor": calls((u,), (i,), ((A,), {"pivot": False}), (SINGULAR,), (HALF_SINGULAR,)),
        "linalg_lu_factor_ex": calls(((SINGULAR,), check), ((HALF_SINGULAR,), check)),
        "lu_unpack": calls((A, u), (A, three[:2] * 0), (A, three * 0), (A, three + 5), (u, three), (A, three + 0.0)),
        "linalg_lu_solve": calls(
            (A, three.astype(np.int64), COLUMNS),
            (A, three[:2], COLUMNS),
            (A, three * 0, COLUMNS),
            (A, three + 1, COLUMNS),
            (x, three[:2], COLUMNS),
            (A, three, x),
            (A, three, u),
            (A, three, COLUMNS.astype(np.float32)),
        ),
        "lu_solve": calls((u, A, three), (COLUMNS, A, three[:2])),
    }
