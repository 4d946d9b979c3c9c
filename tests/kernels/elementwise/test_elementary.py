"""Elementary functions, by our loops or NumPy's, against a higher precision."""

import os

import numpy as np
import pytest

from cygrad._kernels.cpu.base.ufunc import Ufunc

PURE = os.environ.get("CYGRAD_PURE") == "1"
UNARY = [
    *(np.exp, np.exp2, np.expm1, np.log, np.log2, np.log10, np.log1p, np.sin, np.cos, np.tan, np.arcsin, np.arccos),
    *(np.arctan, np.sinh, np.cosh, np.tanh, np.arcsinh, np.arccosh, np.arctanh),
]
SPECIAL = [0.0, -0.0, 1, -1, 0.5, -0.5, 2, np.inf, -np.inf, np.nan, 1e-45, -1e-45, 1e-40, 1e-39, 1e-300, 1e-310, 5e-324]
SPECIAL += [88.7, 88.9, 89.3, 89.5, -88, -104, -132.5, -150, 709.7, 710, 710.4, 711, -745, -746, 1e5, 1e6, -1e6, 1e10]
SPECIAL += [3.4e38, 1e19, 1.7e308, 1e160, 3.1415927, 1.5707964, 355, 1 + 1e-7, 1 - 1e-7, 128, 127.9, -149.5, 1024]
WIDER = {np.float32: np.float64, np.float64: np.longdouble}


def operands(dtype):
    """Numbers of all magnitudes, more of the common ones, and special values."""
    rng = np.random.default_rng(0)
    bits = rng.integers(0, 2**63, 4000, dtype=np.uint64) * 2 + rng.integers(0, 2, 4000, dtype=np.uint64)
    anything = (
        bits.view(np.float64) if dtype is np.float64 else (bits >> np.uint64(32)).astype(np.uint32).view(np.float32)
    )
    usual = rng.standard_normal(8000) * rng.choice([1e-3, 0.3, 1, 3, 30], 8000)
    parts = np.where(np.isnan(anything), np.nan, anything), usual, rng.uniform(-1, 1, 4000), np.array(SPECIAL)
    with np.errstate(over="ignore"):
        return np.concatenate([part.astype(dtype) for part in parts])


def check(values, exact, dtype, ulp):
    """Check that `values` are within so many ulps; NaN, infinities and signs of zeros must match."""
    with np.errstate(all="ignore"):
        expected = exact.astype(dtype)
    np.testing.assert_array_equal(np.isnan(values), np.isnan(expected))
    is_finite = np.isfinite(values) & np.isfinite(expected)
    np.testing.assert_array_equal(values[~is_finite], expected[~is_finite])
    values, expected, exact = values[is_finite], expected[is_finite], exact[is_finite]
    is_zero = expected == 0
    np.testing.assert_array_equal(
        np.signbit(values[is_zero & (values == 0)]), np.signbit(expected[is_zero & (values == 0)])
    )
    assert np.all(np.abs(values - exact) <= ulp * np.spacing(np.abs(expected)))


@pytest.fixture(autouse=True)
def longdouble_is_longer():
    if np.finfo(np.longdouble).eps >= np.finfo(np.float64).eps:
        pytest.skip("this platform's longdouble is float64: nothing to compare with")


@pytest.mark.parametrize("dtype", [np.float32, np.float64], ids=["float32", "float64"])
@pytest.mark.parametrize("function", UNARY, ids=lambda function: function.__name__)
def test_within_4_units_of_the_last_place(function, dtype):
    x = operands(dtype)
    with np.errstate(all="ignore"):
        exact = function(x.astype(WIDER[dtype]))
    check(Ufunc(function)(x), exact, dtype, 4)


@pytest.mark.parametrize("dtype", [np.float32, np.float64], ids=["float32", "float64"])
def test_angles(dtype):
    numbers = operands(dtype)
    special = numbers[-len(SPECIAL) :]
    pairs = [(numbers, np.random.default_rng(1).permutation(numbers))]
    pairs += [(special, np.full_like(special, -0.0)), (np.full_like(special, np.inf), special)]
    for y, x in pairs:
        with np.errstate(all="ignore"):
            exact = np.arctan2(y.astype(WIDER[dtype]), x.astype(WIDER[dtype]))
        check(Ufunc(np.arctan2)(y, x), exact, dtype, 4)


@pytest.mark.parametrize("function", [np.exp, np.log, np.sin, np.arctan], ids=lambda function: function.__name__)
@pytest.mark.parametrize("dtype", [np.float32, np.float64], ids=["float32", "float64"])
def test_lengths_steps_and_places(function, dtype):
    """One element or many, strided or in-place: all are accurate, and our own loops return the same bits.

    NumPy promises no such thing: with AVX-512, its contiguous and its strided loops may differ in the last place.
    """
    x = np.random.default_rng(2).uniform(0.1, 3, 1000).astype(dtype)
    run, exact = Ufunc(function), function(x.astype(WIDER[dtype]))
    all_at_once = run(x)
    is_own = not PURE and (function is np.exp or (function is np.sin and dtype is np.float64))  # on every processor

    def same(found, part):
        check(found, exact[part], dtype, 4)
        if is_own:
            np.testing.assert_array_equal(found, all_at_once[part])

    for n in [*range(20), 31, 33, 255, 256, 257, 300]:
        same(run(x[:n].copy()), slice(n))
        same(run(x[1 : n + 1]), slice(1, n + 1))
    same(run(x[::-3]), slice(None, None, -3))
    same(run(x[5:6].repeat(40)), [5] * 40)
    run(x, out=x)
    same(x, slice(None))


@pytest.mark.parametrize("dtype", [np.float32, np.float64], ids=["float32", "float64"])
def test_logarithms_of_powers_are_whole(dtype):
    """By our loops. Where NumPy's loop does the work, the result is what NumPy returns, whole or not."""
    tens = np.array([f"1e{k}" for k in range(-30, 38)]).astype(dtype)
    twos = np.ldexp(1.0, np.arange(-120, 120)).astype(dtype)
    for function, x, whole in ((np.log2, twos, np.arange(-120, 120)), (np.log10, tens, np.arange(-30, 38))):
        found = Ufunc(function)(x)
        assert np.all((found == whole) | (found == function(x)))
