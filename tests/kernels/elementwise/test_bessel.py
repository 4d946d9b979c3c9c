"""Derivatives of scaled Bessel functions, compared with the integral of exp(x - x cosh t) * cosh(nu * t) over t."""

import numpy as np
import pytest

from cygrad._kernels.cpu.elementwise.bessel import scaled_k_derivative

special = pytest.importorskip("scipy.special")
X = np.array([1e-3, 0.1, 1.0, 5.0, 31.9, 32.0, 32.1, 100.0, 1e6, 1e30, 1e150])


def by_integral(x, nu, order):
    """The trapezoidal rule, which is exact to rounding for such an integrand."""
    width = np.arccosh(1 + 800 / x) if x < 1e6 else 40 / np.sqrt(x)
    t, step = np.linspace(0, width, 4001, retstep=True)
    below = -2 * np.sinh(t / 2) ** 2  # 1 - cosh(t)
    values = np.exp(x * below) * np.cosh(nu * t) * below**order
    return step * (values.sum() - values[0] / 2)


@pytest.mark.parametrize("nu", [0, 1])
@pytest.mark.parametrize("order", [0, 1, 2, 3])
def test_derivatives(order, nu):
    x = X[:-2] if order > 1 else X
    expected = [by_integral(each, nu, order) for each in x]
    np.testing.assert_allclose(scaled_k_derivative(x, nu, order, special.k0e, special.k1e), expected, rtol=1e-10)


def test_ends():
    found = scaled_k_derivative(np.array([0.0, np.inf, np.nan, -1.0], np.float32), 0, 1, special.k0e, special.k1e)
    assert found.dtype == np.float32
    np.testing.assert_array_equal(found, [-np.inf, 0, np.nan, np.nan])
