"""Grid sampling with loops, against the implementation in NumPy."""

from itertools import product

import numpy as np
import pytest

from cygrad._kernels.cpu.base import loop_table
from cygrad._kernels.cpu.image import grid_sampling
from cygrad._kernels.platform import thread_pool

pytestmark = pytest.mark.skipif(not loop_table.has_loops(np.ones(1)), reason="done by NumPy")

SIZES = [((5, 4), (70,)), ((1, 6), (3, 50)), ((3, 1), (2, 2)), ((4, 3, 5), (1, 9, 8)), ((2, 1, 1), (65, 1, 1))]
HOWS = list(product(grid_sampling.WEIGHTS, grid_sampling.PADDINGS, (False, True)))


def images_and_grid(sizes, points, channels, dtype):
    rng = np.random.default_rng(0)
    points = points if len(points) == len(sizes) else (1, *points)
    x = rng.standard_normal((2, channels, *sizes)).astype(dtype)
    return x, (rng.standard_normal((2, *points, len(sizes))) * 1.2).astype(dtype)


def close(dtype):
    return {"rtol": 1e-4, "atol": 1e-4} if dtype == "f" else {"rtol": 1e-10, "atol": 1e-10}


@pytest.mark.parametrize("dtype", ["f", "d"])
@pytest.mark.parametrize("how", HOWS, ids=str)
@pytest.mark.parametrize("channels", [1, 6])
def test_samples_and_the_way_back(channels, how, dtype):
    for sizes, points in SIZES:
        if how[0] == "bicubic" and len(sizes) > 2:
            continue
        x, grid = images_and_grid(sizes, points, channels, dtype)
        found = grid_sampling.sample(x, grid, *how)
        np.testing.assert_allclose(found, grid_sampling._sample_by_numpy(x, grid, *how), **close(dtype))
        np.testing.assert_array_equal(
            found, grid_sampling.sample(np.asfortranarray(x), np.repeat(grid, 2, 1)[:, ::2], *how)
        )
        g = np.random.default_rng(1).standard_normal(found.shape).astype(dtype)
        back, _ = grid_sampling.sample_gradient(g, x, grid, x.shape, how, (True, True))
        assert np.vdot(back.astype("d"), x) == pytest.approx(np.vdot(g.astype("d"), found), rel=1e-3, abs=1e-3)
        alone = grid_sampling.sample_gradient(g, None, grid, x.shape, how, (True, False))
        assert alone[1] is None
        np.testing.assert_array_equal(alone[0], back)


@pytest.mark.parametrize("how", HOWS, ids=str)
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 1e30])
def test_points_that_are_nowhere(value, how):
    x, grid = np.ones((1, 2, 3, 4), "f"), np.array([[[[value, 0.1], [0.2, value]]]], "f")
    expected = grid_sampling._sample_by_numpy(x, grid, *how)  # without fused multiply-adds
    np.testing.assert_allclose(grid_sampling.sample(x, grid, *how), expected, rtol=5e-7)


def test_what_is_outside_of_images_is_not_seen():
    x = np.full((1, 1, 2, 2), np.inf, "f")
    grid = np.array([[[[-3.0, 0.0], [0.0, 5.0]]]], "f")
    assert (grid_sampling.sample(x, grid, "bilinear", "zeros", False) == 0).all()
    back, _ = grid_sampling.sample_gradient(
        np.full((1, 1, 1, 2), np.inf, "f"), x, grid, x.shape, HOWS[0], (True, False)
    )
    assert (back == 0).all()


def test_the_same_for_every_number_of_threads():
    x, grid = images_and_grid((30, 20), (40, 50), 5, "f")
    g, before, results = np.ones((2, 5, 40, 50), "f"), thread_pool.num_threads(), []
    try:
        for threads in (1, 2, 5):
            thread_pool.set_num_threads(threads)
            back = grid_sampling.sample_gradient(g, x, grid, x.shape, HOWS[0], (True, True))
            results.append((grid_sampling.sample(x, grid, *HOWS[0]), *back))
    finally:
        thread_pool.set_num_threads(before)
    for found in results[1:]:
        for one, other in zip(found, results[0]):
            np.testing.assert_array_equal(one, other)


def test_what_does_not_fit_is_refused():
    x, grid = images_and_grid((5, 4), (3, 3), 2, "f")
    for images, points in ((x[:1], grid), (x[0], grid[0]), (x, grid[..., :1])):
        with pytest.raises(ValueError):
            grid_sampling.sample(images, points, "bilinear", "zeros", False)
    with pytest.raises(ValueError):
        grid_sampling.sample_gradient(np.ones((2, 2, 3, 2), "f"), x, grid, x.shape, HOWS[0], (True, True))
