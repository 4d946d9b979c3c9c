"""Samples of pairwise distances, cross products, and norms with a bound."""

import math

import numpy as np
from ops.sample import Sample, complex_grid, grid, integers


def samples():
    x, y, many, c = grid(2, 3), grid(4, 3), grid(30, 2), grid(4, 3) * 2
    z = complex_grid(2, 3)
    same = np.array([[1.0, 2.0], [3.0, 4.0]])
    ties = np.array([[1.0, -1.0], [0.0, 2.0]])

    def each(*calls, **how):
        return [Sample(call, **how) for call in calls]

    return {
        "cdist": each(
            (x, y), (x, y, 1), (x, y, 3), (x, y, 1.5), (x * 1.1, y, math.inf), (many, grid(3, 2), 4.0), numpy=cdist
        )
        # PyTorch computes Euclidean distances with matrix products, as different ops
        + each((many, grid(3, 2)), numpy=cdist, oracle_grad=False)
        + [Sample((x, y), {"compute_mode": "use_mm_for_euclid_dist"}, oracle_grad=False)]
        + each((x, y, 0.0), (same, same), (same, same, 1), (ties, -ties, math.inf), smooth=False, numpy=cdist)
        + each((x[None], grid(5, 4, 3)), (grid(2, 1, 2, 3), grid(5, 4, 3), 1.0), numpy=cdist)
        + each((x[:0], y), (x[:, :0], y[:, :0]), (x[:, :0], y[:, :0], 1)),
        "linalg_cross": each(
            (x, x[::-1]), (x[0], x[1]), (x, y[:1]), (z, z[::-1] * 2j), (integers(2, 3), integers(2, 3) + 1)
        )
        + [Sample((grid(3, 2), grid(3, 1)), {"dim": 0}), Sample((x[:0], x[:0]))],
        "cross": each((x, x[::-1], 1), (grid(3, 2), grid(3, 1), 0), (grid(2, 3, 4), grid(2, 3, 4)[::-1], -2)),
        "renorm": each((c, 2, 0, 3.0), (c, 1, 1, 2), (c, 3.5, -1, 2.0), (c, 2, 0, 100), numpy=renorm)
        + each((grid(2, 3, 4), 2, 1, 1.0), (z, 2, 0, 1.5), (z, 1, 1, 0.5), numpy=renorm)
        + each((c, math.inf, 0, 2.0), numpy=renorm)
        + each((np.zeros((2, 3)), 2, 0, 1.0), (c, 2, 0, 0), smooth=False, oracle_grad=False)
        + each((np.zeros((0, 3)), 2, 0, 1.0)),
    }


def cdist(x, y, p=2.0):
    difference = np.abs(x[..., :, None, :] - y[..., None, :, :])
    return np.linalg.norm(difference, p, -1)


def renorm(a, p, dim, largest):
    slices = np.moveaxis(a, dim, 0)
    norms = np.array([np.linalg.norm(s.reshape(-1), p) for s in slices])
    factor = np.where(norms > largest, largest / (norms + 1e-7), 1)
    return np.moveaxis(slices * factor.reshape((-1,) + (1,) * (a.ndim - 1)), 0, dim)


def errors():
    x, y, z = grid(2, 3), grid(4, 3), complex_grid(2, 3)

    def calls(*cases):
        return [Sample(case) for case in cases]

    return {
        "cdist": calls(
            (x, y, -1), (x, y, 2, "foo"), (x[0], y), (x, y[0]), (x, y[:, :2]), (integers(2, 3), y), (z, z),
            (x, y.astype(np.float32)), (x, [1]), (grid(3, 2, 3), grid(4, 2, 3)),
        ),
        "linalg_cross": calls((x, y), (x, y[0]), (x[:, :2], x[:, :2]), (x, x.astype(np.float32)), (x, 3)),
        "cross": calls((x, x, 0), (x, x, 5), (x > 0, x > 0, 1), (x, 3)),
        "renorm": calls(
            (x[0], 2, 0, 1.0), (x, 0, 0, 5.0), (x, -1, 0, 5.0), (x, 2, 0, -5.0), (x, 2, 5, 5.0),
            (integers(2, 3), 2, 0, 5.0), (x, "a", 0, 1), (x, 2, 0, "a"),
        ),
    }  # fmt: skip
