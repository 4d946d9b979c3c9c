"""Image patches and their transpose, window maxima, and scatter-add, against Python loops."""

import itertools

import numpy as np
import pytest
from arrays_zoo import values

import cygrad
from cygrad._kernels.cpu.image import patches as images
from cygrad._kernels.cpu.image.window_geometry import Geometry

pytestmark = pytest.mark.skipif(not images.has_loops(np.ones(1)), reason="done by NumPy")


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def geometry(image, kernel, stride=(1, 1), dilation=(1, 1), low=(0, 0), high=None):
    """The windows that fit into an image with `low` zeros before it and `high` zeros after it."""
    high = low if high is None else high
    size = [
        (n + before + after - d * (k - 1) - 1) // s + 1
        for n, k, s, d, before, after in zip(image, kernel, stride, dilation, low, high)
    ]
    return Geometry(image, kernel, size, stride, dilation, low)


GEOMETRIES = [
    geometry((5, 7), (3, 3)),
    geometry((5, 7), (3, 3), low=(1, 1)),
    geometry((6, 33), (3, 2), (2, 2), low=(1, 1)),
    geometry((9, 40), (2, 3), (1, 3), (3, 2), (2, 1)),
    geometry((4, 4), (4, 4), (1, 1), (1, 1), (3, 3)),
    geometry((1, 1), (3, 3), low=(1, 1)),
    geometry((3, 5), (1, 1), (2, 2)),
    geometry((3, 5), (5, 1), low=(4, 0), high=(0, 0)),
    geometry((3, 4), (2, 2), (5, 5)),
    geometry((2, 3), (2, 2), (1, 1), (1, 1), (-1, -1), (3, 3)),
]


def seen(where, first=0, last=None):
    """For each tap and output position, yield (tap, y, x, image position) if it is inside the image."""
    taps = list(itertools.product(range(where.kernel[0]), range(where.kernel[1])))
    for number, (ky, kx) in enumerate(taps):
        for y in range(first, where.size[0] if last is None else last):
            for x in range(where.size[1]):
                row = y * where.stride[0] + ky * where.dilation[0] - where.low[0]
                column = x * where.stride[1] + kx * where.dilation[1] - where.low[1]
                if 0 <= row < where.image[0] and 0 <= column < where.image[1]:
                    yield number, y - first, x, (row, column)


def guarded(size, dtype):
    """Memory for `size` elements between two guard zones, and the whole buffer."""
    room = np.full(size + 40, 77, dtype)
    return room[20 : size + 20], room


@pytest.mark.parametrize("where", GEOMETRIES, ids=lambda g: str(vars(g)))
@pytest.mark.parametrize("dtype", ["f", "d"])
def test_patches_and_back(where, dtype, rng):
    for rows in ((0, where.size[0]), (where.size[0] // 2, where.size[0]), (0, 0)):
        n, channels, taps = 3, 2, where.kernel[0] * where.kernel[1]
        x = values(rng, (n, channels, *where.image), dtype)
        shape = (channels, taps, n, rows[1] - rows[0], where.size[1])
        expected = np.zeros(shape, dtype)
        for tap, y, column, place in seen(where, *rows):
            expected[:, tap, :, y, column] = x[(slice(None), slice(None), *place)].T
        patches, room = guarded(expected.size, dtype)
        images.copy_patches(x, patches, where.flat(*rows))
        np.testing.assert_array_equal(patches.reshape(shape), expected)
        assert (room[:20] == 77).all() and (room[-20:] == 77).all()

        g = values(rng, shape, dtype)
        wanted = x.astype("d")
        for tap, y, column, place in seen(where, *rows):
            wanted[(slice(None), slice(None), *place)] += g[:, tap, :, y, column].T
        out, room = guarded(x.size, dtype)
        out[...] = x.reshape(-1)
        images.add_patches(out.reshape(x.shape), g.reshape(-1), where.flat(*rows))
        np.testing.assert_allclose(out.reshape(x.shape), wanted, rtol=1e-5, atol=1e-5)
        assert (room[:20] == 77).all() and (room[-20:] == 77).all()


@pytest.mark.parametrize("dtype", ["f", "d"])
def test_largest_elements(dtype, rng):
    for where in [
        geometry((6, 33), (2, 2), (2, 2)),
        geometry((5, 7), (3, 3), (2, 1), low=(1, 1)),
        geometry((9, 12), (2, 3), (1, 2), (3, 2)),
        geometry((4, 26), (2, 3), (1, 1)),
        geometry((3, 60), (3, 2), (1, 3), low=(1, 1)),
        geometry((3, 4), (2, 2)),
    ]:
        x = np.round(values(rng, (2, 3, *where.image), dtype))  # includes ties
        x[0, 0, 0, :4] = np.nan
        x[0, 1] = -np.inf
        x[0, 2, 2, 3] = np.inf
        size = 6 * where.size[0] * where.size[1]
        best, room = guarded(size, dtype)
        places = np.full(size, -5)
        images.largest(x, best, places, where.flat())
        taken = {}
        for _, y, column, place in seen(where):
            taken.setdefault((y, column), []).append(place)
        for plane, (i, c) in enumerate(itertools.product(range(2), range(3))):
            for (y, column), window in taken.items():
                found = [x[i, c, a, b] for a, b in sorted(window)]
                nans = [k for k, value in enumerate(found) if np.isnan(value)]
                first = nans[-1] if nans else found.index(max(found))
                row, at = sorted(window)[first]
                k = (plane * where.size[0] + y) * where.size[1] + column
                np.testing.assert_array_equal(best[k], found[first])
                assert places[k] == row * where.image[1] + at
        assert (room[:20] == 77).all() and (room[-20:] == 77).all()


def test_large_images_are_the_same_for_every_number_of_threads(rng):
    from cygrad._kernels.platform import thread_pool

    where = geometry((40, 40), (3, 3), low=(1, 1))
    x, results = values(rng, (8, 4, 40, 40), "f"), []
    before = thread_pool.num_threads()
    try:
        for threads in (1, 2, 5):
            thread_pool.set_num_threads(threads)
            patches = np.empty(x.size * 9, "f")
            images.copy_patches(x, patches, where.flat())
            out = x.copy()
            images.add_patches(out, patches, where.flat())
            results.append((patches, out))
    finally:
        thread_pool.set_num_threads(before)
    for patches, out in results[1:]:
        np.testing.assert_array_equal(patches, results[0][0])
        np.testing.assert_array_equal(out, results[0][1])


def test_what_does_not_fit_is_refused():
    x, where = np.ones((1, 1, 4, 4), "f"), geometry((4, 4), (2, 2))
    flat = where.flat()
    for image, patches, given in (
        (x, np.empty(35, "f"), flat),
        (x, np.empty(36, "d"), flat),
        (x.astype("i"), np.empty(36, "i"), flat),
        (x[0], np.empty(36, "f"), flat),
        (x[..., ::-1], np.empty(36, "f"), flat),
        (x, np.empty(72, "f")[::2], flat),
        (x, np.empty(36, "f"), geometry((4, 5), (2, 2)).flat()),
        (x, np.empty(36, "f"), (*flat[:2], (0, 1), *flat[3:])),
    ):
        with pytest.raises(ValueError):
            images.copy_patches(image, patches, given)
        with pytest.raises(ValueError):
            images.add_patches(image, patches, given)
    frozen = x.copy()
    frozen.flags.writeable = False
    with pytest.raises(ValueError):
        images.add_patches(frozen, np.empty(36, "f"), flat)
    outside = (*flat[:4], (9, 0), *flat[5:])
    with pytest.raises(ValueError, match="sees nothing"):
        images.largest(x, np.empty(9, "f"), np.empty(9, np.int64), outside)
    with pytest.raises(ValueError):
        images.largest(x, np.empty(9, "f"), np.empty(9, np.int32), flat)
    for count, image in ((8, x), (9, x[:, :, :3]), (9, x[..., ::-1])):
        with pytest.raises(ValueError):
            images.largest(image, np.empty(count, "f"), np.empty(count, np.int64), flat)


def test_strides_of_any_size():
    x = cygrad.arange(24.0).reshape(1, 2, 3, 4)
    for function in (cygrad.nn.functional.unfold, cygrad.nn.functional.max_pool2d, cygrad.nn.functional.avg_pool2d):
        assert cygrad.equal(function(x, 2, stride=2**63 - 1), function(x, 2, stride=50))
