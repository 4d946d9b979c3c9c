"""Samples of reductions of segments."""

import numpy as np
from ops.sample import Sample, grid

REDUCE = {"sum": np.sum, "mean": np.mean, "max": np.max, "min": np.min, "prod": np.prod}


def reduced(data, reduce, *, lengths=None, offsets=None, axis=0, initial=None):
    """The result by a loop over segments, along the first dimension or, in rows, the second."""
    if axis == 1:
        bounds = [None] * len(data) if offsets is None else offsets
        rows = zip(data, [None] * len(data) if lengths is None else lengths, bounds)
        return np.stack([reduced(row, reduce, lengths=n, offsets=b, initial=initial) for row, n, b in rows])
    offsets = np.append(0, np.cumsum(lengths)) if offsets is None else offsets
    function = REDUCE[{"amax": "max", "amin": "min"}.get(reduce, reduce)]
    empty = {"sum": 0.0, "prod": 1.0, "mean": np.nan, "max": -np.inf, "min": np.inf}
    found = []
    for first, end in zip(offsets[:-1], offsets[1:]):
        rows = data[first:end]
        if initial is not None:
            rows = np.concatenate([np.full((1, *data.shape[1:]), initial), rows])
        value = function(rows, 0) if len(rows) else np.full(data.shape[1:], empty[reduce])
        if reduce == "mean" and initial is not None and end > first:
            value = value * len(rows) / (end - first)  # the initial value is in the sum and not in the number
        found.append(value)
    return np.stack(found)


def samples():
    data, lengths = grid(6), np.array([2, 1, 3])
    calls = [Sample((data, kind), {"lengths": lengths}, numpy=reduced) for kind in (*REDUCE, "amax", "amin")]
    calls += [Sample((grid(5, 2), kind), {"lengths": np.array([2, 3])}, numpy=reduced) for kind in REDUCE]
    rows = {"lengths": np.array([[2, 2], [2, 2]]), "axis": 1}
    calls += [Sample((grid(2, 4, 3), kind), rows, numpy=reduced) for kind in REDUCE]
    start = {"lengths": np.array([2, 0, 4]), "initial": 0.5}
    calls += [Sample((data, kind), start, numpy=reduced, smooth=False) for kind in REDUCE]
    return {"segment_reduce": calls}


def errors():
    def call(**options):
        return Sample((grid(5), "sum"), options)

    return {
        "segment_reduce": [
            call(),
            call(lengths=np.array([2, 2])),
            call(lengths=np.array([7, -2])),
            call(indices=np.array([0, 1])),
            Sample((grid(5), "median"), {"lengths": np.array([5])}),
            Sample((np.arange(5), "sum"), {"lengths": np.array([5])}),
        ]
    }
