"""Reductions against plain NumPy: values, accuracy, shapes, memory, empty and special cases."""

import itertools
import math
import warnings

import numpy as np
import pytest
from arrays_zoo import LENGTHS, layouts, values

from cygrad._kernels.cpu.base import reduce
from cygrad._kernels.cpu.reduction import arg_extrema

SHAPES = [(), (1,), (13,), (6, 5), (3, 1, 4), (2, 3, 4, 5), (40, 3), (3, 70), (9, 33, 2)]


@pytest.fixture(autouse=True)
def no_warnings():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def all_axes(ndim):
    yield None
    for k in range(ndim + 1):
        yield from itertools.combinations(range(ndim), k)


def lengths_without(shape, axes):
    return tuple(n for i, n in enumerate(shape) if axes is not None and i not in axes)


def check(actual, expected, rtol=0.0, atol=0.0):
    expected = np.asarray(expected)
    assert type(actual) is np.ndarray
    assert (actual.dtype, actual.shape) == (expected.dtype, expected.shape)
    np.testing.assert_allclose(actual, expected, rtol=rtol, atol=atol)


def wide(a):
    return a.astype("D" if a.dtype.kind == "c" else "d")


# --- Against NumPy, over shapes, axes, dtypes, memory --------------------------------------------


@pytest.mark.parametrize("dtype", ["?", "b", "B"])
@pytest.mark.parametrize("shape", [(400_001,), (300, 400), (3, 200_000), (70, 5, 900), (2, 140_000, 2)], ids=str)
def test_sums_of_many_bytes(shape, dtype, rng):
    """Sums are accumulated in chunks; the extreme values are included."""
    a = rng.integers(0, 2 if dtype == "?" else 256, shape).astype(dtype)
    extremes = [np.full_like(a, value) for value in {"?": [True], "b": [-128, 127], "B": [255]}[dtype]]
    for x in (a, *extremes, a[::-1], np.asfortranarray(a)):
        for axes in all_axes(a.ndim):
            kept, count = x.sum(axes, np.int64, keepdims=True), np.count_nonzero(x, axes, keepdims=True)
            for keepdim, shape in ((True, kept.shape), (False, lengths_without(a.shape, axes))):
                check(reduce.sum(x, axes, keepdim), kept.reshape(shape))
                check(arg_extrema.count_nonzero(x, axes, keepdim), np.reshape(count, shape))


@pytest.mark.parametrize("dtype", ["e", "f", "d", "F", "D"])
def test_sums_of_floats(dtype, rng):
    for shape in SHAPES:
        a = values(rng, shape, dtype)
        eps = np.finfo(dtype).eps
        for name, x in layouts(a):
            for axes, keepdim in itertools.product(all_axes(a.ndim), (False, True)):
                sizes = {"rtol": 2 * eps, "atol": 10 * eps * np.sqrt(a.size)}
                total = wide(a).sum(axes, keepdims=keepdim)
                check(reduce.sum(x, axes, keepdim), np.asarray(total, dtype), **sizes)
                mean = wide(a).mean(axes, keepdims=keepdim)
                check(reduce.mean(x, axes, keepdim), np.asarray(mean, dtype), **sizes)
                if name == "contiguous":
                    product = wide(a).prod(axes, keepdims=keepdim)
                    check(reduce.prod(x, axes, keepdim), np.asarray(product, dtype), 300 * eps, eps)


@pytest.mark.parametrize("dtype", ["?", "b", "B", "h", "i", "l", "q"])
def test_sums_of_integers_are_int64(dtype, rng):
    for shape in SHAPES:
        a = values(rng, shape, dtype)
        for _, x in layouts(a):
            for axes, keepdim in itertools.product(all_axes(a.ndim), (False, True)):
                check(reduce.sum(x, axes, keepdim), a.sum(axes, np.int64, keepdims=keepdim))
                check(reduce.prod(x, axes, keepdim), a.prod(axes, np.int64, keepdims=keepdim))


@pytest.mark.parametrize("dtype", ["?", "h", "l", "e", "f", "d"])
def test_order_and_truth(dtype, rng):
    for shape in SHAPES:
        a = values(rng, shape, dtype)
        a = np.where(rng.random(shape) < 0.6, a, a.dtype.type(0))
        for _, x in layouts(a):
            for axes, keepdim in itertools.product(all_axes(a.ndim), (False, True)):
                k = {"axis": axes, "keepdims": keepdim}
                check(reduce.amax(x, axes, keepdim), a.max(**k))
                check(reduce.amin(x, axes, keepdim), a.min(**k))
                check(reduce.all_(x, axes, keepdim), a.all(**k))
                check(reduce.any_(x, axes, keepdim), a.any(**k))
                check(arg_extrema.count_nonzero(x, axes, keepdim), np.int64((a != 0).sum(**k)))


@pytest.mark.parametrize("dtype", ["?", "h", "l", "e", "f", "d"])
def test_positions(dtype, rng):
    for shape in SHAPES:
        a = values(rng, shape, dtype)
        for _, x in layouts(a):
            for keepdim in (False, True):
                check(arg_extrema.argmax(x, None, keepdim), np.asarray(a.argmax(keepdims=keepdim)))
                for axis in range(a.ndim):
                    k = {"axis": axis, "keepdims": keepdim}
                    check(arg_extrema.argmax(x, axis, keepdim), a.argmax(**k))
                    check(arg_extrema.argmin(x, axis, keepdim), a.argmin(**k))
                    largest, where = arg_extrema.max_with_indices(x, axis, keepdim)
                    check(largest, a.max(**k))
                    check(where, a.argmax(**k))
                    smallest, where = arg_extrema.min_with_indices(x, axis, keepdim)
                    check(smallest, a.min(**k))
                    check(where, a.argmin(**k))


@pytest.mark.parametrize("dtype", ["e", "f", "d", "F"])
def test_variance_and_norm(dtype, rng):
    for shape in SHAPES:
        a = values(rng, shape, dtype)
        result = "f" if dtype == "F" else dtype
        tolerance = {"rtol": 50 * np.finfo(dtype).eps, "atol": 50 * np.finfo(dtype).eps}
        size = np.abs(wide(a))
        memories = [x for _, x in layouts(a)]
        for axes, keepdim in itertools.product(all_axes(a.ndim), (False, True)):
            n = a.size // max(np.asarray(a.sum(axes)).size, 1)
            distance = np.abs(wide(a) - wide(a).mean(axes, keepdims=True)) ** 2
            for correction in (0, 1, 1.5):
                with np.errstate(all="ignore"):
                    total = distance.sum(axes, keepdims=keepdim)
                    expected = np.asarray(total / max(0, n - correction), result)
                for x in memories:
                    actual = reduce.var(x, axes, correction, keepdim)
                    if n > correction:
                        check(actual, expected, **tolerance)
                    else:
                        assert actual.shape == expected.shape
                        assert not np.isfinite(actual).any()
            for p in (0, 1, 2, 3, 0.5, -1, math.inf, -math.inf):
                if p == math.inf:
                    expected = size.max(axes, keepdims=keepdim)
                elif p == -math.inf:
                    expected = size.min(axes, keepdims=keepdim)
                elif p == 0:
                    expected = (size != 0).sum(axes, keepdims=keepdim)
                else:
                    expected = (size**p).sum(axes, keepdims=keepdim) ** (1 / p)
                if np.all(expected < np.finfo(result).max):
                    for x in memories:
                        check(reduce.norm(x, p, axes, keepdim), np.asarray(expected, result), **tolerance)


@pytest.mark.parametrize("dtype", ["f", "d"])
def test_lengths(dtype, rng):
    for n in [*LENGTHS, 511, 512, 513, 1023, 1025, 20001, 100003]:
        eps = np.finfo(dtype).eps
        for offset in (0, 1, 3):
            a = values(rng, n + offset, dtype)[offset:]
            exact = math.fsum(a)
            bound = eps * (abs(exact) + 4 * np.sqrt(n + 1))
            assert abs(float(reduce.sum(a)) - exact) <= bound
            squares = math.fsum(a.astype("d") ** 2)
            assert abs(float(reduce.norm(a)) - math.sqrt(squares)) <= 3 * eps * math.sqrt(squares)
            for width in (1, 2, 3, 10, 31, 32, 33, 100):
                rows = n // width
                b = a[: rows * width].reshape(rows, width)
                down = np.array([math.fsum(column) for column in b.T], dtype)
                check(reduce.sum(b, (0,)), down, 4 * eps, eps * (rows + 20))
                across = np.array([math.fsum(row) for row in b], dtype)
                check(reduce.sum(b, (1,)), across, 4 * eps, 4 * eps * np.sqrt(width))


@pytest.mark.parametrize("dtype", ["f", "d", "l", "i", "?"])
def test_products_of_any_length(dtype, rng):
    for n in [*LENGTHS[1:], 20001]:
        a = (rng.uniform(0.99, 1.01, n) if dtype in "fd" else rng.integers(0, 2, n) * 2 + 1).astype(dtype)
        expected = a.astype("d").prod() if dtype in "fd" else a.prod(dtype=np.int64)
        np.testing.assert_allclose(reduce.prod(a), expected, 1e-4 if dtype == "f" else 1e-11)
        rows = np.stack([a, a[::-1], a])
        np.testing.assert_allclose(reduce.prod(rows, (1,)), np.full(3, expected), 1e-4 if dtype == "f" else 1e-11)
        assert reduce.sum(rows[1]) == rows[1].astype(np.float64).sum() or dtype in "fd"


def test_sums_are_at_least_as_accurate_as_numpys(rng):
    # All elements have the same sign, so the error comes from summation alone.
    a = rng.random((50, 100_000), "f") + np.float32(0.1)
    exact = np.array([math.fsum(row) for row in a])
    error = np.abs(reduce.sum(a, (1,)) - exact) / exact
    error_of_numpy = np.abs(a.sum(1) - exact) / exact
    assert np.sqrt((error**2).mean()) <= np.sqrt((error_of_numpy**2).mean())
    columns = np.ascontiguousarray(a.T)
    assert (np.abs(reduce.sum(columns, (0,)) - exact) / exact).max() < 2e-5


# --- Empty, special values, types ----------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["?", "l", "e", "f", "D"])
def test_nothing_to_reduce(dtype):
    for shape, axes in [((0,), None), ((0, 3), (0,)), ((3, 0), (1,)), ((2, 0, 3), (0, 1))]:
        a = np.empty(shape, dtype)
        kind = np.int64 if dtype in "?l" else a.dtype
        check(reduce.sum(a, axes), a.sum(axes, kind))
        check(reduce.prod(a, axes), a.prod(axes, kind))
        check(reduce.all_(a, axes), a.all(axes))
        check(reduce.any_(a, axes), a.any(axes))
        check(arg_extrema.count_nonzero(a, axes), (a != 0).sum(axes, np.int64))
        if dtype not in "?l":
            assert np.isnan(reduce.mean(a, axes)).all()
            assert np.isnan(reduce.var(a, axes)).all()
            assert not reduce.norm(a, 2, axes).any()
        if dtype != "D":
            for f in (reduce.amax, reduce.amin):
                with pytest.raises(ValueError, match="no elements"):
                    f(a, axes)
            with pytest.raises(ValueError, match="no elements"):
                arg_extrema.argmax(a, None if axes is None else axes[-1])
    assert reduce.amax(np.empty((0, 3)), (1,)).shape == (0,)
    assert reduce.sum(np.empty((0, 3)), (1,)).shape == (0,)
    assert arg_extrema.argmax(np.empty((0, 3)), 1).shape == (0,)


def test_special_values():
    nan, inf = np.nan, np.inf
    for dtype in ("e", "f", "d"):
        for n in (3, 40, 700):
            for place in (0, n // 2, n - 1):
                a = np.ones((2, n), dtype)
                a[1, place] = nan
                for f in (reduce.sum, reduce.mean, reduce.amax, reduce.amin, reduce.var):
                    assert list(np.isnan(f(a, (1,)))) == [False, True]
                    assert np.isnan(f(a))
                    assert list(np.isnan(f(a, (0,)))) == [i == place for i in range(n)]
                assert arg_extrema.argmax(a, 1)[1] == arg_extrema.argmin(a, 1)[1] == place
                a[1, place] = inf
                check(reduce.sum(a, (1,)), np.array([n, inf], dtype))
                check(reduce.amax(a, (1,)), np.array([1, inf], dtype))
        assert np.isnan(reduce.sum(np.array([inf, -inf], dtype)))
        assert reduce.any_(np.array([0, nan], dtype))
    assert reduce.sum(np.array([3e38, 3e38], "f")) == inf
    assert reduce.sum(np.full(100_000, 1, "e")) == inf
    assert reduce.mean(np.full(100_000, 1, "e")) == 1  # accumulated in float32


def test_the_first_of_equals():
    a = np.array([[1, 3, 3, 1], [0, 0, 0, 0]])
    assert list(arg_extrema.argmax(a, 1)) == [1, 0]
    assert list(arg_extrema.argmin(a, 1)) == [0, 0]


def test_a_type_to_add_in(rng):
    a = values(rng, (4, 5), "b")
    check(reduce.sum(a, None, False, np.dtype("d").num), a.sum(dtype="d"))
    check(reduce.mean(a, (0,), False, np.dtype("d").num), a.mean(0, "d"))
    check(reduce.prod(a, (0,), True, np.dtype("h").num), a.prod(0, "h", keepdims=True))
    check(reduce.sum(a, None, False, np.dtype("e").num), np.asarray(a.sum(), "e"))
    check(reduce.sum(a * 1.5, None, False, np.dtype("l").num), (a * 1.5).astype("l").sum())
    with pytest.raises(ValueError, match="floating point"):
        reduce.mean(a)


def test_axes_are_checked():
    a = np.ones((2, 3))
    for axes in ((2,), (-1,), (0, 0), (0, 5)):
        for f in (reduce.sum, reduce.amax, reduce.any_, reduce.var):
            with pytest.raises(ValueError, match="distinct dimensions"):
                f(a, axes)
    with pytest.raises(ValueError, match="out of bounds"):
        arg_extrema.argmax(a, 2)


def test_a_result_is_never_its_argument():
    a = np.ones((2, 3), "f")
    for f in (reduce.sum, reduce.prod, reduce.amax, reduce.all_):
        assert not np.shares_memory(f(a, ()), a)


# --- sum_to --------------------------------------------------------------------------------------

SUM_TO = [
    ((3,), (3,)), ((3,), ()), ((3,), (1,)), ((2, 3), (3,)), ((2, 3), (1, 3)), ((2, 3), (2, 1)),
    ((2, 3), (1,)), ((2, 3), ()), ((64, 128), (128,)), ((64, 10), (10,)), ((1000, 1), (1,)),
    ((4, 2, 3), (2, 1)), ((4, 2, 3), (4, 1, 3)), ((0, 3), (3,)), ((3, 0), (3, 1)), ((5, 1), (1,)),
    ((1, 1), ()), ((4, 2, 3, 5), (2, 1, 5)), ((1, 3), (3,)), ((), ()),
]  # fmt: skip


@pytest.mark.parametrize("dtype", ["l", "e", "f", "d", "D"])
def test_sum_to(dtype, rng):
    for large, small in SUM_TO:
        a = values(rng, large, dtype)
        lead = len(large) - len(small)
        axes = tuple(range(lead)) + tuple(lead + i for i, n in enumerate(small) if n == 1)
        expected = wide(a).sum(axes, keepdims=True).reshape(small).astype(dtype)
        eps = np.finfo(dtype).eps if dtype != "l" else 0
        for _, x in layouts(a):
            if large == small:
                assert reduce.sum_to(x, small) is x
            else:
                check(reduce.sum_to(x, small), expected, 20 * eps, 40 * eps)


def test_sum_to_refuses_what_did_not_come_from_broadcasting():
    a = np.ones((2, 3))
    for shape in ((2,), (4, 3), (1, 2, 3), (0, 3), (2, 6)):
        with pytest.raises(ValueError, match=r"sum_to|broadcasts"):
            reduce.sum_to(a, shape)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    ("shape", "axes"), [((3, 70000, 4), (0, 2)), ((2, 3, 40000, 2, 3), (1, 3)), ((2, 90000, 3, 2), (0, 2))]
)
def test_sums_over_dimensions_around_a_long_one(shape, axes, dtype):
    """Partial sums are computed in chunks."""
    a = np.random.default_rng(0).standard_normal(shape).astype(dtype)
    np.testing.assert_allclose(reduce.sum(a, axes), a.sum(axes, np.float64), 0, 20 * np.finfo(dtype).eps)
