"""Samples for LOBPCG. Without `X` it starts from random vectors: see test_low_rank.py."""

import numpy as np
from ops.sample import Sample, grid
from ops.samples.linalg.linear_systems import calls


def samples():
    a = grid(9, 9) + np.diag(np.arange(9.0) * 4)
    symmetric, start = a + a.T, grid(9, 2)
    exact = {"X": start, "tol": 1e-7}
    how = {"single": False, "unique": False, "any_layout": False}  # signs depend on the summation order of products
    return {
        "lobpcg": [
            Sample((symmetric, 2), exact, smooth=False, **how),
            Sample((symmetric, 2), {**exact, "largest": False}, smooth=False, **how),
            Sample((symmetric, 2), {**exact, "B": np.diag(np.arange(9.0) + 1)}, grad=False, **how),
        ],
    }


def errors():
    return {"lobpcg": calls((grid(5, 5), 2))}
