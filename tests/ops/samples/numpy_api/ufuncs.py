"""Samples for functions that only NumPy has as a single op."""

import numpy as np
from ops.sample import Sample, grid, integers


def samples():
    return {
        "cbrt": [
            Sample((grid(2, 3),), numpy=np.cbrt),
            Sample((integers(3),), numpy=np.cbrt),
            Sample((np.array([0.0, 1.0]),), numpy=np.cbrt, smooth=False),
        ]
    }
