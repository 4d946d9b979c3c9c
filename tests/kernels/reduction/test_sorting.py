"""Sorting with integers that pack elements and indices (sorting.py), and runs of equal elements (searching.py)."""

from itertools import product

import numpy as np
import pytest
from arrays_zoo import layouts

from cygrad._kernels.cpu.base import loop_table
from cygrad._kernels.cpu.reduction import searching, sorting

TYPES = ["f", "d", "e", "?", "b", "u1", "h", "u2", "i", "u4", "l", "u8"]
SHAPES = [(0,), (1,), (9,), (1000,), (40000,), (4, 0), (0, 4), (30, 20), (5, 4, 6)]


def rank(a, axis, descending):
    """Sort indices by Python's own stable sort: NaN is larger than all numbers."""
    rows = np.moveaxis(a, axis, -1)
    order = np.empty(rows.shape, np.int64)
    for at in np.ndindex(rows.shape[:-1]):
        row = rows[at].tolist()
        sign = -1 if descending else 1
        keys = [(sign, 0) if x != x else (0, sign * int(x) if isinstance(x, bool) else sign * x) for x in row]
        order[at] = sorted(range(len(row)), key=keys.__getitem__)
    return np.moveaxis(order, -1, axis)


def examples(dtype, shape):
    rng = np.random.default_rng(len(shape))
    yield rng.integers(0, 5, shape).astype(dtype)
    if dtype in "fde":
        a = rng.standard_normal(shape).astype(dtype)
        yield a
        b = a.copy()
        for i, unusual in enumerate((np.nan, np.inf, -np.inf, 0.0, -0.0, np.finfo(dtype).smallest_subnormal, -np.nan)):
            b.reshape(-1)[i::11] = unusual
        yield b
    elif dtype != "?":
        limits = np.iinfo(dtype)
        yield rng.integers(limits.min, limits.max, shape, np.dtype(dtype), endpoint=True)
        yield np.array([limits.min, limits.max], dtype)[rng.integers(0, 2, shape)]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", TYPES)
def test_order(dtype, shape):
    for a in examples(dtype, shape):
        for axis in range(a.ndim) if a.size < 10**4 else ():
            for descending in (False, True):
                expected = rank(a, axis, descending)
                for _, array in layouts(a):
                    values, order = sorting.sorted_along(array, axis, descending)
                    assert order.dtype == np.int64 and values.dtype.newbyteorder("=") == a.dtype
                    np.testing.assert_array_equal(order, expected)
                    np.testing.assert_array_equal(values, np.take_along_axis(a, expected, axis))
                    np.testing.assert_array_equal(sorting.order_along(array, axis, descending), expected)
        if a.size >= 10**4:
            values, order = sorting.sorted_along(a, 0, True)
            np.testing.assert_array_equal(order, rank(a, 0, True))
            np.testing.assert_array_equal(values, a[order])


@pytest.mark.parametrize("dtype", [dtype for dtype in TYPES if dtype != "?"])
def test_kth(dtype):
    """Among equal elements, the first is selected, also among NaNs."""
    for a in examples(dtype, (3, 1700)):
        for axis, k in ((1, 0), (1, 850), (1, 1699), (0, 1)):
            kth = np.take_along_axis(a, rank(a, axis, False), axis).take([k], axis)
            expected = ((a == kth) | (a != a) & (kth != kth)).argmax(axis, keepdims=True)
            for _, array in layouts(a):
                order = sorting.kth_along(array, axis, k)
                assert order.dtype == np.int64
                if a.shape[axis] > sorting.MOST_FIRSTS:
                    np.testing.assert_array_equal(order, expected)
                np.testing.assert_array_equal(np.take_along_axis(a, order, axis), kth)


@pytest.mark.parametrize("dtype", ["f", "d", "l"])
@pytest.mark.parametrize("shape", [(1,), (9,), (32,), (30, 20), (5, 4, 6)], ids=str)
def test_one_of_few(dtype, shape):
    """The loop agrees with NumPy; only `kth_along` leaves open which of several equal elements it selects."""
    for a in examples(dtype, shape):
        for axis in range(a.ndim):
            ordered = np.take_along_axis(a, rank(a, axis, False), axis)
            ranks = [(0,), (a.shape[axis] // 2,), (a.shape[axis] - 1,)]
            finds = [("kth_along", k) for k in ranks] + [
                (name, ()) for name in ("median_along", "middle_along", "most_frequent")
            ]
            for (name, k), (_, array) in product(finds, layouts(a)):
                found = sorting.one_of_few(name, array, axis, *k)
                if found is None:
                    assert (
                        not loop_table.has_loops(array.astype("d"))
                        or not array.dtype.isnative
                        or type(array) is not np.ndarray
                    )
                    continue
                values, order = found
                assert order.dtype == np.int64 and values.shape == order.shape
                np.testing.assert_array_equal(values, np.take_along_axis(a, order, axis))
                if k:
                    np.testing.assert_array_equal(values, ordered.take(k, axis))
                    continue
                expected = getattr(sorting, name)(a, axis)
                np.testing.assert_array_equal(values, np.take_along_axis(a, expected, axis))
                if name == "most_frequent" or name == "median_along" and np.isnan(values).all():
                    np.testing.assert_array_equal(order, expected)


@pytest.mark.parametrize("dtype", TYPES)
def test_first(dtype):
    for a in examples(dtype, (3, 700)):
        for k, largest in ((1, True), (7, False), (40, False), (80, True)):
            values, order = sorting.first_along(a, 1, k, largest)
            np.testing.assert_array_equal(values, np.take_along_axis(a, rank(a, 1, largest)[:, :k], 1))
            np.testing.assert_array_equal(values, np.take_along_axis(a, order, 1))
            assert all(len(set(row)) == k for row in order.tolist())


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_runs(dtype, shape):
    for a in examples(dtype, shape):
        flat = a.reshape(-1)
        starts = [i for i in range(flat.size) if i == 0 or flat[i] != flat[i - 1]]
        for _, array in layouts(a):
            values, numbers, lengths = searching.runs(array, True, True)
            np.testing.assert_array_equal(values, flat[starts])
            assert numbers.shape == shape and numbers.dtype == lengths.dtype == np.int64
            np.testing.assert_array_equal(lengths, np.diff([*starts, flat.size]))
            np.testing.assert_array_equal(numbers.reshape(-1), np.repeat(np.arange(len(starts)), lengths))
            assert searching.runs(array, False, False)[1:] == (None, None)


@pytest.mark.parametrize("n", [(1 << 14) + 1, (1 << 17) + 5])
@pytest.mark.parametrize("dtype", ["?", "e", "f", "l"])
def test_runs_of_many(n, dtype):
    a = np.random.default_rng(n).integers(0, 2, n).astype(dtype)
    expected = a[np.append(True, a[1:] != a[:-1])]
    for found in (searching.runs(a, False, False), searching.runs(a, True, True)):
        assert found[0].dtype == a.dtype
        np.testing.assert_array_equal(found[0], expected)
    np.testing.assert_array_equal(np.repeat(expected, found[2]), a)


@pytest.mark.parametrize("axis", [0, 1])
def test_long_rows(axis):
    """Positions are numbered in chunks."""
    a = np.random.default_rng(0).integers(0, 999, (2, sorting.PIECE + 5)).astype(np.float32)
    a = a if axis else np.asfortranarray(a.T)
    for descending in (False, True):
        values, order = sorting.sorted_along(a, axis, descending)
        expected = np.argsort(-a if descending else a, axis, kind="stable")
        np.testing.assert_array_equal(order, expected)
        np.testing.assert_array_equal(values, np.take_along_axis(a, expected, axis))
