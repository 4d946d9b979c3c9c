"""Loops of ufuncs.h against those of NumPy that they replace."""

import os

import numpy as np
import pytest
from arrays_zoo import layouts

from cygrad._kernels.cpu.base.ufunc import Ufunc

NAMES = "logical_or logical_and logical_xor fmod remainder floor_divide hypot copysign nextafter heaviside".split()
NAMES += ["exp2", "exp", "sin", "cos"]
ULPS = {"hypot": 1, "exp2": 2, "exp": 2, "sin": 2, "cos": 2}  # the others are exact
if os.environ.get("CYGRAD_PURE") == "1":  # NumPy's loops may be off by 4
    ULPS |= dict.fromkeys(["exp2", "exp", "sin", "cos"], 5)
LENGTHS = [0, 1, 2, 3, 7, 8, 9, 15, 17, 33, 255, 256, 257, 511, 513, 1000, 70000]
UNUSUAL = [0, 1, np.inf, np.nan, 3, 0.5, 0.1, 7.25, 1e-45, 1e-38, 1e38, 3e38, 1e20, 2**21, 2**24 + 1]
UNUSUAL += [5e-324, 1e308, 1e-200, 2.0**50, 2.0**51 + 1, 149.5, 150.5, 1074.5, 127.5]


def check(name, *arrays):
    ufunc = getattr(np, name)
    with np.errstate(all="ignore"):
        expected = ufunc(*arrays[: ufunc.nin])
        if name in ULPS and expected.dtype == np.float32:
            expected = ufunc(*(a.astype(np.float64) for a in arrays[: ufunc.nin])).astype(np.float32)
    compare(name, Ufunc(ufunc)(*arrays[: ufunc.nin]), expected)


def compare(name, found, expected):
    assert found.dtype == expected.dtype and found.shape == expected.shape
    if name not in ULPS:
        np.testing.assert_array_equal(found, expected)
        is_number = ~np.isnan(expected)
        np.testing.assert_array_equal(np.signbit(found)[is_number], np.signbit(expected)[is_number])
        return
    special = ~np.isfinite(expected) | (expected == 0)
    np.testing.assert_array_equal(found[special], expected[special])
    whole = np.dtype(f"i{found.itemsize}")
    ulps = np.abs(found[~special].view(whole) - expected[~special].view(whole))
    assert ulps.max(initial=0) <= ULPS[name]


def operands(dtype, n, seed=0):
    """Two arrays that alternate numbers of all magnitudes, small multiples of 0.25, and normal ones."""
    random = np.random.default_rng(seed)
    most = np.finfo(dtype).maxexp - 2
    parts = []
    for _ in range(2):
        wild = np.ldexp(random.standard_normal(n), random.integers(-most, most, n))
        even = random.integers(-20, 20, n) * 0.25
        parts.append(
            np.where(np.arange(n) % 3 == 0, wild, np.where(np.arange(n) % 3 == 1, even, random.normal(size=n)))
        )
    with np.errstate(all="ignore"):
        return [part.astype(dtype) for part in parts]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", NAMES)
def test_lengths(name, dtype):
    for n in LENGTHS:
        check(name, *operands(dtype, n, n))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", NAMES)
def test_unusual_values(name, dtype):
    with np.errstate(all="ignore"):
        values = np.array([*UNUSUAL, *(-np.array(UNUSUAL))], dtype)
    check(name, np.repeat(values, len(values)), np.tile(values, len(values)))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", NAMES)
def test_layouts(name, dtype):
    x, y = (a.reshape(20, 30) for a in operands(dtype, 600))
    for _, a in layouts(x):
        for _, b in layouts(y):
            check(name, a, b)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", NAMES[:-4])
def test_broadcasting(name, dtype):
    x, y = (a.reshape(30, 40) for a in operands(dtype, 1200))
    check(name, x, y[0])
    check(name, x[:, :1], y)
    check(name, x, y[3, 3].reshape(()))
    check(name, x[1, 1].reshape(()), y)
    check(name, x[:, None], y[:2, :1])


@pytest.mark.parametrize("name", [name for name in NAMES if name not in ULPS])
def test_numbers(name):
    ufunc = getattr(np, name)
    for dtype in (np.float32, np.float64):
        x, _ = operands(dtype, 777)
        with np.errstate(all="ignore"):
            np.testing.assert_array_equal(Ufunc(ufunc)(x, 0.75), ufunc(x, dtype(0.75)))
            np.testing.assert_array_equal(Ufunc(ufunc)(0.75, x), ufunc(dtype(0.75), x))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", NAMES[3:])
def test_writing_into_an_operand(name, dtype):
    ufunc = getattr(np, name)
    for k in range(ufunc.nin):
        given = operands(dtype, 1000)
        given[k][::50] = np.nan
        given[k][1::50] = np.inf
        expected = Ufunc(ufunc)(*(a.copy() for a in given[: ufunc.nin]))
        Ufunc(ufunc)(*given[: ufunc.nin], out=given[k])
        compare(name, given[k], expected)
        shifted = operands(dtype, 1000)
        expected = Ufunc(ufunc)(*(a[:-1].copy() for a in shifted[: ufunc.nin]))
        compare(name, Ufunc(ufunc)(*(a[:-1] for a in shifted[: ufunc.nin]), out=shifted[k][1:]), expected)


@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
def test_complex_logarithms_of_one_and(dtype):
    """The real part is half of log1p(x * (x + 2) + y^2): where it is small, 1 + x would leave nothing of it."""
    size = 10.0 ** np.linspace(-15, -1, 57)
    z = np.concatenate([size + 0.3j * size, -size - 1e-3j * size, 1j * size]).astype(dtype)
    x, y = z.real.astype(np.float64), z.imag.astype(np.float64)
    for given in (z, z[::3], z.reshape(3, -1).T):
        found = Ufunc(np.log1p)(given)
        assert found.dtype == dtype and found.shape == given.shape
    found = Ufunc(np.log1p)(z)
    few = 8 * np.finfo(dtype).eps
    np.testing.assert_allclose(found.real, np.log1p(x * (x + 2) + y * y) / 2, few)
    np.testing.assert_allclose(found.imag, np.arctan2(y, 1 + x), few)


def test_complex_logarithms_of_one_and_at_the_ends():
    largest = np.finfo(np.float32).max
    z = np.array([complex(largest, largest), complex(-2, 0.0), complex(-2, -0.0), complex(-1, 0)], np.complex64)
    found = Ufunc(np.log1p)(z)
    np.testing.assert_allclose(found.real, [np.log(largest) + np.log(2) / 2, 0, 0, -np.inf], 1e-6)
    np.testing.assert_allclose(found.imag[:3], [np.pi / 4, np.pi, -np.pi], 1e-6)
