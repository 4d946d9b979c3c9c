"""Orthogonal polynomials and their derivatives, by their recurrence relations.

A family is `(first, step)`: P_0 = 1, P_1 = first[0] + first[1] * x, and `step(m)` returns a, b, c with
P_{m+1} = (a + b * x) * P_m - c * P_{m-1}. Differentiating the recurrence k times gives the k-th derivatives.
"""

import numpy as np

from cygrad._kernels.device.dispatch import dispatching


def chebyshev(start, slope):
    return (start, slope), lambda m: (0, 2, 1)


def shifted_chebyshev(start, slope):
    """With 2 x - 1 in place of x."""
    return (start - slope, 2 * slope), lambda m: (-2, 4, 1)


CHEBYSHEV_T = chebyshev(0, 1)
CHEBYSHEV_U = chebyshev(0, 2)
CHEBYSHEV_V = chebyshev(-1, 2)
CHEBYSHEV_W = chebyshev(1, 2)
SHIFTED_T = shifted_chebyshev(0, 1)
SHIFTED_U = shifted_chebyshev(0, 2)
SHIFTED_V = shifted_chebyshev(-1, 2)
SHIFTED_W = shifted_chebyshev(1, 2)
HERMITE_H = (0, 2), lambda m: (0, 2, 2 * m)
HERMITE_HE = (0, 1), lambda m: (0, 1, m)
LAGUERRE = (1, -1), lambda m: ((2 * m + 1) / (m + 1), -1 / (m + 1), m / (m + 1))
LEGENDRE = (0, 1), lambda m: (0, (2 * m + 1) / (m + 1), m / (m + 1))


MANY = 1000  # recurrences of more steps are replaced by a formula, where there is one


def polynomial(x, degree, family, order=0):
    """The derivative of that order of the polynomials of these degrees; 0 for negative degrees."""
    with np.errstate(all="ignore"):
        degree = np.asarray(degree).astype(np.int64)
        lowest, highest = (degree.min(), degree.max()) if degree.size else (0, -1)
        x, degree = np.broadcast_arrays(x, degree)
        if highest > MANY and order == 0 and family in CLOSED_FORMS:
            return np.where(
                degree > MANY,
                _chebyshev_of_many(x, degree, *CLOSED_FORMS[family]).astype(x.dtype),
                polynomial(x, np.minimum(degree, MANY), family),
            )
        result = np.zeros(x.shape, x.dtype)
        for m, value in enumerate(_derivatives(x, family, order, highest)):
            if m == lowest == highest:
                return value
            if m >= lowest:
                np.copyto(result, value, where=degree == m)
            if m % 64 == 0 and highest > MANY and not np.isfinite(value).any():  # nor will any later one be finite
                np.copyto(result, np.nan, where=degree > m)
                break
    return result


# {family: (shift, sign, whether x is shifted to [0, 1])}. P_n(cos t) is the quotient of the cosines (sign 1) or sines
# (sign -1) of (n + shift) * t and shift * t.
CLOSED_FORMS = {
    CHEBYSHEV_T: (0.0, 1, False),
    CHEBYSHEV_U: (1.0, -1, False),
    CHEBYSHEV_V: (0.5, 1, False),
    CHEBYSHEV_W: (0.5, -1, False),
    SHIFTED_T: (0.0, 1, True),
    SHIFTED_U: (1.0, -1, True),
    SHIFTED_V: (0.5, 1, True),
    SHIFTED_W: (0.5, -1, True),
}


def _chebyshev_of_many(x, degree, shift, sign, is_shifted):
    """Chebyshev polynomials of high degrees in double precision, by trigonometric or hyperbolic functions.

    Those of -x follow from the symmetry P_n(-x) = (-1)^n P_n(x), which exchanges the third and the fourth kind.
    """
    x = x.astype(np.float64)
    if is_shifted:
        x = 2 * x - 1
    size, n = np.abs(x), degree.astype(np.float64)
    is_sine = (sign < 0) != ((x < 0) & (shift == 0.5))
    flipped = np.where((x < 0) & (degree % 2 == 1), -1.0, 1.0)
    angle, growth = np.arccos(np.minimum(size, 1)), np.arccosh(np.maximum(size, 1))
    inner, outer = shift * angle, (n + shift) * angle
    cosines = np.where(size <= 1, np.cos(outer) / np.cos(inner), _quotient_of_cosh(n, shift, growth))
    sines = np.where(size <= 1, np.sin(outer) / np.sin(inner), _quotient_of_sinh(n, shift, growth))
    sines = np.where(size == 1, (n + shift) / (shift or 1), sines)
    return flipped * np.where(np.isnan(x), np.nan, np.where(is_sine, sines, cosines))


def _quotient_of_cosh(n, shift, t):
    return np.exp(n * t) * (1 + np.exp(-2 * (n + shift) * t)) / (1 + np.exp(-2 * shift * t))


def _quotient_of_sinh(n, shift, t):
    return np.exp(n * t) * np.expm1(-2 * (n + shift) * t) / np.expm1(-2 * shift * t)


def _derivatives(x, family, order, highest):
    """Yield the derivatives of that order of P_0, ..., P_highest."""
    if highest < 0:
        return
    (start, slope), step = family
    zeros = [np.zeros_like(x)] * order
    former = [np.ones_like(x), *zeros]
    yield former[order]
    line = slope * x
    line += start
    latest = [line, np.full_like(x, slope), *zeros[1:]] if order else [line]
    for m in range(1, highest + 1):
        yield latest[order]
        if m == highest:
            return
        a, b, c = step(m)
        line = b * x if a == 0 else b * x + a
        following = [line * latest[k] + k * b * latest[k - 1] for k in range(1, order + 1)]
        line *= latest[0]
        following.insert(0, line)
        for k in range(order + 1):
            following[k] -= former[k] if c == 1 else c * former[k]
        former, latest = latest, following


dispatching(globals(), "polynomial")
