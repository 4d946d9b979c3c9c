"""Samples for trigonometric and hyperbolic functions and their inverses."""

import math

import numpy as np
from ops.sample import Sample, complex_grid, grid, integers, positive

NAN, INF = math.nan, math.inf


def samples():
    x, p, z, i = grid(2, 3), positive(2, 3), complex_grid(2, 2), integers(2, 3)
    inside, above = x * 0.45, p + 1
    everywhere = (x, z, i, np.asarray(0.7), np.zeros((2, 0)))
    edge = np.array([-1.0, 0.0, 1.0, 2.0, NAN, INF])

    def unary(function, *arrays, edges=None):
        given = [Sample((a,), numpy=function) for a in arrays]
        return given if edges is None else [*given, Sample((edges,), numpy=function, smooth=False)]

    def binary(function, *pairs, edges=()):
        return [Sample(pair, numpy=function) for pair in pairs] + [
            Sample(pair, numpy=function, smooth=False, oracle_grad=False) for pair in edges
        ]

    sinc = lambda a: np.sinc(np.asarray(a, complex if a.dtype.kind == "c" else float))  # noqa: E731
    zeros = np.zeros(2)
    return {
        "asin": unary(np.arcsin, inside, z, np.asarray(0.7), np.zeros((2, 0)), edges=edge),
        "acos": unary(np.arccos, inside, z, np.asarray(0.7), np.zeros((2, 0)), edges=edge),
        "atan": unary(np.arctan, *everywhere, edges=edge),
        "sinh": unary(np.sinh, *everywhere, edges=edge),
        "cosh": unary(np.cosh, *everywhere, edges=edge),
        "asinh": unary(np.arcsinh, *everywhere, edges=edge),
        "acosh": unary(np.arccosh, above, z, np.asarray(1.7), np.zeros((2, 0)), edges=edge[1:]),
        "atanh": unary(np.arctanh, inside, z, np.asarray(0.7), np.zeros((2, 0)), edges=edge),
        "deg2rad": unary(np.deg2rad, x, i, np.asarray(90.0), np.zeros((2, 0)), edges=edge),
        "rad2deg": unary(np.rad2deg, x, i, np.asarray(1.0), np.zeros((2, 0)), edges=edge),
        "sinc": unary(sinc, *everywhere, np.array([0.0, 0.5, 1.0]), edges=np.array([NAN, INF])),
        "atan2": binary(np.arctan2, (x, p), (-p, x), (i, i + 0.5), edges=[(zeros, zeros), (zeros, -zeros)]),
        "hypot": binary(np.hypot, (x, p), (p, grid(3)), edges=[(zeros, zeros)]),
    }


def errors():
    x, z, i, four = grid(2, 3), complex_grid(2, 2), integers(2, 3), grid(4)

    def calls(*cases):
        return [Sample(args, {}) for args in cases]

    return {
        **{
            name: calls(("a",), (None,)) for name in ("asin", "acos", "atan", "sinh", "cosh", "asinh", "acosh", "atanh")
        },
        "asin_": calls((i,)),
        "deg2rad": calls((z,)),
        "rad2deg": calls((z,)),
        "atan2": calls((x, four), (x, 1.0), (z, z), (1.0, x)),
        "hypot": calls((x, four), (x, 1.0), (z, z), (i, i)),
    }
