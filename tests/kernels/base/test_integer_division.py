"""Integer division (integer_division.h, integers.py) against Python's."""

import operator

import numpy as np
import pytest

from cygrad._kernels.cpu.base.ufunc import Ufunc
from cygrad._kernels.cpu.elementwise.integers import divide_towards_zero

TYPES = [np.dtype(name) for name in "int8 int16 int32 int64 uint8".split()]
LENGTHS = [0, 1, 3, 4, 5, 16, 255, 256, 257, 1000, 40000]  # around the lengths of vectors, chunks, and thread chunks


def truncated(x, y):
    return abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1)


DIVISIONS = {
    "floor_divide": (Ufunc(np.floor_divide), operator.floordiv),
    "remainder": (Ufunc(np.remainder), operator.mod),
    "fmod": (Ufunc(np.fmod), lambda x, y: x - truncated(x, y) * y),
    "trunc": (divide_towards_zero, truncated),
}


def check(name, x, y):
    """Compare with Python's result, wrapped around; division by 0 gives 0."""
    found, divide = DIVISIONS[name]
    pairs = zip(*(a.tolist() for a in np.broadcast_arrays(x, y)))
    expected = np.array([divide(a, b) if b else 0 for a, b in pairs], object)
    bits = 8 * x.dtype.itemsize
    lowest = np.iinfo(x.dtype).min
    expected = ((expected - lowest) % 2**bits + lowest).astype(x.dtype)
    result = found(x, y)
    assert result.dtype == x.dtype
    np.testing.assert_array_equal(result, expected)
    return expected


def operands(dtype, n, limit):
    random = np.random.default_rng(n)
    info = np.iinfo(dtype)
    x = random.integers(max(info.min, -limit), min(info.max, limit), n, dtype, endpoint=True)
    y = random.integers(max(info.min, -20), 20, n, dtype)
    return x, np.where(y == 0, dtype.type(7), y)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("name", DIVISIONS)
def test_lengths(name, dtype):
    for n in LENGTHS:
        check(name, *operands(dtype, n, 1000))
        check(name, *operands(dtype, n, 2**51 - 1))


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("name", DIVISIONS)
def test_the_largest_numbers(name, dtype):
    info = np.iinfo(dtype)
    near = [
        0,
        1,
        2,
        3,
        7,
        2**24,
        2**26 + 1,
        2**50,
        2**51 - 1,
        2**51,
        2**53,
        2**53 + 1,
        info.max,
        info.max - 1,
        info.min + 1,
    ]
    values = np.array(sorted({v for n in near for v in (n, -n) if info.min <= v <= info.max} | {info.min}), dtype)
    x, y = (a.reshape(-1) for a in np.meshgrid(values, values[values != 0]))
    check(name, x, y)
    for one in values[values != 0]:  # each chunk of 256 has one divisor
        check(name, np.repeat(values, 20), np.full(20 * len(values), one, dtype))


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("name", DIVISIONS)
def test_layouts(name, dtype):
    x, y = operands(dtype, 1200, 1000)
    check(name, x[::-1], y[::-1])
    check(name, x[::3], y[:400])
    check(name, x, y[:1])
    check(name, x[:1], y)
    found, _ = DIVISIONS[name]
    expected = found(x, np.repeat(y[:30], 40)).reshape(30, 40).T
    np.testing.assert_array_equal(found(x.reshape(30, 40).T, y[:30]), expected)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("name", ["floor_divide", "remainder", "fmod"])
def test_results_in_given_memory(name, dtype):
    x, y = operands(dtype, 1200, 1000)
    y[700] = 0  # this chunk is divided one by one, after the vectors have been written
    loop = DIVISIONS[name][0]
    expected = check(name, x, y)
    for target in (x.copy(), np.zeros(2400, dtype)[::2], np.zeros(1200, dtype)[::-1]):
        np.testing.assert_array_equal(loop(x, y, out=target), expected)
    for k in range(2):
        given = [x.copy(), y.copy()]
        np.testing.assert_array_equal(loop(*given, out=given[k]), expected)
    one = check(name, x, np.array([3], dtype))
    np.testing.assert_array_equal(loop(x, np.array([3], dtype), out=np.zeros(2400, dtype)[::2]), one)
