"""Window functions: weights of the elements of a section of a signal, computed in float64.

A symmetric window of n elements is one of n - 1 steps; a periodic one, of n steps without its end.
"""

import math

import numpy as np

LONG = 4096  # elements from which on cosines are not computed one by one


def _steps(length, symmetric):
    """(0, 1, ..., and the number of steps)."""
    return np.arange(length, dtype=np.float64), max(length - 1, 1) if symmetric else length


def cosines(length, symmetric, coefficients):
    """The sum of (-1)^i * coefficients[i] * cos(i * angle), where the angle goes round once."""
    k, steps = _steps(length, symmetric)
    if length == 1:
        return np.ones(1)
    turn = 2 * np.pi / max(steps, 1)
    if length > LONG:
        return _long_cosines(length, turn, coefficients)
    out = np.full(length, float(coefficients[0]))
    for i, a in enumerate(coefficients[1:], 1):
        term = np.cos(k * (turn * i))
        term *= -a if i % 2 else a
        out += term
    return out


def _long_cosines(length, turn, coefficients):
    """The same as one product of matrices: cos(a + b) is cos(a) cos(b) - sin(a) sin(b), with few different a and b."""
    width = math.isqrt(length) + 1
    out = np.empty((width, width))  # first: there may not be so much memory
    k = np.arange(width)
    left, right = [np.full(width, float(coefficients[0]))], [np.ones(width)]
    for i, a in enumerate(coefficients[1:], 1):
        coarse, fine = k * (turn * i * width), k * (turn * i)
        left += [np.cos(coarse) * (-1) ** i * a, np.sin(coarse) * (-1) ** (i + 1) * a]
        right += [np.cos(fine), np.sin(fine)]
    return np.matmul(np.stack(left, 1), np.stack(right), out=out).reshape(-1)[:length]


def triangle(length, symmetric):
    k, steps = _steps(length, symmetric)
    return np.ones(1) if length == 1 else 1 - np.abs(2 * k / steps - 1)


def half_sine(length, symmetric):
    k, _ = _steps(length, symmetric)
    return np.ones(1) if length == 1 else np.sin(np.pi * (k + 0.5) / (length if symmetric else length + 1))


def exponential(length, symmetric, center, tau):
    k, steps = _steps(length, symmetric)
    return np.ones(1) if length == 1 else np.exp(-np.abs(k - (steps / 2 if center is None else center)) / tau)


def gaussian(length, symmetric, std):
    k, steps = _steps(length, symmetric)
    return np.ones(1) if length == 1 else np.exp(-(((k - steps / 2) / std) ** 2) / 2)


def kaiser(length, symmetric, beta):
    k, steps = _steps(length, symmetric)
    if length == 1:
        return np.ones(1)
    return np.i0(beta * np.sqrt(np.maximum(1 - (2 * k / steps - 1) ** 2, 0))) / np.i0(beta)
