"""Window functions: weights of the elements of a section of a signal, computed in float64.

A symmetric window of n elements is one of n - 1 steps; a periodic one, of n steps without its end.
"""

import numpy as np


def _steps(length, symmetric):
    """(0, 1, ..., and the number of steps)."""
    return np.arange(length, dtype=np.float64), max(length - 1, 1) if symmetric else length


def cosines(length, symmetric, coefficients):
    """The sum of (-1)^i * coefficients[i] * cos(i * angle), where the angle goes round once."""
    k, steps = _steps(length, symmetric)
    if length == 1:
        return np.ones(1)
    out = np.full(length, float(coefficients[0]))
    for i, a in enumerate(coefficients[1:], 1):
        term = np.cos(k * (2 * np.pi * i / max(steps, 1)))
        term *= -a if i % 2 else a
        out += term
    return out


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
