"""Samples for orthogonal polynomials; the expected values are SciPy's."""

import numpy as np
from ops.sample import Sample, complex_grid, grid
from scipy import special


def shifted(function):
    return lambda n, x: function(n, 2 * x - 1)


def third(n, x):
    return special.eval_chebyu(n, x) - np.where(n > 0, special.eval_chebyu(np.maximum(n - 1, 0), x), 0)


def fourth(n, x):
    return special.eval_chebyu(n, x) + np.where(n > 0, special.eval_chebyu(np.maximum(n - 1, 0), x), 0)


FUNCTIONS = {
    "chebyshev_polynomial_t": special.eval_chebyt,
    "chebyshev_polynomial_u": special.eval_chebyu,
    "chebyshev_polynomial_v": third,
    "chebyshev_polynomial_w": fourth,
    "shifted_chebyshev_polynomial_t": shifted(special.eval_chebyt),
    "shifted_chebyshev_polynomial_u": shifted(special.eval_chebyu),
    "shifted_chebyshev_polynomial_v": shifted(third),
    "shifted_chebyshev_polynomial_w": shifted(fourth),
    "hermite_polynomial_h": special.eval_hermite,
    "hermite_polynomial_he": special.eval_hermitenorm,
    "laguerre_polynomial_l": special.eval_laguerre,
    "legendre_polynomial_p": special.eval_legendre,
}


def samples():
    x, n = grid(2, 3), np.array([[0, 1, 2], [3, 4, 8]])

    def of(function):
        def numpy(x, n):
            return function(np.asarray(n, int), np.asarray(x, float))

        given = [(x, n), (x, 4), (x, n[0]), (0.3, n[0]), (grid(), 3), (np.zeros((2, 0)), 2), (np.arange(3), 2)]
        return [
            *(Sample(args, numpy=numpy, oracle_grad=False) for args in given),
            Sample((x, np.array([-1.0, 2.7, 7.0])), grad=False),
        ]

    family = ((0, 1), (0, 0, 2, 0, 1, 0, False))
    return {
        **{name: of(function) for name, function in FUNCTIONS.items()},
        "polynomial_derivative": [Sample((x, n, family, order)) for order in (0, 1, 2)],
    }


def errors():
    x, z = grid(2, 3), complex_grid(2, 2)
    return {name: [Sample(args) for args in ((1, 2), ("a", x), (z, z), (x, grid(4)))] for name in FUNCTIONS}
