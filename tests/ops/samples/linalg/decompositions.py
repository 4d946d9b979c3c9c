"""Samples for orthogonal, spectral and singular value decompositions. Complex eigenvectors and singular vectors are
only determined up to a phase, and losses must not depend on it; test_decompositions.py tests their gradients.
"""

import numpy as np
from ops.sample import Sample, complex_grid, grid, integers
from ops.samples.linalg.linear_systems import HALF_SINGULAR, STACK, A, Z, calls, checked

TALL, WIDE, TALL_STACK, Z_WIDE = grid(4, 3), grid(2, 4), grid(2, 4, 2), complex_grid(2, 3)
EMPTY = (np.zeros((0, 2, 2)), np.zeros((0, 0)))
NAN = np.stack([np.eye(2), np.full((2, 2), np.nan)])


def samples():
    return {**orthogonal(), **eigen(), **singular()}


def flat(function, *names):
    """The results of a NumPy function as a tuple."""
    return lambda *args: tuple(function(*args))


def orthogonal():
    packed, tau = (np.array(a, order="C") for a in packed_factors(TALL))
    z_packed, z_tau = packed_factors(complex_grid(3, 2))
    stack = np.stack([packed, packed * 0.5]), np.stack([tau, tau * 0.8])
    c = grid(4, 2)
    return {
        "linalg_qr": [
            *checked(flat(np.linalg.qr), (A,), (STACK,), (TALL,), (WIDE,), (TALL_STACK,), (Z,), (Z_WIDE,)),
            *checked(flat(np.linalg.qr), (complex_grid(3, 2),), (EMPTY[0],), (np.zeros((2, 0)),)),
            *calls((WIDE, "complete"), (A, "complete")),
            Sample((TALL, "complete"), grad=False),
            Sample((TALL, "r"), grad=False),
            Sample((np.zeros((0, 2)), "complete"), grad=False),
        ],
        "qr": calls((TALL,), (WIDE, False)),
        "geqrf": [Sample((a,), grad=False) for a in (TALL, WIDE, STACK, complex_grid(3, 2), EMPTY[1])],
        "linalg_householder_product": calls(
            (packed, tau), (packed, tau[:2]), (z_packed, z_tau), stack, (packed, tau * 0), (EMPTY[1], np.zeros(0))
        ),
        "orgqr": calls((packed, tau)),
        "ormqr": calls(
            (packed, tau, c),
            ((packed, tau, c), {"transpose": True}),
            ((packed, tau, c.T), {"left": False}),
            ((packed, tau, c.T), {"left": False, "transpose": True}),
            ((z_packed, z_tau, complex_grid(3, 2)), {"transpose": True}),
            (z_packed, z_tau, complex_grid(2, 3), False),
            (*stack, grid(2, 4, 1)),
        ),
    }


def packed_factors(a):
    packed, tau = np.linalg.qr(a, mode="raw")
    return packed.T.copy(), tau


def eigen():
    # smooth=False: gradients cover both triangles, but only one is read
    symmetric = [a + np.swapaxes(a, -1, -2) for a in (A, STACK)]
    hermitian = Z + Z.conj().T
    eigh = [
        *(Sample((a,), numpy=flat(np.linalg.eigh), smooth=False, unique=False) for a in symmetric),
        *(Sample((symmetric[0], uplo), smooth=False, unique=False) for uplo in "Uul"),
        *(Sample((a,)) for a in EMPTY),
    ]
    return {
        "linalg_eigh": eigh + [Sample((hermitian,), grad=False, unique=False, numpy=flat(np.linalg.eigh))],
        "linalg_eigvalsh": [
            Sample(s.args, numpy=np.linalg.eigvalsh if len(s.args) == 1 else None, smooth=False) for s in eigh
        ]
        + [Sample((hermitian,), numpy=np.linalg.eigvalsh, smooth=False)],
        "linalg_eig": [Sample((a,), grad=False, single=False, unique=False) for a in (A, STACK, Z, *EMPTY)],
        "linalg_eigvals": [Sample((a,), single=False) for a in (A, STACK, Z, *EMPTY)],
    }


def singular():
    shapes = (A, STACK, TALL, WIDE, TALL_STACK)
    rank_one = np.outer([1.0, 2.0, 3.0], [2.0, 1.0])
    each = [Sample((a,), {"full_matrices": False}, unique=False) for a in shapes]
    each += [Sample((a,), unique=False) for a in (A, *EMPTY)]
    each += [Sample((a,), grad=False, unique=False) for a in (Z, np.zeros((2, 0)))]
    # columns of U beyond the first ones have no gradient
    each += [Sample((a,), smooth=False, unique=False) for a in (TALL_STACK, WIDE)]
    return {
        "linalg_svd": each,
        "linalg_svdvals": [
            Sample((a,), numpy=lambda a: np.linalg.svd(a, compute_uv=False)) for a in (*shapes, Z, Z_WIDE, *EMPTY)
        ],
        "svd": [Sample((a,), unique=False) for a in shapes] + [Sample((TALL_STACK,), {"compute_uv": False})],
        "linalg_pinv": [
            *checked(np.linalg.pinv, (A,), (STACK,), (TALL,), (WIDE,), (Z_WIDE,), (complex_grid(3, 2),)),
            *calls(((TALL,), {"atol": 0.01, "rtol": 0.1}), (TALL, 1e-3)),
            Sample((np.diag([3.0, 2.0, 0.1]),), {"rtol": 0.1}, smooth=False),
            Sample(
                (np.stack([np.diag([3.0, 0.1]), np.diag([3.0, 0.1])]),), {"atol": np.array([0.2, 0.01])}, grad=False
            ),
            Sample((A + A.T,), {"hermitian": True}, smooth=False),
            Sample((np.zeros((2, 0)),)),
            # the rank increases nearby
            Sample((rank_one,), smooth=False),
        ],
        "pinverse": calls((A,), (TALL,)),
        "linalg_matrix_rank": [
            *(Sample((a,)) for a in (A, STACK, HALF_SINGULAR, Z_WIDE, rank_one, *EMPTY, np.zeros((2, 0)))),
            Sample((A + A.T,), {"hermitian": True}),
            Sample((A, 3.0)),
            Sample((STACK,), {"atol": np.array([3.0, 0.1]), "rtol": np.asarray(0.2)}),
            Sample((A,), {"rtol": 0.7}),
        ],
    }


# --- Invalid input -----------------------------------------------------------------------------


def errors():
    u, i, c = grid(3), integers(2, 2), grid(4, 2)
    square = {name: calls((WIDE,), (u,), (i,)) for name in ("linalg_eigh", "linalg_eigvalsh", "linalg_eig")}
    vectors = grid(3, 2)
    return {
        **square,
        "linalg_eigvals": calls((WIDE,), (u,), (i,)),
        "linalg_eigh": [*square["linalg_eigh"], *calls((A, "X"))],
        "linalg_eig": [*square["linalg_eig"], *calls((NAN,))],
        "linalg_qr": calls((u,), (i,), (A, "foo")),
        "geqrf": calls((u,), (i,)),
        "linalg_householder_product": calls(
            (WIDE, u),
            (vectors, u),
            (vectors, u[:2].astype(np.float32)),
            (u, u),
            (grid(2, 3, 2), u[:2]),
            (grid(2, 3, 2), vectors),
            (i, i[0]),
        ),
        "orgqr": calls((vectors, u)),
        "ormqr": calls(
            (TALL, u[:2], c),
            (TALL, u, WIDE),
            (TALL, u, u),
            (u, u, c),
            (TALL, u, c.astype(np.float32)),
            (TALL, u.astype(np.float32), c),
            (grid(2, 4, 3), grid(2, 3), c),
        ),
        "linalg_svd": calls((u,), (i,), (NAN,), (NAN[1],)) + calls(((A,), {"driver": "gesvd"})),
        "linalg_svdvals": calls((u,), (i,), (NAN,)),
        "linalg_pinv": calls((u,), (i,), (NAN,)),
        "linalg_matrix_rank": calls((u,), (i,), (NAN,)),
        "svd": calls((u,)),
    }
