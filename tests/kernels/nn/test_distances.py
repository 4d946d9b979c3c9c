"""Distances between rows against their definition, and reductions of slices by index."""

import numpy as np
import pytest

from cygrad._kernels.cpu.indexing import scatter
from cygrad._kernels.cpu.nn import distances
from cygrad._kernels.platform import thread_pool

NORMS = [0, 0.5, 1, 2, 3, np.inf]


def by_definition(x, y, p):
    size = np.abs(x[..., :, None, :].astype("d") - y[..., None, :, :])
    if p in (0, np.inf):
        return (size != 0).sum(-1) if p == 0 else size.max(-1, initial=0)
    return (size**p).sum(-1) ** (1 / p)


@pytest.mark.parametrize("dtype", ["f", "d"])
@pytest.mark.parametrize("p", NORMS)
@pytest.mark.parametrize("shape", [(1, 3), (2, 1), (2, 0), (7, 5), (40, 300), (200, 9), (131, 2)], ids=str)
def test_distances(shape, p, dtype):
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((2, 3, *shape)).astype(dtype)
    y = y[:, : max(shape[0] - 1, 1)]
    near = {"rtol": 1e-5 if dtype == "f" else 1e-12}
    for a, b in ((x, y), (x[0], y[1]), (x[:, ::-1], y[..., ::-1]), (x[:, None], y[:1])):
        np.testing.assert_allclose(distances.cdist(a, b, p, False), by_definition(a, b, p), **near)
    pairs = np.triu_indices(shape[0], 1)
    for a in (x[0], x[1, ::-1], np.repeat(x[2], 2, -1)[:, ::2]):
        np.testing.assert_allclose(distances.pdist(a, p), by_definition(a, a, p)[pairs], **near)


@pytest.mark.parametrize("p", [1, 2, np.inf])
def test_unusual_distances(p):
    x = np.array([[0, 1], [np.inf, 1], [-np.inf, 0], [np.nan, 9], [5, np.nan], [3e38, -3e38]], np.float32)
    with np.errstate(all="ignore"):
        expected = by_definition(x, x, p).astype("f")
    if p == 2:
        expected[[0, 4], 5] = expected[5, [0, 4]] = [np.inf, np.nan]
    np.testing.assert_array_equal(distances.cdist(x, x, p, False), expected)
    np.testing.assert_array_equal(distances.pdist(x, p), expected[np.triu_indices(6, 1)])


@pytest.mark.parametrize("p", [1, 1.5, 2, np.inf])
def test_gradient_of_pairs(p):
    rng = np.random.default_rng(1)
    for n, k in ((2, 1), (5, 3), (60, 700), (300, 2)):
        x = rng.standard_normal((n, k))
        x[1] = x[0]
        g, far = rng.standard_normal(n * (n - 1) // 2), distances.pdist(x, p)
        expected = np.zeros_like(x)
        for (i, j), slope, distance in zip(np.transpose(np.triu_indices(n, 1)), g, far):
            d = x[i] - x[j]
            if distance:
                pull = np.sign(d) * (abs(d) == distance if p == np.inf else (abs(d) / distance) ** (p - 1))
                expected[i] += slope * pull
                expected[j] -= slope * pull
        np.testing.assert_allclose(distances.pdist_gradient(g, x, far, p), expected, rtol=1e-9, atol=1e-9)
    assert distances.pdist_gradient(np.zeros(0), np.ones((1, 3)), np.zeros(0), p).tolist() == [[0, 0, 0]]


def test_gradient_beside_infinity():
    x = np.array([[np.inf], [1.0], [0.0]])
    found = distances.pdist_gradient(np.ones(3), x, distances.pdist(x, 1), 1)
    assert found.tolist() == [[2], [0], [-2]]


def test_threads_change_nothing():
    x = np.random.default_rng(0).standard_normal((300, 50)).astype("f")
    former, found = thread_pool.num_threads(), []
    try:
        for count in (1, 2, 3):
            thread_pool.set_num_threads(count)
            found.append((distances.pdist(x, 2), distances.cdist(x, x, 1, False)))
    finally:
        thread_pool.set_num_threads(former)
    for other in found[1:]:
        assert all(np.array_equal(a, b) for a, b in zip(found[0], other))


@pytest.mark.parametrize("include_self", [True, False])
@pytest.mark.parametrize("reduce", ["prod", "amax", "amin", "mean"])
def test_slices_reduced_by_index(reduce, include_self):
    rng = np.random.default_rng(0)
    cases = [((9, 500), 0, 5), ((9, 500), 0, 200), ((4, 6, 100), 1, 11), ((30,), 0, 50), ((3, 300), 1, 0)]
    for shape, axis, count in cases:
        for dtype in ("f", "d", "l"):
            a = rng.integers(1, 9, shape).astype(dtype)
            source = rng.integers(1, 3, (*shape[:axis], count, *shape[axis + 1 :])).astype(dtype)
            index = rng.integers(0, shape[axis] // 2, count)
            before = a.copy()
            found = scatter.index_reduce(a, axis, index, source, reduce, include_self)
            along = scatter.index_of_slices(index, axis, source.shape)
            np.testing.assert_array_equal(found, scatter.scatter_reduce(a, axis, along, source, reduce, include_self))
            np.testing.assert_array_equal(a, before)
            assert found.flags.c_contiguous


@pytest.mark.parametrize("shape", [(1, 4), (2, 3), (3, 1), (250, 9), (40, 2000)])
def test_gradient_of_pdist_in_single_precision(shape):
    random = np.random.default_rng(0)
    x = (random.standard_normal(shape) + 3).astype(np.float32)
    x[-1] = x[0]
    distance = distances.pdist(x, 2)
    g = random.standard_normal(distance.shape).astype(np.float32)
    exact = distances.pdist_gradient(*(a.astype(np.float64) for a in (g, x, distance)), 2)
    found = distances.pdist_gradient(g, x, distance, 2)
    assert found.dtype == np.float32
    assert np.allclose(found, exact, 1e-5, 1e-5)
    if shape == (250, 9):
        g[7], x[5, 3] = np.inf, np.nan
        with np.errstate(all="ignore"):
            expected = distances.pdist_gradient(*(a.astype(np.float64) for a in (g, x, distance)), 2)
        found = distances.pdist_gradient(g, x, distance, 2)
        assert np.allclose(found, expected, 1e-5, 1e-4, equal_nan=True)
