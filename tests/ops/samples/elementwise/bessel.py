"""Samples for Bessel functions; the expected values are SciPy's."""

import numpy as np
from ops.sample import Sample, complex_grid, grid, integers, positive
from scipy import special

# Functions that PyTorch differentiates
DIFFERENTIATED = ("i0", "i0e", "i1", "i1e")
EVERYWHERE = {
    "i0": special.i0,
    "i0e": special.i0e,
    "i1": special.i1,
    "i1e": special.i1e,
    "modified_bessel_i0": special.i0,
    "modified_bessel_i1": special.i1,
    "bessel_j0": special.j0,
    "bessel_j1": special.j1,
    "spherical_bessel_j0": lambda x: special.spherical_jn(0, np.abs(x)),
    "airy_ai": lambda x: special.airy(x)[0],
}
POSITIVE = {
    "bessel_y0": special.y0,
    "bessel_y1": special.y1,
    "modified_bessel_k0": special.k0,
    "modified_bessel_k1": special.k1,
    "scaled_modified_bessel_k0": special.k0e,
    "scaled_modified_bessel_k1": special.k1e,
}


def samples():
    x, p, i = grid(2, 3), positive(2, 3), integers(2, 3, low=1)
    small = (np.asarray(0.7), np.zeros((2, 0)))
    zero = np.array([0.0])

    def unary(name, function, *arrays):
        known = name in DIFFERENTIATED
        return [Sample((a,), numpy=function, oracle_grad=known) for a in (*arrays, i, *small)]

    return {
        **{
            name: [*unary(name, function, x), Sample((zero,), smooth=False, oracle_grad=name in DIFFERENTIATED)]
            for name, function in EVERYWHERE.items()
        },
        **{
            name: [*unary(name, function, p), Sample((np.array([0.0, -1.0]),), grad=False)]
            for name, function in POSITIVE.items()
        },
        "spherical_bessel": [Sample((x, order)) for order in (0, 1, 2)],
        "scaled_k_derivative": [Sample((p, nu, order)) for nu in (0, 1) for order in (0, 1, 2)],
        "airy_ai_slope": [Sample((x,), numpy=lambda x: special.airy(x)[1])],
    }


def errors():
    return {
        name: [Sample(args) for args in ((None,), ("a",), (complex_grid(2, 2),))] for name in (*EVERYWHERE, *POSITIVE)
    }
