"""Samples for sums, means, products, variances, norms, extrema, all and any."""

import math

import numpy as np
from ops.sample import Sample, booleans, complex_grid, grid, integers

NAN, INF = math.nan, math.inf


def samples():
    return {**sums(), **scans(), **spreads(), **norms(), **extrema(), **positions(), **truths()}


def errors():
    x, z, i, p = grid(2, 3), complex_grid(2, 2), integers(2, 3), booleans(2, 3)
    empty, scalar = np.zeros((0, 3)), np.asarray(1.5)
    no_elements = [(empty,), ((empty, 0), {})]
    no_dims = [((x, 2), {}), ((x, -3), {}), ((scalar, 1), {})]
    twice, kept = ((x, (0, 0)), {}), ((x,), {"keepdim": True})

    def calls(*cases):
        return [Sample(*case) if isinstance(case[0], tuple) else Sample(case) for case in cases]

    return {
        "sum": calls(*no_dims, twice, ("a",), ((x, 1.0), {}), ((x, True), {}), ((x, 0, 1), {})),
        "mean": calls(*no_dims, twice, (i,), ((p, 0), {}), ((x,), {"dtype": int}), ((x, 0.5), {})),
        "prod": calls(*no_dims, ((x, (0, 1)), {}), ((x, 1.0), {}), kept),
        "cumsum": calls(*no_dims, ((x, (0, 1)), {}), ((x, 1.0), {})),
        "cumsum_": calls(((p, 0), {})),
        "logsumexp": calls(*no_dims, twice, ((x, 1.0), {}), ((x, True), {})),
        "sum_to_size": calls(((x, 4), {}), ((x, 2, 2, 3), {})),
        "var": calls(*no_dims, twice, (i,), ((x, 1.0), {}), ((x, 0, 1), {}), ("a",)),
        "std": calls(*no_dims, (p,), ((x, 0, True), {"correction": 1})),
        "norm": calls(
            (i,),
            ((x, (1, 2)), {}),
            ((x, 2, 5), {}),
            ((x, 2, (0, 0)), {}),
            ((x, 2, 1.5), {}),
            ((x,), {"dtype": int}),
            ((np.zeros(0), INF), {}),
            ((np.zeros(0), -1), {}),
            ((empty, INF, 0), {}),
        ),
        "max": calls(*no_dims, kept, (z,), (empty,), ((empty, 0), {}), ((x, (0, 1)), {}), ((x, 1.0), {})),
        "min": calls(*no_dims, *no_elements, kept, ((z, 0), {}), ((x, grid(4)), {})),
        "amax": calls(*no_dims, twice, (z,), (empty,), ((empty, 0), {}), ((x, 1.0), {}), ((x, True), {})),
        "amin": calls(*no_dims, (z,), ((empty, (0, 1)), {})),
        "argmax": calls(*no_dims, (p,), (z,), (empty,), ((empty, 0), {}), ((x, (0, 1)), {}), ((x, 1.0), {})),
        "argmin": calls(((x, True), {}), ("a",)),
        "all": calls(*no_dims, twice, ("a",), ((x, 1.0), {})),
        "any": calls(*no_dims, ((x, True), {})),
        "count_nonzero": calls(*no_dims, twice, ((x, 1.0), {}), ("a",)),
        "nonzero": calls(("a",)),
    }


def along(function, **fixed):
    """A NumPy function of (a, axis, keepdims) with PyTorch's argument names."""

    def call(a, dim=None, keepdim=False, **named):
        axis = tuple(dim) if isinstance(dim, list) else dim
        return function(
            a,
            axis=axis or None if isinstance(axis, tuple) else axis,
            keepdims=keepdim,
            **fixed,
            **named,
        )

    return call


def over_dims(function, *arrays, tuples=True, **more):
    """Samples over one, several and negative dimensions, with and without keepdim; and over dimension 0 of `arrays`."""
    x = grid(2, 3, 2)
    calls = [
        ((0,), {}),
        ((-1,), {}),
        ((1, True), {}),
        ((), {"dim": 2, "keepdim": True}),
        ((0,), {"keepdim": True}),
    ]
    if tuples:
        calls += [(((0, 2),), {}), (([1],), {}), (((0, 1, 2),), {}), (((-1, 0), True), {})]
    return [
        *(Sample((x, *args), kwargs, function, **more) for args, kwargs in calls),
        *(Sample((a, 0), numpy=function, **more) for a in (grid(3), *arrays)),
    ]


# --- Sums, means, products ---------------------------------------------------------------------


def sums():
    x, z, i, p = grid(2, 3), complex_grid(2, 2), integers(2, 3), booleans(2, 3)
    total, mean, product = along(np.sum), along(np.mean), along(np.prod)
    empty, scalar = np.zeros((0, 3)), np.asarray(1.5)
    zeros = [np.array(row) for row in ([3.0, 0.0, 2.0, -1.5], [0.0, 3.0, 0.0, 2.0], [0.0, 0.0, 0.0])]
    table = np.array([[1.0, 0.0, 3.0], [0.0, 0.0, 2.0], [4.0, 5.0, 6.0]])

    def cast(function):
        return lambda a, *args, dtype, **named: function(a.astype(dtype), *args, **named)

    def whole(function, *arrays):
        return [Sample((a,), numpy=function) for a in arrays]

    return {
        "sum": [
            *whole(total, x, z, i, p, empty, scalar),
            Sample((i,), {"dtype": float}, cast(total)),
        ],
        "sum.dim": [
            *over_dims(total, z, i, p, empty),
            Sample((scalar, 0), numpy=lambda a, dim: a),
            Sample((i, 0), {"dtype": float}, cast(total)),
        ],
        "sum_to_size": [
            Sample((x, 1, 3), numpy=lambda a, *size: a.sum(0, keepdims=True)),
            Sample((x, (2, 1)), numpy=lambda a, size: a.sum(1, keepdims=True)),
            Sample((x, 3), numpy=lambda a, size: a.sum(0)),
            Sample((x, ()), numpy=lambda a, size: a.sum()),
        ],
        "mean": [*whole(mean, x, z, scalar), Sample((i,), {"dtype": float}, cast(mean))],
        "mean.dim": [*over_dims(mean, z), Sample((scalar, 0), numpy=lambda a, dim: a)],
        "prod": [*whole(product, x, z, i, p, empty, scalar, *zeros)],
        "prod.dim_int": [
            *over_dims(product, z, i, empty, *zeros, table, tuples=False),
            Sample((table, 1), numpy=product),
            Sample((scalar, 0), numpy=lambda a, dim: a),
        ],
        "shift": [
            Sample((x, 1, 1, 1), numpy=lambda a, *_: np.c_[np.ones(2), a[:, :2]]),
            Sample((x, 0, -1, 0), numpy=lambda a, *_: np.r_[a[1:], np.zeros((1, 3))]),
            Sample((x, 0, 5, 1), numpy=lambda a, *_: np.ones((2, 3))),
        ],
    }


def scans():
    x, scalar = grid(2, 3), np.asarray(1.5)

    def logsumexp(a, dim, keepdim=False):
        return np.log(along(np.sum)(np.exp(a), dim, keepdim))

    return {
        "cumsum": [
            *(Sample((a, dim), numpy=np.cumsum) for a in (x, complex_grid(2, 2), integers(2, 3)) for dim in (0, -1)),
            Sample((booleans(3), 0), numpy=np.cumsum),
            Sample((x,), {"dim": 1}, lambda a, dim: np.cumsum(a, dim)),
            Sample((np.zeros((0, 3)), 1), numpy=np.cumsum),
            Sample((scalar, 0), numpy=lambda a, dim: a),
        ],
        "logsumexp": [
            *over_dims(
                logsumexp,
                integers(2, 3),
                complex_grid(2, 2),
                np.zeros((0, 3)),
                np.array([-INF, 1.0]),
            ),
            Sample((scalar, 0), numpy=lambda a, dim: a),
            Sample(
                (np.array([[1000.0, 1000.0], [-1000.0, -1000.0]]), 1),
                numpy=lambda a, dim: a[:, 0] + math.log(2),
            ),
            Sample(
                (np.array([[-INF, -INF], [INF, 1.0]]), 1),
                numpy=lambda a, dim: a[:, 0],
                smooth=False,
                oracle_grad=False,  # PyTorch's gradient for infinities is NaN
            ),
        ],
    }


# --- Variance and norm -------------------------------------------------------------------------


def spreads():
    x, z = grid(2, 3, 2), complex_grid(2, 3)
    flat = np.ones((2, 3))

    def numpy_of(function):
        def call(a, dim=None, unbiased=True, keepdim=False, correction=None):
            if isinstance(dim, bool):
                dim, unbiased = None, dim
            return along(function)(a, dim, keepdim, ddof=int(unbiased) if correction is None else correction)

        return call

    def calls(function):
        expected = numpy_of(function)
        return [
            *(
                Sample((x, *args), numpy=expected)
                for args in [(), (0,), ((0, 2),), (False,), (1, False), (1, True, True)]
            ),
            *(Sample((x,), {"correction": c}, expected) for c in (0, 1, 2, 0.5)),
            Sample((x,), {"dim": -1, "keepdim": True}, expected),
            Sample((x,), {"unbiased": False}, expected),
            Sample((z,), numpy=expected),
            Sample((z, 1), numpy=expected),
            Sample((np.asarray(1.5),), {"correction": 0}, expected, smooth=False),
        ]

    return {
        "var": [*calls(np.var), Sample((flat, 0), numpy=numpy_of(np.var))],
        "std": [*calls(np.std), Sample((flat, 0), numpy=numpy_of(np.std), smooth=False)],
    }


def norms():
    x, z, scalar = grid(2, 3), complex_grid(2, 2), np.asarray(-1.5)
    zeros, partly = np.zeros(3), np.array([[0.0, 3.0, -4.0], [0.0, 0.0, 0.0]])
    orders = (1, 2, 3, 0.5, 1.5, 2.5, INF, -INF, -1)

    def norm(a, p=2, dim=None, keepdim=False, dtype=None):
        p, size = 2 if p == "fro" else p, np.abs(a)
        if p == 0:
            return along(np.sum)((size != 0).astype(float), dim, keepdim)
        if abs(p) == INF:
            return along(np.max if p > 0 else np.min)(size, dim, keepdim)
        return along(np.sum)(size**p, dim, keepdim) ** (1 / p)

    return {
        "norm": [
            *(Sample((x, p), numpy=norm) for p in orders),
            *(Sample((x, p, 1), numpy=norm) for p in orders),
            *(Sample((z, p), numpy=norm) for p in orders),
            *(Sample((a, p), numpy=norm, smooth=False) for p in (*orders[:-1], 0) for a in (zeros, partly)),
            *(Sample((partly, p, 1), numpy=norm, smooth=False) for p in (2, INF, 1)),
            *(Sample((np.array([2.0, -2.0, 1.0]), p), numpy=norm, smooth=False) for p in (INF, -INF)),
            Sample((x,), numpy=norm),
            Sample((x, "fro", (0, 1), True), numpy=norm),
            Sample((x,), {"p": 2, "dim": [0]}, norm),
            Sample((scalar,), numpy=norm),
            Sample((np.zeros((0, 3)),), numpy=norm, smooth=False),
        ],
        "linalg_vector_norm": [
            Sample((x, 2.0), numpy=norm),
            Sample((x, 3.0, (1,), True), numpy=norm),
            Sample((z,), {"dim": 0}),
            Sample((x,), {"dtype": float}),
        ],
    }


# --- Extrema -----------------------------------------------------------------------------------


def extrema():
    x, i, scalar = grid(2, 3), integers(2, 3), np.asarray(1.5)
    ties, with_nan = np.array([2.0, 1.0, 2.0]), np.array([NAN, 1.0, NAN])
    table = np.array([[1.0, 3.0, 3.0], [3.0, 2.0, 3.0]])

    def with_indices(best, where):
        def call(a, dim=0, keepdim=False, axis=None, keepdims=None):
            dim, keepdim = (
                (dim if axis is None else axis),
                (keepdim if keepdims is None else keepdims),
            )
            return best(a, axis=dim, keepdims=keepdim), where(a, axis=dim, keepdims=keepdim)

        return call

    def whole(function):
        return [
            *(Sample((a,), numpy=along(function)) for a in (x, i, scalar, booleans(3))),
            *(Sample((a,), numpy=along(function), smooth=False) for a in (ties, with_nan, table)),
        ]

    def picked(function):
        return [
            *over_dims(function, i, booleans(3), np.zeros((2, 0)), tuples=False),
            Sample((x,), {"axis": 1, "keepdims": True}, function),
            *(Sample((a, 0), numpy=function, smooth=False) for a in (ties, with_nan, table)),
            Sample((scalar, 0), numpy=lambda a, dim: (a, np.asarray(0))),
        ]

    def shared(function):
        return [
            *over_dims(along(function), i, booleans(3), np.zeros((2, 0))),
            *(Sample((a,), numpy=along(function)) for a in (x, i, scalar)),
            *(Sample((a, 0), numpy=along(function), smooth=False) for a in (ties, table)),
            Sample((table, (0, 1)), numpy=along(function), smooth=False),
        ]

    def pair(function):
        return [
            Sample((x, grid(3)), numpy=function),
            Sample((x,), {"other": grid(3)}, lambda a, other: function(a, other)),
        ]

    select = lambda a, index, dim, keepdim: np.take_along_axis(a, index[:, None], dim)[:, 0]  # noqa: E731
    return {
        "max": whole(np.max),
        "min": whole(np.min),
        "max.dim": picked(with_indices(np.max, np.argmax)),
        "min.dim": picked(with_indices(np.min, np.argmin)),
        "max.other": pair(np.maximum),
        "min.other": pair(np.minimum),
        "amax": shared(np.max),
        "amin": shared(np.min),
        "value_selecting_reduction": [Sample((x, np.array([2, 0]), 1, False), numpy=select)],
        "value_selecting_reduction_backward": [
            Sample((grid(2), np.array([2, 0]), (2, 3), 1, False), numpy=placed),
            Sample((np.asarray(0.5), np.asarray(0), (), 0, False), numpy=lambda g, *_: g),
        ],
    }


def placed(values, index, shape, dim, keepdim):
    out = np.zeros(shape)
    out[np.arange(len(values)), index] = values
    return out


def positions():
    x, i = grid(2, 3, 2), integers(2, 3)

    def calls(function):
        arrays = (x, i, np.array([2.0, 3.0, 3.0]), np.array([1.0, NAN, 2.0, NAN]), np.asarray(1.5))
        expected = along(function)
        return [
            *(Sample((a,), numpy=expected) for a in arrays),
            *over_dims(expected, i, tuples=False),
            Sample((x,), {"keepdim": True}, expected),
        ]

    return {"argmax": calls(np.argmax), "argmin": calls(np.argmin)}


# --- all, any ----------------------------------------------------------------------------------


def truths():
    x, p, i = np.round(grid(2, 3, 2)), booleans(2, 3, 2), integers(2, 3)

    def calls(function):
        expected = along(function)
        return [
            *(Sample((a,), numpy=expected) for a in (x, p, i, np.zeros(0), np.asarray(0.0))),
            *over_dims(expected, i, p[0], np.zeros((0, 3))),
            Sample((p, ()), numpy=lambda a, dim: a),
            Sample((np.array([1, 0], np.uint8),), numpy=expected),
        ]

    def counted(a, dim=None):
        return np.asarray(np.count_nonzero(a, dim))

    def hashed(a, dim=(), keepdim=False):
        bits = (a.astype(np.float64) if a.dtype.kind == "f" else a.astype(np.int64)).view(np.uint64)
        return np.bitwise_xor.reduce(bits, dim or tuple(range(a.ndim)), keepdims=keepdim)

    def indices(a, as_tuple=False):
        return np.nonzero(a) if as_tuple else np.argwhere(a)

    return {
        "all": calls(np.all),
        "any": calls(np.any),
        "count_nonzero": [Sample((a, *dim), numpy=counted) for a in (x, p, i) for dim in [(), (0,), (-1,), ((0, 1),)]],
        "hash_tensor": [
            *(Sample((a, *dim), numpy=hashed) for a in (x, p, i, x[:, :1]) for dim in [((1,),), ((0, 1),)]),
            Sample((x, (-1,)), {"keepdim": True}, hashed),
            Sample((x,), numpy=hashed),
            Sample((np.asarray(3.5),), numpy=hashed),
        ],
        "nonzero": [
            *(Sample((a,), numpy=indices) for a in (x, p, i, np.zeros((0, 2)), np.asarray(3.0), np.asarray(0.0))),
            Sample((i,), {"as_tuple": True}, indices),
        ],
    }
