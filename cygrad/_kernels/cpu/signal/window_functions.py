"""Window functions: weights of the elements of a section of a signal, computed in float64.

A symmetric window of n elements is one of n - 1 steps; a periodic one, of n steps without its end. `library` is NumPy
or CuPy, which makes them in its memory.
"""

import math
from functools import lru_cache

import numpy as np

LONG = 4096  # elements from which on cosines are not computed one by one
FEW, MOST = 512, 100  # elements and parameters up to which a Kaiser window is made of exponentials


def _steps(library, length, symmetric):
    """(0, 1, ..., and the number of steps)."""
    return library.arange(length, dtype=np.float64), max(length - 1, 1) if symmetric else length


def cosines(library, length, symmetric, coefficients):
    """The sum of (-1)^i * coefficients[i] * cos(i * angle), where the angle goes round once."""
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
    """The same as one product of matrices: cos(a + b) is cos(a) cos(b) - sin(a) sin(b), with few different a and b."""
    width = math.isqrt(length) + 1
    out = library.empty((width, width))  # first: there may not be so much memory
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
    """Those of so many angles from 0 to pi: the mean of exp(x cos(angle)) is i0(x), and of enough ones as exact."""
    return np.cos((np.arange(count) + 0.5) * (np.pi / count))
