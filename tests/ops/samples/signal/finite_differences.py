"""Samples of numerical derivatives by finite differences."""

import numpy as np
from ops.sample import Sample, complex_grid, grid, integers


def samples():
    v, x = grid(5), grid(4, 3)
    places = np.array([0.0, 1.0, 1.5, 3.0])
    return {
        "gradient": [
            Sample((v,), numpy=np.gradient),
            Sample((x,), numpy=np.gradient),
            Sample((integers(4),), numpy=np.gradient, single=False),
            Sample((complex_grid(3, 2)[:, 0],), numpy=np.gradient),
            Sample((v,), {"spacing": 2.0}),
            Sample((x,), {"dim": 1}),
            Sample((x,), {"dim": (1, 0), "spacing": [0.5, 2]}),
            Sample((x,), {"spacing": (0.5, 2.0), "edge_order": 2}),
            Sample((x,), {"spacing": (places, np.array([0.0, 2.0, 3.0]))}),
            Sample((x,), {"spacing": (places,), "dim": 0, "edge_order": 2}),
            Sample((grid(),)),
        ]
    }


def errors():
    x = grid(4, 3)
    return {
        "gradient": [
            Sample((x,), kwargs)
            for kwargs in (
                {"spacing": [1.0, 2.0, 3.0]},
                {"spacing": [1.0]},
                {"dim": 1, "edge_order": 3},
                {"dim": 5},
                {"dim": (0, 0)},
                {"dim": 0, "spacing": (1.0, 2.0)},
            )
        ]
        + [Sample((x[:1],), {"dim": 0}), Sample((x[:2],), {"dim": 0, "edge_order": 2}), Sample(([1],))]
    }
