"""Samples for sorting, order statistics, and cumulative products and extrema."""

import math

import numpy as np
from ops.sample import Sample, booleans, complex_grid, grid, integers

NAN, INF = math.nan, math.inf
TIES = np.array([[3.0, 1.0, 1.0, 2.0], [1.0, 0.0, 1.0, 1.0]])
NANS = np.array([1.0, NAN, 0.0, 2.0, NAN])


def calls(*cases):
    """Make samples from arguments or (arguments, keywords)."""
    return [Sample(*case) if len(case) == 2 and isinstance(case[1], dict) else Sample(case) for case in cases]


def steps(*cases):
    return [Sample(case.args, case.kwargs, smooth=False) for case in calls(*cases)]


def samples():
    return {**orders(), **scans(), **differences()}


def orders():
    x, i, p, scalar = grid(2, 3, 2), integers(4), booleans(5), np.asarray(1.5)
    empty, none = np.zeros((0, 3)), np.zeros((2, 0))
    along = calls((x, 0), (x, -1), ((x,), {"dim": 1}), (grid(5), 0), (i, 0), (scalar, 0), (none, 0), (x, 1, True))
    kept = calls((x, 0, True), ((x,), {"dim": -1, "keepdim": True}))
    return {
        "sort": [
            Sample((x,), numpy=lambda a: (np.sort(a), np.argsort(a))),
            *calls((x, 0), (x, 1, True), (i,), (p,), (p, 0, True), (scalar,), (scalar, 0), (empty, 0), (none,)),
            *calls(((x,), {"dim": 1, "descending": True})),
            *steps((TIES,), (NANS,), (NANS, 0, True), (np.array([INF, -INF, NAN, 0.0]),)),
        ],
        "sort.stable": [
            *calls(
                ((x,), {"stable": True}),
                ((i,), {"stable": True, "dim": 0}),
                ((x,), {"dim": 0, "descending": True, "stable": False}),
            ),
            *steps(((TIES,), {"stable": True, "descending": True})),
        ],
        "argsort": calls((x,), (x, 0), (x, 1, True), ((TIES,), {"stable": True}), (scalar,), (empty, 0)),
        "msort": calls((x,), (i,), (scalar,), (empty,)),
        "msort.values": [Sample((i,), numpy=np.sort)],
        "topk": [
            *calls(
                (x, 2),
                (x, 1, 0),
                (x, 2, 1, False),
                (np.arange(4), 2),
                (scalar, 1),
                (x, 0),
                (empty, 0, 0),
                (grid(100), 3),
            ),
            *calls((grid(3, 50), 4, -1, False), ((x,), {"k": 2, "dim": 1}), ((grid(6),), {"k": 6})),
            *steps((NANS[:4], 2), (NANS[:4], 4, 0, False)),
        ],
        "kthvalue": [
            *calls((x, 2), (x, 1, 0), (x, 2, 1, True), (grid(9), 5), (scalar, 1), (empty, 1, 1), (i[:1], 1)),
            *steps((NANS[:4], 4)),
        ],
        "median": [
            Sample((grid(5),), numpy=np.median),
            *calls((x,), (integers(5),), (scalar,)),
            *steps((NANS,), (TIES,), (np.zeros(0),)),
        ],
        "median.dim": [*along[:-1], *kept, *steps((NANS, 0))],
        "nanmedian": [*calls((x,), (grid(5),), (integers(5),)), *steps((NANS,), (np.array([NAN, NAN]),))],
        "nanmedian.dim": [*along[:-1], *kept, *steps((NANS, 0), (np.stack([NANS, NANS[::-1]]), 1))],
        "mode": [
            *along[:-1],
            *kept,
            *calls((np.array([3, 1, 1, 3, 2]),), (p,)),
            *steps((TIES,), (TIES, 0), (np.repeat([1.0, 2.0], [2, 3]), 0)),
        ],
    }


def scans():
    x, z, i, p, scalar = grid(2, 3), complex_grid(2, 3), integers(2, 3), booleans(4), np.asarray(1.5)
    empty, none = np.zeros((0, 3)), np.zeros((2, 0))
    zeros = [np.array([2.0, 0.0, 3.0, -1.0]), np.array([2.0, 0.0, 3.0, 0.0, 1.5]), np.array([[0.0, 1.0], [2.0, 0.0]])]
    shapes = ((empty, 0), (none, 1), (scalar, 0), (scalar, -1))

    def both(function, *cases, **more):
        return [Sample(case, numpy=function, **more) for case in cases]

    def logsum(a, dim):
        return np.logaddexp.accumulate(a, dim)

    wide = np.array([-1000.0, 0.0, 700.0, -5.0])
    edges = np.array([-INF, -INF, 0.0, -INF, 1.0])
    return {
        "cumprod": [
            *both(np.cumprod, (x, 0), (x, -1), (z, 1), (i, 0), (p, 0), (empty, 0), (none, 1)),
            *both(np.cumprod, *((a, -1) for a in zeros)),
            *calls((scalar, 0), ((i, 1), {"dtype": float})),
        ],
        "cummax": [*calls((x, 0), (x, -1), (i, 1), (p, 0), *shapes), *steps((TIES, 1), (NANS, 0))],
        "cummin": [*calls((x, 0), (x, -1), (i, 1), (p, 0), *shapes), *steps((TIES, 1), (NANS, 0))],
        "logcumsumexp": [
            *both(logsum, (x, 0), (x, -1), (wide, 0), (empty, 0), (none, 1)),
            *calls((z, 1), (scalar, 0)),
            Sample((edges, 0), smooth=False, oracle_grad=False),  # PyTorch's is NaN for exp(-inf) = 0
        ],
    }


def differences():
    x, z, i, p = grid(3, 4), complex_grid(2, 3), integers(5), booleans(5)
    places = np.array([0.0, 1.0, 1.5, 4.0])
    return {
        "diff": [
            Sample((x,), numpy=np.diff),
            Sample((x, 2, 0), numpy=lambda a, n, dim: np.diff(a, n, dim)),
            *calls(
                (x, 0), (x, 9), (z, 1, 0), (i,), (p,), ((x,), {"prepend": x[:, :1], "append": x}), ((x,), {"dim": 0})
            ),
        ],
        "trapezoid": [
            Sample((x,), numpy=np.trapezoid),
            Sample((x, places), numpy=np.trapezoid),
            *calls(
                ((x,), {"dx": 0.5, "dim": 0}), (x, x * 2 + 1), (i,), (z,), ((x, places[:3]), {"dim": 0}), (np.zeros(0),)
            ),
        ],
        "trapz": calls((x,), (x, places)),
        "cumulative_trapezoid": calls((x,), (x, places), ((x,), {"dx": 2, "dim": 0}), (i,), (z,), (x, x * 2 + 1)),
    }


def errors():
    x, z, i, p, scalar = grid(2, 3), complex_grid(2, 3), integers(2, 3), booleans(4), np.asarray(1.5)
    no_dims = [(x, 2), (x, -3), (scalar, 1)]
    none = np.zeros((2, 0))
    return {
        "sort": calls(*no_dims, (z,)),
        "argsort": calls(*no_dims, (z,)),
        "topk": calls((x, 4), (x, -1), (x, 1.5), (x, 1, 2), (z, 1), (p, 1), (x, 1, "a")),
        "kthvalue": calls((x, 0), (x, 4), (p, 1), (z, 1), (x, 1, 2), (none, 1), (x, 1.5)),
        "median": calls(*no_dims, (p,), (z,), (p, 0), (none, 1), (x, "a"), ((x, 0), {"keepdim": 1})),
        "nanmedian": calls(*no_dims, (p,), (none, 1)),
        "mode": calls(*no_dims, (z,), (none, 1)),
        "cumprod": calls(*no_dims, (x,), (x, "a")),
        "cumprod_": calls((p, 0)),
        "cummax": calls(*no_dims, (x,), (z, 0)),
        "cummin": calls(*no_dims, (z, 0)),
        "logcumsumexp": calls(*no_dims, (i, 0)),
        "diff": calls((scalar,), (x, -1), (x, 1, 2), (x, 1.5)),
        "trapezoid": calls((scalar,), (p,), (x, grid(2)), ((x,), {"dim": 2})),
        "cumulative_trapezoid": calls((scalar,), (p,)),
    }
