"""Double-precision functions processed in chunks (vector_math.h), through their callers, against long doubles."""

import math
import os

import numpy as np
import pytest

from cygrad._kernels.cpu.base import numpy_fallback
from cygrad._kernels.cpu.base.elementwise import erf
from cygrad._kernels.cpu.base.ufunc import Ufunc
from cygrad._kernels.cpu.elementwise.fused_loops import fused
from cygrad._kernels.cpu.nn import activations

PURE = os.environ.get("CYGRAD_PURE") == "1"
RUN = 1024
NUMPY_ULPS = 3 if PURE else 0  # NumPy's functions may be off by up to 4
LENGTHS = [0, 1, 7, 8, 9, 33, RUN - 1, RUN, RUN + 1, 2 * RUN + 5, 40_000]


def long_logistic(x):
    return 1 / (1 + np.exp(-x))


def of_each(function):
    return lambda x: np.array([function(float(a)) for a in x], np.longdouble)


def elu(x):
    return fused("elu", x, numbers=(1.0, 1.0, 1.0))


def softplus(x):
    return fused("softplus", x, numbers=(1.0, 1e9))


def normal(x):
    return 0.5 * (1 + of_each(math.erf)(x / np.sqrt(np.longdouble(2))))


# function, its exact value, operand bounds, ulps
FUNCTIONS = {
    "sigmoid": (activations.sigmoid, long_logistic, -700, 40, 2.5),
    "elu": (elu, lambda x: np.where(x > 0, x, np.expm1(np.minimum(x, 0))), -50, 5, 2),
    "softplus": (softplus, lambda x: np.maximum(x, 0) + np.log1p(np.exp(-abs(x))), -700, 50, 4),
    "erf": (erf, of_each(math.erf), -7, 7, 2.5),
    "exp": (Ufunc(np.exp), np.exp, -700, 700, 1.5),
    "sin": (Ufunc(np.sin), np.sin, -40, 40, 1.5),
    "cos": (Ufunc(np.cos), np.cos, -40, 40, 1.5),
}


if PURE:  # these exist only as loops
    del FUNCTIONS["elu"], FUNCTIONS["softplus"]


def ulps(found, exact):
    return abs(found - exact) / np.spacing(abs(exact.astype(np.float64)))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_accuracy_and_lengths(name):
    function, exact, low, high, bound = FUNCTIONS[name]
    bound += NUMPY_ULPS
    random = np.random.default_rng(0)
    for n in LENGTHS:
        x = random.uniform(low, high, n)
        x[::2] = random.normal(size=len(x[::2]))
        found = function(x)
        assert found.dtype == np.float64 and found.shape == x.shape
        assert ulps(found, exact(x.astype(np.longdouble))).max(initial=0) < bound


def test_angles_that_are_nearly_multiples_of_pi_and_large_ones():
    sine, cosine = Ufunc(np.sin), Ufunc(np.cos)
    multiples = np.arange(-1000, 1000) * (math.pi / 2)
    x = np.concatenate([multiples, np.nextafter(multiples, 9e9), multiples * 600, multiples * 1e5, multiples * 1e100])
    assert ulps(sine(x), of_each(math.sin)(x)).max() < 2 + NUMPY_ULPS
    assert ulps(cosine(x), of_each(math.cos)(x)).max() < 2 + NUMPY_ULPS


SPECIAL = np.array(
    [0.0, -0.0, 5e-324, -5e-324, 1e-310, np.inf, -np.inf, np.nan, 745.2, -745.2, 710, -710, 1e308, -1e308]
)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_special_values(name):
    function, exact, *_ = FUNCTIONS[name]
    with np.errstate(all="ignore"):
        expected = exact(SPECIAL.astype(np.longdouble)).astype(np.float64) if name not in ("sin", "cos") else None
        if expected is None:
            expected = getattr(np, name)(SPECIAL)
    found = function(SPECIAL)
    np.testing.assert_allclose(found, expected, 1e-12, 2e-308)
    if name in ("erf", "sin"):
        np.testing.assert_array_equal(np.signbit(found[:4]), np.signbit(SPECIAL[:4]))


@pytest.mark.parametrize("name", ["sigmoid", "silu", "mish", "gelu", "gelu_tanh"])
def test_activations_and_their_gradients(name):
    random = np.random.default_rng(1)
    for n in LENGTHS:
        x, g = random.normal(size=n) * 8, random.normal(size=n)
        np.testing.assert_allclose(getattr(activations, name)(x), getattr(numpy_fallback, name)(x), 1e-13, 1e-15)
        if name == "sigmoid":
            continue
        gradient = getattr(activations, name + "_backward")
        expected = getattr(numpy_fallback, name + "_backward")(g, x)
        np.testing.assert_allclose(gradient(g, x), expected, 1e-12, 1e-14)
        np.testing.assert_allclose(gradient(g.copy(), x, over=True), expected, 1e-12, 1e-14)
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(
            getattr(activations, name)(SPECIAL), getattr(numpy_fallback, name)(SPECIAL), 1e-13, 1e-300, equal_nan=True
        )
