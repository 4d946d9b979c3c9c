"""Samples for predicates, and for functions that treat special values."""

import math

import numpy as np
from ops.sample import Sample, booleans, complex_grid, grid, integers

NAN, INF = math.nan, math.inf
SPECIAL = np.array([0.0, -0.0, 1.5, -2.0, NAN, INF, -INF])


def samples():
    x, z, i, p, scalar = grid(2, 3), complex_grid(2, 2), integers(2, 3), booleans(3), np.asarray(0.7)
    unsigned = np.array([1, 200], np.uint8)

    def questions(function, *arrays):
        return [Sample((a,), numpy=function, grad=False) for a in (x, scalar, SPECIAL, np.zeros((2, 0)), *arrays)]

    odd = np.array([complex(NAN, 1), complex(1, INF), 2 - 1j])
    inside = (x + 2) * 0.2 + 0.1
    return {
        "signbit": questions(np.signbit, i * 1.0) + [Sample((a,), grad=False) for a in (i, p, unsigned)],
        "isposinf": questions(np.isposinf, i, p),
        "isneginf": questions(np.isneginf, i, p),
        "isreal": questions(np.isreal, i, z, p, np.array([1 + 0j, 1j])),
        "nan_to_num": [
            *(Sample((a,), numpy=np.nan_to_num) for a in (x, i, scalar, p)),
            Sample((SPECIAL,), numpy=np.nan_to_num, smooth=False, single=False),
            Sample((SPECIAL, 1.0, 2.0, -3.0), smooth=False),
            Sample((SPECIAL,), {"nan": -1.0, "posinf": 7.0, "neginf": 0.5}, smooth=False),
            Sample((odd,), grad=False, single=False),
        ],
        "logit": [
            *(Sample((a,), numpy=lambda a: np.log(a / (1 - a))) for a in (inside, scalar)),
            *(Sample((a,)) for a in (integers(3, low=0, high=2), np.zeros((2, 0)))),
            Sample((inside, 0.1)),
            Sample((np.array([-1.0, 0.0, 0.05, 0.5, 1.0, 2.0, NAN]),), smooth=False),
            Sample((np.array([-1.0, 0.0, 0.05, 0.5, 1.0, 2.0]), 0.1), smooth=False),
        ],
        "frexp": [Sample((a,), numpy=np.frexp) for a in (x, scalar, x * 1000)],
    }


def errors():
    z, i = complex_grid(2, 2), integers(2, 3)

    def calls(*cases):
        return [Sample(args, {}) for args in cases]

    return {
        **{name: calls((None,), (1.0,), (z,)) for name in ("signbit", "isposinf", "isneginf")},
        "isreal": calls((None,), ("a",)),
        "nan_to_num": calls((None,)),
        "logit": calls((None,), (z,)),
        "frexp": calls((i,), (z,), (None,)),
    }
