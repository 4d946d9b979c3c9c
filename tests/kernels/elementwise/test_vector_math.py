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


# -- float32, for each width of vectors --


FLOATS = {
    # function, its exact value, operand bounds, ulps
    "exp": (Ufunc(np.exp), np.exp, -87, 88, 1.1),
    "tanh": (Ufunc(np.tanh), np.tanh, -10, 10, 2.7),
    "sigmoid": (activations.sigmoid, long_logistic, -80, 20, 2.6),
    "elu": (elu, lambda x: np.where(x > 0, x, np.expm1(np.minimum(x, 0))), -20, 3, 3),
    "softplus": (softplus, lambda x: np.maximum(x, 0) + np.log1p(np.exp(-abs(x))), -80, 20, 4),
}
OF_ONE_OPERAND = ["sigmoid", "silu", "mish", "gelu_tanh", "gelu"]
if PURE:
    del FLOATS["elu"], FLOATS["softplus"]


@pytest.mark.parametrize("name", FLOATS)
def test_accuracy_of_single_precision(name):
    function, exact, low, high, bound = FLOATS[name]
    for x in (
        np.linspace(low, high, 1_000_003),
        np.concatenate([sign * np.geomspace(1e-6, 1, 200_003) for sign in (-1, 1)]),
    ):
        x = x.astype(np.float32)
        expected = exact(x.astype(np.float64))
        errors = abs(function(x) - expected) / np.spacing(abs(expected.astype(np.float32)))
        assert errors.max() < bound + NUMPY_ULPS
        assert errors.mean() < (0.7 if name == "softplus" else 0.55) + NUMPY_ULPS


@pytest.mark.skipif(PURE, reason="NumPy promises no such thing")
def test_results_do_not_depend_on_place_or_length():
    """Whole vectors and the rest of an array are computed alike, so that an element's result is always the same."""
    random = np.random.default_rng(3)
    x, g = (random.normal(size=1100) * 6).astype(np.float32), random.normal(size=1100).astype(np.float32)
    functions = {name: getattr(activations, name) for name in OF_ONE_OPERAND} | {"elu": elu, "softplus": softplus}
    gradients = [getattr(activations, name + "_backward") for name in OF_ONE_OPERAND[1:]]
    functions |= {"exp": Ufunc(np.exp), "tanh": Ufunc(np.tanh)}
    for n in [*range(1, 40), 63, 64, 65, 1023, 1025]:
        for start in (0, 1, 5):
            part = slice(start, start + n)
            for name, function in functions.items():
                np.testing.assert_array_equal(function(x[part]), function(x)[part], name)
            for gradient in gradients:
                np.testing.assert_array_equal(gradient(g[part], x[part]), gradient(g, x)[part])


SINGLE = np.array(
    [0.0, -0.0, 1e-45, -1e-45, 1e-39, np.inf, -np.inf, np.nan, 1e30, -1e30, 3e38, -104, -88, 89], np.float32
)


def test_special_values_in_single_precision():
    """In every place of vectors of 8 and 16, and behind them."""
    for place in range(18):
        x = np.roll(np.resize(SINGLE, 19), place)
        with np.errstate(all="ignore"):
            wide = x.astype(np.float64)
            for function, expected in (
                (Ufunc(np.exp), np.exp(wide)),
                (Ufunc(np.tanh), np.tanh(wide)),
                (activations.sigmoid, 1 / (1 + np.exp(-wide))),
            ):
                found, expected = function(x), expected.astype(np.float32)
                np.testing.assert_allclose(found, expected, 1e-6, 2e-45)
                np.testing.assert_array_equal(np.signbit(found[~np.isnan(x)]), np.signbit(expected[~np.isnan(x)]))
