"""Convolutions of patches in packed panels, against NumPy in double precision."""

import numpy as np
import pytest

from cygrad._kernels.cpu.base import loop_table
from cygrad._kernels.cpu.image import convolution, patch_convolution
from cygrad._kernels.cpu.image.window_geometry import Geometry
from cygrad._kernels.platform import thread_pool

pytestmark = pytest.mark.skipif(
    not loop_table.has_loops(np.ones(1)) or not loop_table.has_loop(patch_convolution.RESULTS), reason="done by NumPy"
)

GEOMETRIES = [
    # image, kernel, stride, dilation, low padding, elements of the result left out
    ((9,), (3,), (1,), (1,), (0,), 0),
    ((40,), (2,), (3,), (2,), (1,), 0),
    ((6, 7), (3, 2), (1, 1), (1, 1), (1, 0), 0),
    ((16, 37), (3, 2), (2, 1), (1, 2), (2, 1), 1),
    ((9, 11), (5, 4), (3, 2), (1, 3), (4, 5), 0),
    ((28, 28), (5, 5), (1, 1), (1, 1), (2, 2), 0),
    ((12, 5), (1, 5), (4, 1), (1, 1), (0, 4), 2),
    ((1, 1), (3, 3), (1, 1), (1, 1), (1, 1), 0),
    ((4, 6), (2, 2), (5, 5), (1, 1), (0, 0), 0),
    ((5, 6, 7), (3, 2, 3), (1, 1, 1), (1, 1, 1), (1, 0, 1), 0),
    ((9, 20, 10), (2, 3, 2), (2, 1, 3), (3, 2, 1), (2, 1, 0), 1),
    ((3, 1, 40), (5, 1, 4), (4, 1, 1), (1, 1, 1), (3, 0, 2), 0),
]


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def geometry(image, kernel, stride, dilation, low, less):
    given = zip(image, kernel, stride, dilation, low)
    size = [(n + 2 * p - d * (k - 1) - 1) // s + 1 - less for n, k, s, d, p in given]
    return Geometry(image, kernel, size, stride, dilation, low)


def numbers(rng, n, channels, filters, where, groups=1):
    """Images, filters, bias and the gradient of the result."""
    shapes = [(n, channels, *where.image), (filters, channels // groups, *where.kernel), (filters,)]
    shapes.append((n, filters, *where.size))
    return [rng.standard_normal(shape).astype("f") for shape in shapes]


def all_three(x, w, b, g, where, groups=1):
    return (
        patch_convolution.correlate(x, w, b, where, groups),
        patch_convolution.spread(g, w, where, groups),
        patch_convolution.filter_gradient(x, g, where, groups),
    )


def by_numpy(x, w, b, g, where, groups=1):
    x, w, b, g = (a.astype("d") for a in (x, w, b, g))
    return (
        convolution.correlate(x, w, b, where, groups),
        convolution.spread(g, w, None, where, groups),
        convolution.filter_gradient(x, g, where, groups),
    )


def assert_close(found, expected):
    for one, other in zip(found, expected):
        assert one.shape == other.shape and one.dtype == np.float32
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-5 * abs(other).max())


@pytest.mark.parametrize("given", GEOMETRIES, ids=str)
@pytest.mark.parametrize(("channels", "filters"), [(1, 1), (3, 17), (5, 8), (2, 33)])
def test_all_windows(given, channels, filters, rng):
    where = geometry(*given)
    x, w, *others = numbers(rng, 3, channels, filters, where)
    assert patch_convolution.suits(x, w.shape, where, 1)
    assert_close(all_three(x, w, *others, where), by_numpy(x, w, *others, where))


@pytest.mark.parametrize("given", GEOMETRIES, ids=str)
@pytest.mark.parametrize(("channels", "filters", "groups"), [(4, 6, 2), (3, 3, 3), (2, 18, 2), (6, 3, 3)])
def test_groups(given, channels, filters, groups, rng):
    where = geometry(*given)
    given = *numbers(rng, 20, channels, filters, where, groups), where, groups
    assert_close(all_three(*given), by_numpy(*given))


@pytest.mark.parametrize("given", GEOMETRIES, ids=str)
def test_cutting_into_bands_changes_nothing(given, rng, monkeypatch):
    where = geometry(*given)
    numbers_ = numbers(rng, 2, 3, 5, where)
    expected = all_three(*numbers_, where)
    monkeypatch.setattr(patch_convolution, "BAND", 1)
    monkeypatch.setattr(patch_convolution, "plan_of", patch_convolution.plan_of.__wrapped__)
    found = all_three(*numbers_, where)
    np.testing.assert_array_equal(found[0], expected[0])
    assert_close(found[1:], by_numpy(*numbers_, where)[1:])


def test_the_same_for_every_number_of_threads(rng):
    where = geometry((60, 50), (5, 3), (1, 2), (1, 1), (2, 1), 0)
    given = numbers(rng, 20, 3, 9, where)
    before, results = thread_pool.num_threads(), []
    try:
        for threads in (1, 2, 5):
            thread_pool.set_num_threads(threads)
            results.append(all_three(*given, where))
    finally:
        thread_pool.set_num_threads(before)
    for found in results[1:]:
        for one, other in zip(found, results[0]):
            np.testing.assert_array_equal(one, other)


def test_memory_of_any_layout(rng):
    where = geometry((8, 6), (2, 3), (1, 1), (1, 1), (1, 1), 0)
    given = numbers(rng, 2, 3, 4, where)
    expected = all_three(*given, where)
    strided = [np.asfortranarray(a) for a in given[:2]] + [np.repeat(given[2], 2)[::2], given[3][::-1].copy()[::-1]]
    for one, other in zip(all_three(*strided, where), expected):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("value", [np.inf, np.nan])
def test_what_is_not_finite_goes_where_it_is_seen(value, rng):
    where = geometry((9, 9), (3, 2), (1, 1), (1, 1), (0, 1), 0)
    x, w, b, g = numbers(rng, 2, 2, 3, where)
    x[1, 0, 4, 4] = g[0, 1, 3, 3] = value
    with np.errstate(invalid="ignore"):
        expected = by_numpy(x, w, b, g, where)
        found = (
            convolution.correlate(x, w, b, where, 1),
            convolution.spread(g, w, None, where, 1),
            convolution.filter_gradient(x, g, where, 1),
        )
    for one, other in zip(found, expected):
        np.testing.assert_array_equal(np.isfinite(one), np.isfinite(other))
    w[0, 0, 0, 0] = value
    assert patch_convolution.spread(g, w, where, 1) is None


def test_which_convolutions_are_done_so(rng):
    where = geometry((16, 16), (3, 3), (1, 1), (1, 1), (1, 1), 0)
    x, w, *_ = numbers(rng, 4, 3, 6, where)
    assert patch_convolution.suits(x, w.shape, where, 1)
    assert patch_convolution.suits(x, (6, 1, 3, 3), where, 3)
    assert not patch_convolution.suits(x.astype("d"), w.shape, where, 1)
    assert not patch_convolution.suits(x[:0], w.shape, where, 1)
    assert not patch_convolution.suits(x, (1000, 1000, 3, 3), where, 1)
    one, four = ((16, 16), (1, 1)), ((4,) * 4, (2,) * 4)
    for image, kernel in (one, four):
        ones = (1,) * len(image)
        other = geometry(image, kernel, ones, ones, (0,) * len(image), 0)
        assert not patch_convolution.suits(x, (6, 3, *kernel), other, 1)
    for side in (6, 5):
        slices = geometry((4, side, 6), (2, 1, 1), (1, 1, 1), (1, 1, 1), (0, 0, 0), 0)
        assert patch_convolution.suits(np.ones((2, 3, 4, side, 6), "f"), (6, 3, 2, 1, 1), slices, 1) == (side == 6)


def test_what_does_not_fit_is_refused(rng):
    where = geometry((8, 8), (2, 2), (1, 1), (1, 1), (0, 0), 0)
    x, w, b, g = numbers(rng, 2, 3, 4, where)
    for images, filters, bias in ((x[..., :7], w, b), (x, w[:, :2], b), (x, w, b[:3]), (x.astype("d"), w, b)):
        with pytest.raises(ValueError):
            patch_convolution.correlate(images, filters, bias, where, 1)
    for results, filters in ((g[..., :6], w), (g[:, :3], w)):
        with pytest.raises(ValueError):
            patch_convolution.spread(results, filters, where, 1)
    for images, results in ((x[:1], g), (x, g[..., :6])):
        with pytest.raises(ValueError):
            patch_convolution.filter_gradient(images, results, where, 1)
