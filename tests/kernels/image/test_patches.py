"""Image kernels: results do not depend on how the work is split, and transposes are transposes."""

import itertools

import numpy as np
import pytest

from cygrad._kernels.cpu.image import (
    convolution,
    depthwise_convolution,
    max_pooling,
    patches,
    resampling,
    window_geometry,
)
from cygrad._kernels.cpu.image.resampling import Table
from cygrad._kernels.cpu.image.window_geometry import Geometry

RANDOM = np.random.default_rng(3)

GEOMETRIES = [
    # image, kernel, stride, dilation, low padding, elements of the result left out
    ((9,), (3,), (1,), (1,), (0,), 0),
    ((9,), (2,), (3,), (2,), (1,), 0),
    ((6, 7), (3, 2), (1, 1), (1, 1), (1, 0), 0),
    ((6, 7), (3, 2), (2, 1), (1, 2), (2, 1), 1),
    ((5, 4, 3), (2, 1, 3), (1, 1, 1), (1, 1, 1), (0, 0, 1), 0),
    ((5, 4, 3), (2, 2, 2), (2, 1, 2), (1, 2, 1), (1, 1, 0), 1),
    ((4, 4), (1, 1), (1, 1), (1, 1), (0, 0), 0),
]


def geometry(image, kernel, stride, dilation, low, less):
    given = zip(image, kernel, stride, dilation, low)
    size = [(n + 2 * p - d * (k - 1) - 1) // s + 1 - less for n, k, s, d, p in given]
    return Geometry(image, kernel, size, stride, dilation, low)


@pytest.fixture(params=[1, 300, 5000, None], ids=str)
def scratch(request, monkeypatch):
    """Set the size of scratch memory in bytes; None for the default."""
    if request.param is not None:
        for module in (window_geometry, depthwise_convolution, max_pooling, resampling):
            monkeypatch.setattr(module, "SCRATCH", request.param)
    return request.param


def by_windows(x, w, where, groups):
    """Compute the results position by position."""
    out = np.zeros((len(x), len(w), *where.size))
    filters, channels = len(w) // groups, w.shape[1]
    for place in np.ndindex(*where.size):
        for tap in np.ndindex(*where.kernel):
            at = [o * s + k * d - p for o, s, k, d, p in zip(place, where.stride, tap, where.dilation, where.low)]
            if all(0 <= a < n for a, n in zip(at, where.image)):
                seen = x[(slice(None), slice(None), *at)].reshape(len(x), groups, channels)
                weights = w[(slice(None), slice(None), *tap)].reshape(groups, filters, channels)
                out[(slice(None), slice(None), *place)] += np.einsum("ngc,gfc->ngf", seen, weights).reshape(len(x), -1)
    return out


@pytest.mark.parametrize(("channels", "filters", "groups"), [(2, 3, 1), (4, 2, 2), (3, 3, 3), (2, 6, 2), (3, 1, 1)])
@pytest.mark.parametrize("given", GEOMETRIES)
def test_convolution(given, channels, filters, groups, scratch):
    where = geometry(*given)
    x = RANDOM.standard_normal((5, channels, *where.image))
    w = RANDOM.standard_normal((filters, channels // groups, *where.kernel))
    g = RANDOM.standard_normal((5, filters, *where.size))
    y = convolution.correlate(x, w, None, where, groups)
    np.testing.assert_allclose(y, by_windows(x, w, where, groups), 1e-10, 1e-10)
    expected = np.sum(y * g)
    np.testing.assert_allclose(np.sum(convolution.spread(g, w, None, where, groups) * x), expected, 1e-9)
    np.testing.assert_allclose(np.sum(convolution.filter_gradient(x, g, where, groups) * w), expected, 1e-9)


MANY_TAPS = ((18, 17), (17, 16), (1, 1), (1, 1), (1, 1), 0)


@pytest.mark.parametrize("given", [*GEOMETRIES, MANY_TAPS])
def test_maxima(given, scratch):
    where = geometry(*given[:-1], 0)
    x = RANDOM.integers(0, 4, (2, 3, *where.image)).astype(float)
    values, places = max_pooling.of_windows(x, where, True)
    for place in np.ndindex(*where.size):
        best = None  # the first maximum in memory order
        for tap in np.ndindex(*where.kernel):
            at = [o * s + k * d - p for o, s, k, d, p in zip(place, where.stride, tap, where.dilation, where.low)]
            if all(0 <= a < n for a, n in zip(at, where.image)):
                seen = x[(slice(None), slice(None), *at)]
                number = np.full(seen.shape, np.ravel_multi_index(at, where.image))
                if best is None:
                    best = seen, number
                else:
                    larger = seen > best[0]
                    best = np.where(larger, seen, best[0]), np.where(larger, number, best[1])
        np.testing.assert_array_equal(values[(slice(None), slice(None), *place)], best[0])
        np.testing.assert_array_equal(places[(slice(None), slice(None), *place)], best[1])


@pytest.mark.parametrize("given", [given for given in GEOMETRIES if len(given[0]) == 3])
@pytest.mark.parametrize("kind", ["f", "d"])
def test_maxima_of_volumes_with_nan(given, kind):
    """Loops over planes and columns agree with NumPy."""
    where = geometry(*given[:-1], 0)
    x = RANDOM.integers(0, 4, (2, 3, *where.image)).astype(kind)
    x[RANDOM.random(x.shape) < 0.1] = np.nan
    x[0, 0] = -np.inf
    for found, expected in zip(max_pooling.of_windows(x, where, True), max_pooling._of_windows(x, where, True)):
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("dims", [1, 2, 3])
@pytest.mark.parametrize("own", [False, True])
@pytest.mark.parametrize("kind", ["f", "d", "i"])
def test_maxima_at_places_that_tables_give(dims, own, kind):
    image, windows, taps = (6, 5, 7)[:dims], (3, 2, 4)[:dims], (2, 3, 2)[:dims]
    x = RANDOM.integers(-3, 3, (2, 3, *image)).astype(kind)
    if kind != "i":
        x.reshape(-1)[::17] = np.nan
    shapes = [((6, n, k) if own else (n, k)) for n, k in zip(windows, taps)]
    tables = [RANDOM.integers(0, n, shape) for n, shape in zip(image, shapes)]
    values, places = max_pooling.of_places(x, dims, tables)
    assert values.shape == places.shape == (2, 3, *windows)
    planes = x.reshape(6, -1)
    for at in np.ndindex(6, *windows):
        plane, *window = at
        tapped = [(table[plane] if own else table)[n] for table, n in zip(tables, window)]
        seen = np.ravel_multi_index([one.reshape(-1) for one in np.meshgrid(*tapped, indexing="ij")], image)
        found = planes[plane, seen]
        nans = np.flatnonzero(found != found)
        chosen = nans[-1] if len(nans) else found.argmax()
        assert places.reshape(6, *windows)[at] == seen[chosen]
        np.testing.assert_equal(values.reshape(6, *windows)[at], found[chosen])


@pytest.mark.skipif(not patches.has_loops(np.empty(0)), reason="plain NumPy, to which -1 is the last")
def test_places_that_tables_give_are_inside():
    for outside in (-1, 5):
        with pytest.raises(IndexError):
            max_pooling.of_places(np.zeros((2, 5), np.float32), 1, [np.array([[0, 1], [2, outside]])])


def test_maxima_of_windows_without_elements():
    """With dilation, a window may consist of padding only: PyTorch's index is outside the image."""
    where = Geometry((2, 2), (2, 2), (1, 1), (2, 2), (3, 3), (1, 1))
    values, places = max_pooling.of_windows(np.ones((1, 1, 2, 2)), where, True)
    assert values.item() == -np.inf
    assert 0 <= places.item() < 4


TABLES = [
    Table(4, [[0], [0], [1], [1], [2], [2], [3], [3]]),
    Table(4, [[3], [0], [0], [2]]),
    Table(5, [[0, 1, 2], [2, 3, 4], [1, 0, 0]], [3, 3, 1]),
    Table(5, [[0, 1], [2, 3], [4, 4]], [2, 2, 2], RANDOM.standard_normal((3, 2))),
    Table(30, [np.arange(30), np.arange(30)], [30, 20]),
]


def name(table):
    return f"{table.size}-{len(table)}"


@pytest.mark.parametrize("table", TABLES, ids=name)
@pytest.mark.parametrize("axis", [0, 1, 2])
def test_resample(table, axis, scratch):
    matrix = np.zeros((len(table), table.size))
    for i, (places, count) in enumerate(zip(table.places, table.counts)):
        for t in range(count):
            matrix[i, places[t]] += 1 if table.weights is None else table.weights[i, t]
    shape = [3, 4, 5]
    shape[axis] = table.size
    x = RANDOM.standard_normal(shape)
    given = [None] * axis + [table]
    expected = np.moveaxis(np.tensordot(matrix, x, (1, axis)), 0, axis)
    np.testing.assert_allclose(resampling.resample(x, given, 0), expected, 1e-12, 1e-12)
    back = [None] * axis + [table.transposed]
    expected = np.moveaxis(np.tensordot(matrix.T, expected, (1, axis)), 0, axis)
    np.testing.assert_allclose(resampling.resample(resampling.resample(x, given, 0), back, 0), expected, 1e-12, 1e-12)


@pytest.mark.parametrize(
    "tables", list(itertools.product(TABLES, TABLES)), ids=lambda pair: f"{len(pair[0])}-{len(pair[1])}"
)
@pytest.mark.parametrize("divisor", [None, np.full((1, 1), 3.0)], ids=["", "divided"])
@pytest.mark.parametrize("dtype", ["f", "d"])
def test_small_planes_are_mapped_as_large_ones(tables, divisor, dtype):
    x = RANDOM.standard_normal((2, 3, tables[0].size, tables[1].size)).astype(dtype)
    expected = resampling.resample(x, tables, 2)
    if divisor is not None:
        expected = expected / divisor.astype(dtype)
    found = resampling.mapped(x, tables, divisor, False)
    assert found.dtype == dtype
    np.testing.assert_array_equal(found, expected)
    long = np.concatenate([x] * (resampling.FEW // x.size + 1))  # too long for the loop over small planes
    np.testing.assert_allclose(resampling.mapped(long, tables, divisor, False)[:2], found, 1e-5, 1e-6)


@pytest.mark.parametrize("tables", list(itertools.product([None, *TABLES[:3]], TABLES[:3], TABLES[:3]))[::2])
def test_small_volumes_are_mapped_as_large_ones(tables):
    x = RANDOM.standard_normal((2, *(2 if table is None else table.size for table in tables)))
    expected = resampling.resample(x, tables, 1) / 3
    found = resampling.mapped(x, tables, np.full((1, 1, 1), 3.0), False)
    np.testing.assert_allclose(found, expected, 1e-12, 1e-12)
