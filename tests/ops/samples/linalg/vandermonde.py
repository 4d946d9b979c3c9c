"""Samples for Vandermonde matrices."""

import numpy as np
from ops.sample import Sample, booleans, complex_grid, grid, integers


def samples():
    return {
        "vander": [
            # PyTorch multiplies in place, so its backward pass fails for more than two powers
            Sample((grid(3),), numpy=np.vander, oracle_grad=False),
            Sample((np.array([0.5, 0.0, -1.0]), 4), numpy=np.vander, oracle_grad=False),
            Sample((grid(3), 2, True), numpy=np.vander, oracle_grad=False),
            Sample((grid(3), 1), numpy=np.vander),
            Sample((grid(3), 0), numpy=np.vander),
            Sample((complex_grid(3), 4), numpy=np.vander, oracle_grad=False),
            Sample((integers(3), 4), numpy=np.vander),
            Sample((booleans(3), 3), numpy=np.vander),
            Sample((np.zeros(0), 3), numpy=np.vander, oracle_grad=False),
        ]
    }


def errors():
    return {"vander": [Sample(args, {}) for args in ((grid(2, 2),), (grid(3), -1), ("a",), (grid(3), 1.5))]}
