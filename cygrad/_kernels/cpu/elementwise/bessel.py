"""Derivatives of exponentially scaled Bessel functions, in double precision."""

import math

import numpy as np

from cygrad._kernels.cpu.base.numpy_fallback import silent
from cygrad._kernels.device.cupy_library import as_array

FAR = 32.0  # from here on the asymptotic series is exact to double precision
TERMS = 20


@silent
def scaled_k_derivative(x, nu, order, k0e, k1e):
    """The derivative of that order of exp(x) * K_nu(x), nu being 0 or 1, from these two functions."""
    wide = x.astype(np.float64)
    near = as_array(np.minimum(wide, FAR))
    found = _by_functions(near, nu, order, k0e, k1e)
    del near
    found = np.where(wide == 0, np.inf if order % 2 == 0 else -np.inf, found)
    is_far = wide > FAR
    np.maximum(wide, FAR, out=wide)
    return np.where(is_far, _by_series(wide, nu, order), found).astype(x.dtype)


def _by_functions(x, nu, order, k0, k1):
    """p * k0 + q * k1 with polynomials p and q in 1 / x: k0' = k0 - k1 and k1' = (1 - 1 / x) * k1 - k0."""
    p, q = np.zeros((2, order + 1))
    (q if nu else p)[0] = 1
    for _ in range(order):
        p, q = _slope(p) + p - q, _slope(q) - p + q - np.append(0, q[:-1])
    return _at(p, x) * k0(x) + _at(q, x) * k1(x)


def _at(p, x):
    """The value of a polynomial in 1 / x."""
    value = x * 0 + float(p[-1])
    for coefficient in p[-2::-1]:
        value = value / x + float(coefficient)
    return value


def _slope(p):
    """The derivative of a polynomial in 1 / x."""
    return -np.append(0, p[:-1] * np.arange(len(p) - 1))


def _by_series(x, nu, order):
    """The sum of a_k * (d/dx)^order x^(-k - 1/2): a decreasing series, which does not subtract equal numbers."""
    total, factor = np.zeros_like(x), math.sqrt(math.pi / 2)
    for k in range(TERMS):
        slopes = math.prod(-(k + 0.5 + i) for i in range(order))
        total += factor * slopes * x ** (-float(k))
        factor *= (4 * nu**2 - (2 * k + 1) ** 2) / (8 * (k + 1))
    return total / np.sqrt(x) / x**order
