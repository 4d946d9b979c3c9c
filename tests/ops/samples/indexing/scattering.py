"""Samples of indexed writes and indexed reductions."""

import numpy as np
from ops.sample import Sample, grid, integers, positive

PLACES = np.array([[0, 2, 1], [1, 1, 0]])
DISTINCT = np.array([[0, 2, 1], [1, 3, 0]])
ROWS = np.array([2, 0, 2])


def samples():
    x, p, s = grid(4, 3), positive(4, 3), grid(2, 3)
    complex_x, complex_s = x + 1j * grid(4, 3)[::-1], s - 1j * s
    zeros = np.array([[0.0, 2.0, 3.0], [0.5, 0.0, 4.0]])
    slices = grid(3, 3)
    ties = np.array([[1.0, 2.0, 2.0], [3.0, 2.0, 1.0]])

    def reduced(reduce, a=x, source=s, **how):
        return [
            Sample((a, 0, PLACES, source, reduce), kwargs, numpy=scatter_reduce, **how)
            for kwargs in ({}, {"include_self": False})
        ]

    def by_slices(reduce, a=p, source=slices, **how):
        return [
            Sample((a, 0, ROWS, source, reduce), kwargs, numpy=index_reduce, **how)
            for kwargs in ({}, {"include_self": False})
        ]

    return {
        "scatter": [
            Sample((x, 0, DISTINCT, s), numpy=scatter),
            Sample((x, 1, DISTINCT[:, :2] % 3, s[:, 1:]), numpy=scatter),
            Sample((x, -2, DISTINCT, s), numpy=scatter),
            Sample((complex_x, 0, DISTINCT, complex_s), numpy=scatter),
            # PyTorch has no gradient if the source is larger than the index
            Sample((x, 0, DISTINCT[:, :2], x), numpy=scatter, oracle_grad=False),
            Sample((integers(4), 0, np.array([3, 1]), integers(3)), numpy=scatter),
            Sample((grid(3), 0, np.array(1), grid()), numpy=None),
            Sample((grid(), 0, np.array([0]), grid(1)), numpy=None),
            Sample((x, 0, np.zeros((0, 3), int), s), numpy=lambda a, *_: a, oracle_grad=False),
            Sample((x, 0, PLACES.astype(np.int32)[:, :1], s), oracle_grad=False),
        ],
        "scatter.value": [
            Sample((x, 0, PLACES, 5), numpy=scatter),
            Sample((x, 1, PLACES, 0.5), numpy=scatter),
            Sample((x, 1, PLACES), {"value": -1.5}, numpy=lambda a, d, i, value: scatter(a, d, i, value)),
            Sample((integers(4), 0, np.array([3, 1]), 2.7), numpy=scatter),
            Sample((complex_x, 0, PLACES, 2j), numpy=scatter),
            Sample((grid(), 0, np.array(0), 3)),
        ],
        "scatter_reduce": [
            *reduced("prod"),
            *reduced("prod", p, zeros),
            *reduced("prod", zeros[:, ::-1].repeat(2, 0), p[:2]),
            *reduced("amax"),
            *reduced("amin"),
            *reduced("amax", np.full((4, 3), 2.0), ties, smooth=False, oracle_grad=False),
            Sample((np.full((4, 3), 2.0), 0, PLACES, ties, "amin"), smooth=False),
            *reduced("prod", integers(4, 3), integers(2, 3)),
            Sample((grid(), 0, np.array(0), grid(), "prod")),
            Sample((x, 0, PLACES[:, :2], s, "prod"), oracle_grad=False),
        ],
        "scatter_reduce.sum": [
            *reduced("sum"),
            *reduced("mean"),
            *reduced("sum", complex_x, complex_s, grad=False),  # PyTorch raises for the gradient
            *reduced("mean", integers(4, 3), integers(2, 3), grad=False),
            Sample((x, 1, PLACES, s, "sum")),
            Sample((x, 1, PLACES[:1], s, "mean"), oracle_grad=False),
            Sample((grid(), 0, np.array(0), grid(), "mean")),
        ],
        "index_reduce": [
            *by_slices("prod"),
            *by_slices("prod", x, np.array([[0.0, 1.0, 2.0], [3.0, 0.0, 1.0], [2.0, 2.0, 5.0]])),
            *by_slices("mean"),
            *by_slices("amax"),
            *by_slices("amin"),
            Sample((p, 1, ROWS, positive(4, 3)[::-1], "mean"), numpy=index_reduce),
            Sample((integers(4), 0, ROWS, integers(3), "mean"), numpy=index_reduce),
        ],
        "index_copy": [
            Sample((x, 0, np.array([3, 1]), s), numpy=index_copy),
            Sample((x, 1, np.array([2]), grid(4, 1)), numpy=index_copy),
            Sample((x, 0, np.array(1), grid(1, 3)), numpy=index_copy),
            Sample((complex_x, 0, np.array([3, 1]), complex_s), numpy=index_copy),
            Sample((integers(4), 0, np.array([3, 1]), integers(2)), numpy=index_copy),
            Sample((grid(), 0, np.array([0]), grid(1)), oracle_grad=False),
            Sample((grid(3), 0, np.array(1), grid())),
            Sample((x, 0, np.zeros(0, int), np.zeros((0, 3))), numpy=lambda a, *_: a),
        ],
        "index_fill": [
            Sample((x, 0, np.array([3, -4, 3]), 5), numpy=index_fill),
            Sample((x, 1, np.array(2), 0.5), numpy=index_fill),
            Sample((integers(4), 0, np.array([0]), 2.5), numpy=index_fill),
            Sample((complex_x, 0, np.array([0]), 2j), numpy=index_fill),
            Sample((grid(), 0, np.array([0]), 3.0)),
            Sample((x, 0, np.zeros(0, int), 3.0), numpy=lambda a, *_: a),
        ],
        "index_fill.Tensor": [
            Sample((x, 0, np.array([3, 1]), grid()), numpy=index_fill),
            # PyTorch counts a slice twice if both a positive and a negative index name it
            Sample((x, 0, np.array([3, -1, 1, 1]), grid()), numpy=index_fill, oracle_grad=False),
            Sample((x, 1, np.array(0), np.array(2)), numpy=index_fill),
        ],
    }


def open_mesh(shape, dim, index):
    places = list(np.indices(index.shape))
    places[dim] = index
    return tuple(places)


def scatter(a, dim, index, source):
    out = a.copy()
    if isinstance(source, np.ndarray):
        source = source[tuple(map(slice, index.shape))]
    out[open_mesh(a.shape, dim, index)] = source
    return out


def scatter_reduce(a, dim, index, source, reduce, include_self=True):
    kind = a.dtype
    out = a.astype(object)
    found = {}
    for at in np.ndindex(index.shape):
        to = list(at)
        to[dim] = index[at]
        found.setdefault(tuple(to), [a[tuple(to)]] if include_self else []).append(source[at])
    for to, values in found.items():
        out[to] = {
            "sum": np.sum,
            "prod": np.prod,
            "amax": np.max,
            "amin": np.min,
            "mean": lambda v: sum(v) // len(v) if kind.kind == "i" else np.mean(v),
        }[reduce](values)
    return out.astype(kind)


def index_reduce(a, dim, index, source, reduce, include_self=True):
    along = np.broadcast_to(index[:, None] if dim == 0 and a.ndim > 1 else index, source.shape)
    return scatter_reduce(a, dim, along, source, reduce, include_self)


def index_copy(a, dim, index, source):
    out = a.copy()
    out[(slice(None),) * dim + (index.reshape(-1),)] = source
    return out


def index_fill(a, dim, index, value):
    return index_copy(a, dim, index, value)


def errors():
    x, s, v, i = grid(4, 3), grid(2, 3), grid(3), np.array([1])
    single = s.astype(np.float32)
    return {
        "scatter": [
            Sample(args)
            for args in (
                (x, 0, PLACES.astype(float), s),
                (x, 0, PLACES.astype(np.int16), s),
                (x, 0, PLACES, single),
                (x, 0, PLACES + 9, s),
                (x, 0, PLACES - 1, s),
                (x, 0, PLACES[0], s),
                (x, 0, np.zeros((5, 5), int), s),
                (x, 2, PLACES, s),
                (x, 0, PLACES, "a"),
                (x, 0, PLACES),
                (x, 0, [1], s),
                (x, 0, PLACES, 2j),
            )
        ]
        + [Sample((x, 0, PLACES, 3.0), {"reduce": "foo"})],
        "scatter_reduce": [
            Sample(args)
            for args in (
                (x, 0, PLACES, s, "foo"),
                (x, 0, PLACES, single, "sum"),
                (x, 0, PLACES + 9, s, "sum"),
                (x, 0, PLACES[0], s, "sum"),
                (x, 0, PLACES, 3, "sum"),
                (x, 0, PLACES * 1.0, s, "sum"),
                (x * 1j, 0, PLACES, s * 1j, "amax"),
            )
        ],
        "index_reduce": [
            Sample(args)
            for args in (
                (x, 0, np.array([1, 1]), s, "sum"),
                (x, 0, np.array([1, 9]), s, "prod"),
                (x, 0, np.array([1, -1]), s, "prod"),
                (x, 0, i, s, "prod"),
                (x, 0, np.array([1.0, 2]), s, "prod"),
                (x, 0, np.array([1, 2]), single, "prod"),
                (x, 0, np.array([1, 2]), s[:, :2], "prod"),
                (x, 0, np.array([[1, 2]]), s, "prod"),
            )
        ],
        "index_copy": [
            Sample(args)
            for args in (
                (x, 0, np.array([1, 9]), s),
                (x, 0, np.array([1, -1]), s),
                (x, 0, i, s),
                (x, 0, np.array([1.0, 2.0]), s),
                (x, 0, np.array([1, 2], np.int32), s),
                (x, 0, np.array([1, 2]), single),
                (x, 0, np.array([1, 2]), s[:, :2]),
                (x, 0, np.array([[1, 2]]), s),
                (x, 0, np.array(1), v),
                (x, 2, i, grid(1, 3)),
                (x, 0, np.array([1, 2]), 5),
                (x, 1, np.array([0]), grid()),
                (v, 0, np.array([0, 1]), grid()),
            )
        ],
        "index_fill": [
            Sample(args)
            for args in (
                (x, 0, np.array([1, 4]), 5),
                (x, 0, np.array([1, -5]), 5),
                (x, 0, i, 5j),
                (x, 0, i, np.array(5j)),
                (x, 0, i, v),
                (x, 0, np.array([[1]]), 5.0),
                (x, 0, np.array([1.0]), 5.0),
                (x, 0, np.array([1], np.int32), 5.0),
                (x, 3, i, 5.0),
                (x, 0, [1], 5.0),
                (x, 0, i, "a"),
            )
        ],
    }
