"""Samples of binary search, unique elements, and histograms."""

import math

import numpy as np
from ops.sample import Sample, grid, integers

NAN = math.nan


def samples():
    edges, i = np.array([1.0, 2.0, 4.0]), integers(7, low=0, high=4)
    rows = np.array([[1, 2], [0, 5], [1, 2], [0, 4]])
    sequences, wanted = np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([[1.0, 5.0, 2.0], [3.5, 1.0, 9.0]])
    values, weights = np.array([1.0, 2.0, 4.0, 2.5, 3.0, 1.0]), grid(7)
    points = np.array([[0.0, 1.0], [1.0, 0.0], [2.0, 2.0], [0.5, 0.25]])

    def plain(*calls, numpy=None, single=True):
        return [Sample(call, numpy=numpy, grad=False, single=single) for call in calls]

    def named(args, kwargs, **how):
        return Sample(args, kwargs, grad=False, **how)

    return {
        "searchsorted": plain(
            (edges, np.array([0.0, 1, 3, 5])), (edges, np.array([[1.0, 2], [3, 4]])), (edges, np.array(3.0)),
            (edges, 2), (edges, 3.5), (edges, np.array([2, 3])), (edges, np.array([NAN])), (np.zeros(0), values),
            numpy=np.searchsorted,
        )
        + plain((sequences, wanted), (sequences[None], wanted[None]))
        + [
            named((edges, values), {"right": True}),
            named((edges, values), {"side": "right", "out_int32": True}),
            named((edges[[2, 0, 1]], values), {"sorter": np.array([1, 2, 0])}),
        ],
        "bucketize": plain((values, edges), (grid(2, 3), edges), (np.array(2.0), edges), (3.0, edges), (i, edges))
        + [named((values, edges), {"right": True, "out_int32": True})],
        "isin": plain((i, np.array([1, 5])), (i, 1), (1, i), (rows, np.array([1.0, 5])), numpy=np.isin)
        + plain((rows, np.zeros(0)), (np.array([NAN]), np.array([NAN])), (np.array(1), i), numpy=np.isin)
        + [named((i, np.array([1])), {"invert": True, "assume_unique": False}), named((1, i), {"invert": True})],
        "unique": plain((i,), (values,), (np.array(3),), (np.zeros(0),), (np.array([True, False]),), numpy=np.unique)
        + plain((i, True, True, True), (rows, True, True), (rows, False, False, True))
        + plain((np.array([NAN, 1, NAN]), True, True), (values.astype(np.float16),))
        + [named((rows,), {"dim": d, "return_inverse": True, "return_counts": True}) for d in (0, 1, -1)]
        + [named((grid(3, 2, 2),), {"dim": 1}), named((np.zeros((0, 2)),), {"dim": 0, "return_inverse": True})],
        "unique_consecutive": plain((i, True, True), (rows,), (np.array(3), True, True), (np.zeros(0), False, True))
        + plain((np.array([NAN, NAN, 1, 1]),))
        + [named((rows[[0, 2, 1]],), {"dim": d, "return_inverse": True, "return_counts": True}) for d in (0, 1)],
        "bincount": plain((i,), (np.zeros(0, int),), (i.astype(np.uint8),), numpy=np.bincount)
        + [named((i,), {"minlength": 9}), named((np.zeros(0, int),), {"minlength": 2})]
        + [Sample((i, weights), oracle_grad=False, numpy=np.bincount), Sample((i, weights, 9), oracle_grad=False)]
        + [named((i, integers(7)), {}, single=False), named((i, integers(7).astype(np.int32)), {}, single=False)],
        "histc": plain((values, 4), (values, 3, 0, 4), (values, 5, 1.5, 3.5), (grid(2, 3), 3), (np.zeros(0), 3))
        + plain((np.array([1.0, 1.0]), 3), (np.array([NAN, 1.0]), 3, 0, 2), (values,)),
        "histogram": plain((values, 3), (values, edges), (np.zeros(0), 3), (np.array([1.0, 1.0]), 2))
        + [
            named((values, 3), {"range": (0.0, 5.0)}),
            named((values, 4), {"weight": grid(6)}),
            named((values, 4), {"weight": values, "density": True}),
            named((values, edges), {"density": True}),
        ],
        "histogramdd": plain((points, 2)) + [named((points, [2, 3]), {"range": [0.0, 2.0, 0.0, 4.0], "density": True})],
    }  # fmt: skip


def errors():
    edges, i = np.array([1.0, 2.0, 4.0]), integers(4, low=0, high=4)
    square, three = grid(2, 2), np.array([3.0])

    def calls(*cases):
        return [Sample(case) for case in cases]

    return {
        "searchsorted": calls((square, grid(2)), (square, 1.0), (np.array(4.0), three), (edges, three * 1j))
        + [
            Sample((edges, three), {"side": "left", "right": True}),
            Sample((edges, three), {"side": "foo"}),
            Sample((edges, three), {"sorter": np.array([1, 2])}),
            Sample((edges, three), {"sorter": np.array([1, 2, 5])}),
            Sample((edges, three), {"sorter": np.array([1.0, 2, 0])}),
        ],
        "bucketize": calls((three, square)),
        "isin": calls((i, [1]), (1, 1), (i > 0, i > 0), (three * 1j, three * 1j)),
        "unique": [
            Sample((np.zeros((0, 2)),), {"dim": 1}),
            Sample((np.array(3),), {"dim": 0}),
            Sample((square,), {"dim": 2}),
            *calls((three * 1j,), ([1],)),
        ],
        "bincount": calls((edges,), (i.reshape(2, 2),), (i - 9,), (np.array(1),), (i > 0,), (i, three), (i, None, -1))
        + calls((np.array([0, 2**63 - 1]),)),
        "histc": calls((edges, 0), (edges, 3, 5, 1), (np.array([math.inf, 1]), 3), (i, 3)),
        "histogram": [
            *calls((edges, 0), (edges, square), (edges, three), (i, 3)),
            Sample((edges, 3), {"range": (4.0, 0.0)}),
            Sample((edges, 3), {"range": (4.0,)}),
            Sample((edges, 3), {"weight": grid(2)}),
            Sample((edges, 3), {"weight": edges.astype(np.float32)}),
        ],
    }  # fmt: skip
