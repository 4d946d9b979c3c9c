"""Samples for sums that skip NaN, quantiles, covariances and similar."""

import math

import numpy as np
from ops.sample import Sample, booleans, complex_grid, grid, integers

NAN = math.nan
NANS = np.array([[1.0, NAN, 0.5, 2.0], [3.0, -1.0, NAN, NAN]])


def calls(*cases, **more):
    """Make samples from arguments or (arguments, keywords)."""
    return [
        Sample(*case, **more) if len(case) == 2 and isinstance(case[1], dict) else Sample(case, **more)
        for case in cases
    ]


def samples():
    x, z, i, p, scalar, vector = grid(3, 4), complex_grid(2, 3), integers(2, 3), booleans(4), np.asarray(0.7), grid(5)
    over = calls((x,), (x, 0), ((x,), {"dim": -1, "keepdim": True}), (x, (0, 1)), (vector,))
    places = np.array([0.2, 0.3, 0.9])
    spread = calls((x,), (x, 1), (x, 0, False), ((x, (0, 1)), {"correction": 2}), ((x, 0), {"keepdim": True}), (z,))
    return {
        "nansum": [*over, *calls((i,), (p, 0), (scalar,)), *calls((NANS,), (NANS, 1), smooth=False)],
        "nanmean": [*over, *calls((scalar,)), *calls((NANS,), (NANS, 0, True), smooth=False)],
        "var_mean": [*spread, *calls(((x,), {"unbiased": False}), (x, True))],
        "std_mean": spread,
        "aminmax": [
            *calls((x,), ((x,), {"dim": 0}), ((x,), {"dim": -1, "keepdim": True}), (i,), (scalar,)),
            *calls((np.array([1.0, 1.0, 0.0, 0.0]),), (NANS,), smooth=False),
        ],
        "both_extrema": [
            Sample(
                (x, axes, keep), numpy=lambda a, axes, keep: (a.min(axes, keepdims=keep), a.max(axes, keepdims=keep))
            )
            for axes, keep in (((0,), False), ((0, 1), False), ((1,), True))
        ],
        "quantile": [
            Sample((x, 0.3), numpy=np.quantile),
            *calls((x, places), (x, places, 0), (x, 0.7, 1, True), (x, places, 1, True), ((x, 0.5), {"keepdim": True})),
            *(Sample((x, 0.4, 1), {"interpolation": how}) for how in ("lower", "higher", "midpoint", "nearest")),
            *calls((scalar, 0.5), (vector, np.asarray(0.3))),
            *calls((NANS, 0.5, 1), (x, np.array([0.0, 1.0])), smooth=False),
        ],
        "nanquantile": [*calls((x, 0.3), (x, places, 0)), *calls((NANS, 0.5, 1), (NANS, places), smooth=False)],
        "cov": [
            Sample((x,), numpy=np.cov),
            *calls((vector,), ((x,), {"correction": 0}), (z,), (i,), (scalar * np.ones(2),)),
            *calls(((x,), {"fweights": np.array([1, 2, 3, 1])}), ((x,), {"aweights": np.array([0.5, 2.0, 1.0, 1.0])})),
        ],
        "corrcoef": [Sample((x,), numpy=np.corrcoef), *calls((z,), (vector,))],
    }


def errors():
    x, z, i, p = grid(2, 3), complex_grid(2, 3), integers(2, 3), booleans(4)
    single = np.float32(x)
    return {
        "nansum": calls((z,), (None,), (x, 2)),
        "nanmean": calls((i,), (None,), (x, 2)),
        "var_mean": calls((i,), (x, 2)),
        "std_mean": calls((i,), (x, 2)),
        "aminmax": calls((z,), (np.zeros(0),), ((np.zeros((0, 2)),), {"dim": 0}), ((x,), {"dim": 2})),
        "quantile": calls(
            (x, 1.5), (i, 0.5), (np.zeros(0), 0.5), (x, single[0]), (x, np.array([2.0])), (x, x), (x, "a"), (x, 0.5, 2)
        )
        + calls(((x, 0.5), {"interpolation": "x"})),
        "cov": calls((np.ones((2, 2, 2)),), (p,), ((x,), {"fweights": x[0]}), ((x,), {"aweights": np.array([1.0])}))
        + calls(((x,), {"aweights": -np.ones(3)}), ((x,), {"fweights": i})),
        "corrcoef": calls((np.ones((2, 2, 2)),)),
    }
