"""Binary search in sorted rows (search.h, searching.py) against NumPy."""

import numpy as np
import pytest

from cygrad._kernels.cpu.reduction import searching
from cygrad._kernels.cpu.reduction.searching import searchsorted

LENGTHS = [0, 1, 2, 3, 4, 5, 7, 8, 50, 1000]
COUNTS = [0, 1, 5, 127, 128, 129, 9000]  # around the numbers of simultaneous searches and of thread chunks


def operands(dtype, length, count):
    """Integers with many ties; for floating-point dtypes, also NaN and infinities."""
    random = np.random.default_rng(length + count)
    row, values = random.integers(-20, 20, length).astype(dtype), random.integers(-22, 22, count).astype(dtype)
    if dtype.kind == "f":
        row[-1:], row[:1], row[4:5] = np.nan, -np.inf, np.inf
        values[::7], values[1::9], values[2::9], values[3::9] = np.nan, np.inf, -np.inf, -0.0
    return np.sort(row), values


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("dtype", [np.dtype(name) for name in "float16 float32 float64 int8 int32 int64".split()])
def test_lengths(dtype, side):
    for length in LENGTHS:
        for count in COUNTS:
            row, values = operands(dtype, length, count)
            found = searchsorted(row, values, side)
            assert found.dtype == np.int64
            np.testing.assert_array_equal(found, np.searchsorted(row, values, side))


@pytest.mark.parametrize("side", ["left", "right"])
def test_layouts(side, monkeypatch):
    monkeypatch.setattr(searching, "BLOCK", 500)
    row, values = operands(np.dtype(np.float32), 50, 1200)
    expected = np.searchsorted(row, values, side)
    np.testing.assert_array_equal(searchsorted(row[::-1].copy()[::-1], values, side), expected)
    np.testing.assert_array_equal(searchsorted(row, values[::-1], side), expected[::-1])
    np.testing.assert_array_equal(searchsorted(row, values.reshape(30, 40).T, side), expected.reshape(30, 40).T)
    np.testing.assert_array_equal(searchsorted(row, values[:1].reshape(()), side), expected[0])


@pytest.mark.parametrize("block", [1, 400, searching.BLOCK])
@pytest.mark.parametrize("width", [1, 100, 300])
def test_rows_of_their_own(width, block, monkeypatch):
    monkeypatch.setattr(searching, "BLOCK", block)
    random = np.random.default_rng(0)
    rows, values = np.sort(random.normal(size=(2, 3, 17))), random.normal(size=(2, 3, width))
    found = searchsorted(rows, values, "left")
    for i in np.ndindex(2, 3):
        np.testing.assert_array_equal(found[i], np.searchsorted(rows[i], values[i]))


def test_long_rows_are_not_converted_for_few_values(monkeypatch):
    monkeypatch.setattr(searching, "_searched", None)
    row = np.arange(1000, dtype=np.float32)
    assert searchsorted(row, np.array([3.5, 7], np.float32), "right").tolist() == [4, 8]


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int32", "int64", "float16", "float32", "float64"])
@pytest.mark.parametrize("shape", [(), (0,), (1,), (7,), (3, 50), (40_000,)], ids=str)
def test_distinct_values(shape, dtype):
    given = np.asarray(np.random.default_rng(0).integers(0, 60, shape)).astype(dtype)
    if dtype == "int64":
        given = given * 2**57  # too many bits for keys
    if given.dtype.kind == "f" and given.ndim:
        given[..., ::5], given[..., 1:2] = np.nan, np.inf
    for array in (given, given.T, given[..., ::-1] if given.ndim else given):
        values, inverse, counts = np.unique(array, False, True, True, equal_nan=False)
        for with_inverse in (False, True):
            for with_counts in (False, True):
                found = searching.distinct(array, with_inverse, with_counts)
                np.testing.assert_array_equal(found[0], values)
                assert found[0].dtype == array.dtype
                assert (found[1] is not None) == with_inverse and (found[2] is not None) == with_counts
                if with_inverse:
                    assert found[1].shape == array.shape and found[1].dtype == np.int64
                    np.testing.assert_array_equal(found[0][found[1]], array)
                if with_counts:
                    assert found[2].dtype == np.int64
                    np.testing.assert_array_equal(found[2], counts)


@pytest.mark.parametrize("dtype", ["bool", "int64", "float32", "float64"])
@pytest.mark.parametrize("shape", [(1, 1), (7, 2), (60, 3, 2), (4, 0), (0, 3), (9000, 2)], ids=str)
def test_distinct_slices(shape, dtype):
    """Small arrays are sorted by all columns at once, large ones by one column after the other."""
    given = np.random.default_rng(0).integers(0, 3, shape).astype(dtype)
    for axis in (0, 1):
        values, inverse, counts = searching.distinct_slices(given, axis)
        rows = [tuple(part.reshape(-1).tolist()) for part in np.moveaxis(given, axis, 0)]
        expected = sorted(set(rows))
        found = [tuple(part.reshape(-1).tolist()) for part in np.moveaxis(values, axis, 0)]
        assert found == expected and [found[i] for i in inverse] == rows
        assert counts.tolist() == [rows.count(row) for row in expected]
