"""Samples for gamma and error functions; the expected values are SciPy's."""

import math

import numpy as np
from ops.sample import Sample, complex_grid, grid, integers, positive
from scipy import special

NAN, INF = math.nan, math.inf


def samples():
    x, p, i = grid(2, 3), positive(2, 3), integers(2, 3, low=1)
    small = (np.asarray(0.7), np.zeros((2, 0)))

    def unary(function, *arrays, edges=(), **more):
        return [Sample((a,), numpy=function, **more) for a in (*arrays, *small)] + [
            Sample((a,), smooth=False) for a in edges
        ]

    def binary(function, *pairs):
        return [Sample(pair, numpy=function) for pair in pairs]

    edge = np.array([0.0, 1.0, -1.0, 2.0, INF, NAN])
    return {
        "erfc": unary(special.erfc, x, i, edges=[edge]),
        "erfinv": unary(special.erfinv, x * 0.4, edges=[edge]),
        "erfcx": unary(special.erfcx, x, i, x + 3),
        "ndtri": unary(special.ndtri, (x + 2) * 0.2 + 0.1, edges=[np.array([0.0, 1.0])]),
        "log_ndtr": unary(special.log_ndtr, x, x * 20, i),
        "ndtr": unary(special.ndtr, x, i),
        "entr": unary(special.entr, p, i, edges=[edge]),
        "xlog1py": [
            *binary(special.xlog1py, (p, x * 0.4), (x, grid(3) * 0.4), (i, i), (2.5, p), (x, 1), (0, p)),
            # PyTorch's gradient is NaN where the value is 0 by definition
            Sample((np.zeros(4), np.array([-1.0, -2.0, 1.0, NAN])), smooth=False, oracle_grad=False),
        ],
        "zeta": [
            *gradient_of_second(special.zeta, i * 1.0 + 1, p),
            Sample((3, p), numpy=special.zeta),
            Sample((p + 1, 2), numpy=special.zeta, grad=False),
            Sample((x, x), grad=False),
        ],
        "lgamma": unary(special.gammaln, x, p, i, edges=[np.array([0.0, INF, NAN])]),
        "digamma": unary(special.digamma, x, p, i, edges=[np.array([0.0, -0.0])]),
        "polygamma": [Sample((n, a), numpy=special.polygamma) for n in (0, 1, 2) for a in (p, i)],
        "mvlgamma": [Sample((a, d)) for d in (1, 2, 3) for a in (p + 1.5, i + 2)],
        "igamma": [Sample((i * 0.5, p), grad=False), *gradient_of_second(special.gammainc, i * 1.0, p)],
        "igammac": [Sample((i * 0.5, p), grad=False), *gradient_of_second(special.gammaincc, i * 1.0, p)],
    }


def gradient_of_second(function, a, x):
    """Samples whose first argument has no derivative, also in single precision, so that it is cast inside the call."""
    return [Sample((a, x), numpy=function, grad=False), Sample((np.ones((2, 1)), x[:, :2]), numpy=function, grad=False)]


def errors():
    x, z, i = grid(2, 3), complex_grid(2, 2), integers(2, 3)

    def calls(*cases):
        return [Sample(args, {}) for args in cases]

    one = ("erfc", "erfinv", "erfcx", "ndtri", "log_ndtr", "lgamma", "digamma")
    return {
        **{name: calls((None,), ("a",), (z,)) for name in one},
        "polygamma": calls((-1, x), (1.5, x), (x, 1), (1, None), (1, z)),
        "entr": calls((None,), ("a",), (z,)),
        "ndtr": calls((None,), ("a",), (z,)),
        "xlog1py": calls((1, 2), ("a", x), (z, z), (x, grid(4))),
        "zeta": calls((1, 2), ("a", x), (z, z), (x, grid(4))),
        "mvlgamma": calls((x, 0), (x, 1.5), (None, 1)),
        "igamma": calls((x, 1.0), (i, i), (z, z), (x, grid(4))),
        "igammac": calls((x, 1.0), (i, i)),
    }
