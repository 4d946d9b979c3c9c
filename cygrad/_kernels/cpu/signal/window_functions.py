"""Window functions of signal processing, computed in float64.

A symmetric window of n elements has n - 1 steps; a periodic one has n steps and omits its end. `library` is NumPy or
CuPy, which allocates the result.
"""

import math
from functools import lru_cache

import numpy as np

LONG = 4096  # elements; from here on, cosines are not computed one by one
FEW, MOST = 512, 100  # elements and parameters up to which a Kaiser window is a sum of exponentials


def _steps(library, length, symmetric):
    """(0, 1, ..., and the number of steps)."""
    return library.arange(length, dtype=np.float64), max(length - 1, 1) if symmetric else length


def cosines(library, length, symmetric, coefficients):
    """The sum of (-1)^i * coefficients[i] * cos(i * angle), where the angle makes one full turn."""
    k, steps = _steps(library, length, symmetric)
    if length == 1:
        return library.ones(1)
    turn = 2 * np.pi / max(steps, 1)
    if length > LONG:
        return _long_cosines(library, length, turn, coefficients)
    out = library.full(length, float(coefficients[0]))
    for i, a in enumerate(coefficients[1:], 1):
        term = library.cos(k * (turn * i))
        term *= -a if i % 2 else a
        out += term
    return out


def _long_cosines(library, length, turn, coefficients):
    """`cosines` as a matrix product: cos(a + b) = cos(a) cos(b) - sin(a) sin(b), with few distinct a and b."""
    width = math.isqrt(length) + 1
    out = library.empty((width, width))  # first, because this allocation may fail
    k = library.arange(width)
    left, right = [library.full(width, float(coefficients[0]))], [library.ones(width)]
    for i, a in enumerate(coefficients[1:], 1):
        coarse, fine = k * (turn * i * width), k * (turn * i)
        left += [library.cos(coarse) * (-1) ** i * a, library.sin(coarse) * (-1) ** (i + 1) * a]
        right += [library.cos(fine), library.sin(fine)]
    return library.matmul(library.stack(left, 1), library.stack(right), out=out).reshape(-1)[:length]


def triangle(library, length, symmetric):
    k, steps = _steps(library, length, symmetric)
    return library.ones(1) if length == 1 else 1 - library.abs(2 * k / steps - 1)


def half_sine(library, length, symmetric):
    k, _ = _steps(library, length, symmetric)
    return library.ones(1) if length == 1 else library.sin(np.pi * (k + 0.5) / (length if symmetric else length + 1))


def exponential(library, length, symmetric, center, tau):
    k, steps = _steps(library, length, symmetric)
    if length == 1:
        return library.ones(1)
    return library.exp(-library.abs(k - (steps / 2 if center is None else center)) / tau)


def gaussian(library, length, symmetric, std):
    k, steps = _steps(library, length, symmetric)
    return library.ones(1) if length == 1 else library.exp(-(((k - steps / 2) / std) ** 2) / 2)


def kaiser(library, length, symmetric, beta):
    k, steps = _steps(library, length, symmetric)
    if length == 1:
        return library.ones(1)
    k /= steps
    x = library.sqrt(k * (1 - k)) * (2 * beta)
    if length > FEW or not abs(beta) < MOST:
        return library.i0(x) / float(np.i0(beta))
    cosines = library.asarray(_cosines(12 + int(4.5 * math.sqrt(abs(beta)))))
    return library.exp(x[:, None] * cosines).sum(1) / library.exp(beta * cosines).sum()


@lru_cache(64)
def _cosines(count):
    """Cosines of `count` angles in (0, pi); the mean of exp(x cos(angle)) is i0(x), to rounding if there are enough."""
    return np.cos((np.arange(count) + 0.5) * (np.pi / count))
