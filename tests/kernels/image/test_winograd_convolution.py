"""3x3 convolutions by Winograd's method, against direct sums in double precision."""

import itertools

import numpy as np
import pytest

from cygrad._kernels.cpu.base import loop_table
from cygrad._kernels.cpu.image import convolution, winograd_convolution
from cygrad._kernels.cpu.image.window_geometry import Geometry
from cygrad._kernels.platform import thread_pool

pytestmark = pytest.mark.skipif(
    not loop_table.has_loops(np.ones(1)) or not loop_table.has_loop(winograd_convolution.RESULTS),
    reason="done directly",
)
WITHIN = 1e-5  # relative to the largest result


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def geometry(image, low=(1, 1), less=0):
    size = [n + 2 * p - 2 - less for n, p in zip(image, low)]
    return Geometry(image, (3, 3), size, (1, 1), (1, 1), low)


def numbers(rng, n, channels, made, where):
    """Images, filters, bias and the gradient of the result."""
    shapes = (n, channels, *where.image), (made, channels, 3, 3), (made,), (n, made, *where.size)
    return [rng.standard_normal(shape).astype("f") for shape in shapes]


def all_three(x, w, b, g, where):
    return (
        winograd_convolution.correlate(x, w, b, where),
        winograd_convolution.correlate(g, w, None, where.backwards, True),
        winograd_convolution.filter_gradient(x, g, where),
    )


def directly(x, w, b, g, where):
    x, w, b, g = (a.astype("d") for a in (x, w, b, g))
    return (
        convolution.correlate(x, w, b, where, 1),
        convolution.spread(g, w, None, where, 1),
        convolution.filter_gradient(x, g, where, 1),
    )


def assert_close(found, expected):
    for one, other in zip(found, expected):
        assert one.shape == other.shape and one.dtype == np.float32
        assert abs(one - other).max() <= WITHIN * abs(other).max()


@pytest.mark.parametrize("image", [(1, 1), (3, 3), (4, 9), (7, 6), (5, 34), (21, 8)], ids=str)
@pytest.mark.parametrize(("low", "less"), [((1, 1), 0), ((0, 0), 0), ((2, 1), 0), ((4, 5), 1), ((1, 2), 2)])
def test_images_of_all_sizes(image, low, less, rng):
    where = geometry(image, low, less)
    if min(where.size) < 1:
        pytest.skip("no results")
    given = numbers(rng, 3, 16, 17, where)
    assert_close(all_three(*given, where), directly(*given, where))


@pytest.mark.parametrize(("channels", "made"), list(itertools.product([1, 15, 16, 33, 48], [1, 16, 31, 64])))
def test_all_numbers_of_channels(channels, made, rng):
    where = geometry((9, 7))
    given = numbers(rng, 2, channels, made, where)
    assert_close(all_three(*given, where), directly(*given, where))


@pytest.mark.parametrize("shift", [0, 1])
def test_errors_stay_small_with_many_channels(shift, rng):
    where = geometry((12, 12))
    given = [a + np.float32(shift) for a in numbers(rng, 2, 512, 64, where)]
    assert_close(all_three(*given, where), directly(*given, where))


def test_cutting_into_strips_changes_nothing(rng, monkeypatch):
    where = geometry((30, 13))
    given = numbers(rng, 3, 20, 18, where)
    expected = all_three(*given, where)
    for name in ("SCRATCH", "FEWEST_TILES"):
        monkeypatch.setattr(winograd_convolution, name, 1)
    found = all_three(*given, where)
    np.testing.assert_array_equal(found[0], expected[0])
    np.testing.assert_array_equal(found[1], expected[1])
    assert_close(found[2:], directly(*given, where)[2:])


def test_the_same_for_every_number_of_threads(rng):
    where = geometry((40, 40))
    given = numbers(rng, 6, 16, 32, where)
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
    where = geometry((8, 6))
    given = numbers(rng, 2, 16, 16, where)
    expected = all_three(*given, where)
    strided = [np.asfortranarray(a) for a in given[:2]] + [np.repeat(given[2], 2)[::2], given[3][::-1].copy()[::-1]]
    for one, other in zip(all_three(*strided, where), expected):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("value", [np.inf, np.nan, 1e38])
def test_what_is_not_finite_is_done_directly(value, rng):
    where = geometry((16, 16))
    x, w, b, g = numbers(rng, 4, 16, 16, where)
    assert winograd_convolution.suits(x, 16, where, 1)
    x[1, 3, 5, 5] = g[2, 7, 8, 8] = value
    assert all_three(x, w, b, g, where) == (None,) * 3
    seen = np.zeros(where.size, bool)
    seen[4:7, 4:7] = abs(value) != 1e38
    found = convolution.correlate(x, w, b, where, 1)
    np.testing.assert_array_equal(~np.isfinite(found[1]), np.broadcast_to(seen, found[1].shape))
    assert np.isfinite(found[0]).all()


def test_which_convolutions_are_done_so(rng):
    where = geometry((16, 16))
    x = rng.standard_normal((4, 16, 16, 16)).astype("f")
    assert winograd_convolution.suits(x, 16, where, 1)
    assert not winograd_convolution.suits(x, 16, where, 2)
    assert not winograd_convolution.suits(x.astype("d"), 16, where, 1)
    assert not winograd_convolution.suits(x.astype(">f4"), 16, where, 1)
    assert not winograd_convolution.suits(x[:, :3], 16, where, 1)
    assert not winograd_convolution.suits(x[:0], 16, where, 1)
    assert not winograd_convolution.suits(x, 16, Geometry((16, 16), (3, 3), (8, 8), (2, 2), (1, 1), (1, 1)), 1)
    assert not winograd_convolution.suits(x, 16, Geometry((16, 16), (3, 3), (14, 14), (1, 1), (2, 2), (1, 1)), 1)
    assert not winograd_convolution.suits(x, 16, Geometry((16, 16), (5, 5), (14, 14), (1, 1), (1, 1), (1, 1)), 1)


def test_what_does_not_fit_is_refused(rng):
    where = geometry((8, 8))
    x, w, b, g = numbers(rng, 2, 16, 16, where)
    for images, filters, bias in (
        (x[:, :15], w, b),
        (x[..., :7], w, b),
        (x, w[:, :, :2], b),
        (x, w, b[:15]),
        (x.astype("d"), w, b),
    ):
        with pytest.raises(ValueError):
            winograd_convolution.correlate(images, filters, bias, where)
    for images, results in ((x[:1], g), (x, g[..., :7]), (x[..., :7], g)):
        with pytest.raises(ValueError):
            winograd_convolution.filter_gradient(images, results, where)
