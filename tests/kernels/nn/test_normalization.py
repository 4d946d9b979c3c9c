"""Normalization layers, forward and backward, against their formulas in double precision."""

import warnings

import numpy as np
import pytest
from arrays_zoo import LENGTHS, layouts, values

from cygrad._kernels.cpu.base import loop_table
from cygrad._kernels.cpu.nn import fused_normalization, normalization
from cygrad._ops.nn.normalization import Frame

EPS = 1e-5


@pytest.fixture(autouse=True)
def no_warnings():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def of_rows(shape, first, centered=True):
    """Layer norm and RMS norm over the dimensions from `first` on."""
    axes = tuple(range(first, len(shape)))
    return Frame(shape, axes, (1,) * first + shape[first:], tuple(range(first)), centered, False, EPS)


def of_batch(shape, fixed=False):
    others = (0, *range(2, len(shape)))
    return Frame(shape, others, (1, shape[1]) + (1,) * (len(shape) - 2), others, True, fixed, EPS)


def of_groups(shape):
    """Group norm: (samples, groups, channels of each, ...)."""
    ndim = len(shape)
    parameter = (1, *shape[1:3]) + (1,) * (ndim - 3)
    return Frame(shape, tuple(range(2, ndim)), parameter, (0, *range(3, ndim)), True, False, EPS)


FRAMES = [
    *[of_rows((3, n), 1) for n in LENGTHS[1:]],
    *[of_rows((3, n), 1, False) for n in (1, 5, 40)],
    *[of_rows((40, 2, 3, 5), first) for first in (1, 2, 3)],
    of_rows((7,), 0),
    of_rows((150, 256), 1),
    *[of_batch((3, 4, n)) for n in (1, 7, *LENGTHS[5:], 5000)],
    *[of_batch((3, 4, 3, n)) for n in (1, 2, 3, 5, 40)],
    of_batch((5, 4)),
    of_batch((3, 4, 9), True),
    of_batch((3, 4), True),
    of_batch((16, 32, 16, 16)),
    of_batch((300, 600)),
    of_batch((300, 600), True),
    of_batch((700, 3, 1)),
    of_batch((40, 30, 2, 2)),
    *[of_groups((3, 2, 5, n)) for n in (1, 7, 8, 33, 1000)],
    of_groups((30, 20, 5, 2)),
    of_groups((3, 2, 1, 4, 4)),
    of_groups((3, 1, 4, 9)),
    of_groups((3, 2, 5)),
]


def _described(frame):
    return f"{frame.view}-{frame.axes}-{frame.centered}-{frame.fixed}"


def by_formula(x, w, b, g, frame, given):
    """(result, gradients of input, weight, bias, mean, mean square), all in double precision."""
    x, g = x.astype("d"), g.astype("d")
    w, b = (None if p is None else p.astype("d") for p in (w, b))
    if given is None:
        middle = x.mean(frame.axes, keepdims=True) if frame.centered else np.zeros(1)
        squares = ((x - middle) ** 2).mean(frame.axes, keepdims=True)
    else:
        middle, squares = (a.astype("d") for a in given)
    factor = 1 / np.sqrt(squares + frame.eps)
    xhat = (x - middle) * factor
    result = xhat * (1 if w is None else w) + (0 if b is None else b)
    h = g if w is None else g * w
    grad = h
    if not frame.fixed:
        grad = grad - xhat * (h * xhat).mean(frame.axes, keepdims=True)
        if frame.centered:
            grad = grad - h.mean(frame.axes, keepdims=True)
    grad_w, grad_b = ((a.sum(frame.shared, keepdims=True) if frame.shared else a) for a in (g * xhat, g))
    return result, grad * factor, grad_w, grad_b, middle, squares


def close(actual, expected, dtype, scale=1.0):
    assert (actual.dtype, actual.shape) == (np.dtype(dtype), expected.shape)
    eps = np.finfo(dtype).eps
    np.testing.assert_allclose(actual.astype("d"), expected, rtol=200 * eps, atol=100 * eps * scale)


@pytest.mark.parametrize("frame", FRAMES, ids=_described)
@pytest.mark.parametrize("dtype", ["f", "d"])
def test_forward_and_backward(frame, dtype, rng):
    x, g = np.asarray(2 + 3 * values(rng, frame.view, dtype), dtype), values(rng, frame.view, dtype)
    given = None
    if frame.fixed:
        given = tuple(np.abs(values(rng, frame.parameter, dtype)) for _ in range(2))
    for with_weight in (True, False):
        w, b = (values(rng, frame.parameter, dtype) if with_weight else None for _ in range(2))
        expected = by_formula(x, w, b, g, frame, given)
        result, middle, factor, squares = normalization.normalized(x, w, b, frame, given)
        # The deviations of a constant row are rounding errors, which 1 / sqrt(eps) amplifies.
        scale = 300.0 if frame.view[-1] == 1 or x.size < 10 else 1.0
        close(result, expected[0], dtype, scale)
        if frame.centered:
            np.testing.assert_allclose(middle, expected[4], rtol=1e-4)
        if squares is not None:
            np.testing.assert_allclose(squares, expected[5], rtol=1e-4, atol=1e-6)
        found = normalization.gradients(g, x, w, middle, factor, frame, (True, True, True))
        size = float(x.size) ** 0.5
        for actual, wanted in zip(found, expected[1:4]):
            close(np.asarray(actual), wanted, dtype, scale * size)


@pytest.mark.parametrize("frame", [of_rows((6, 40), 1), of_batch((3, 4, 9)), of_groups((3, 2, 5, 9))], ids=_described)
def test_any_memory_and_only_what_is_needed(frame, rng):
    x, g = values(rng, frame.view, "f"), values(rng, frame.view, "f")
    w, b = values(rng, frame.parameter, "f"), values(rng, frame.parameter, "f")
    expected = by_formula(x, w, b, g, frame, None)
    for _, one in layouts(x):
        if not one.dtype.isnative:
            continue
        result, middle, factor, _ = normalization.normalized(one, w, b, frame, None)
        close(result, expected[0], "f")
        for _, other in layouts(g):
            if not other.dtype.isnative:
                continue
            for needs in ((True, False, False), (False, True, False), (False, False, True), (True, True, True)):
                found = normalization.gradients(other, one, w, middle, factor, frame, needs)
                for actual, wanted, needed in zip(found, expected[1:4], needs):
                    assert (actual is not None) == needed
                    if needed:
                        close(np.asarray(actual), wanted, "f", 10)


@pytest.mark.parametrize("fixed", [False, True])
@pytest.mark.parametrize("shape", [(3, 5, 4, 6), (70, 300, 2, 3), (2, 3, 2, 3, 4)])
def test_channels_last(shape, fixed, rng):
    """The result and the gradient are channels-last, too."""
    frame = of_batch(shape, fixed)
    x, g = values(rng, shape, "f"), values(rng, shape, "f")
    w, b = values(rng, frame.parameter, "f"), values(rng, frame.parameter, "f")
    given = tuple(np.abs(values(rng, frame.parameter, "f")) for _ in range(2)) if fixed else None
    expected = by_formula(x, w, b, g, frame, given)
    _, last, back = frame.channels_last
    image = np.ascontiguousarray(x.transpose(last)).transpose(back)
    result, middle, factor, _ = normalization.normalized(image, w, b, frame, given)
    close(result, expected[0], "f")
    for grad in (g, np.ascontiguousarray(g.transpose(last)).transpose(back)):
        found = normalization.gradients(grad, image, w, middle, factor, frame, (True, True, True))
        for actual, wanted in zip(found, expected[1:4]):
            close(np.asarray(actual), wanted, "f", float(x.size) ** 0.5)
        assert loop_table.has_loops(x) <= (result.strides == image.strides == found[0].strides)


@pytest.mark.parametrize("dtype", ["f", "d"])
def test_running_statistics(dtype, rng):
    middle, squares = values(rng, (1, 6, 1), dtype), np.abs(values(rng, (1, 6, 1), dtype))
    for count, factor in ((10, 10 / 9), (1, np.nan)):
        for step in (1, 2):
            means, variances = np.ones(6 * step, dtype)[::step], np.full(6, 2, dtype)
            normalization.follow(means, middle, variances, squares, count, 0.25)
            np.testing.assert_allclose(means, 0.75 + 0.25 * middle.ravel(), 1e-6)
            np.testing.assert_allclose(variances, 1.5 + 0.25 * factor * squares.ravel(), 1e-6)


@pytest.mark.parametrize("frame", [of_rows((2, 40), 1), of_batch((3, 2, 20)), of_groups((2, 1, 2, 20))], ids=_described)
def test_nan_and_infinity_stay_in_their_group(frame):
    for bad in (np.nan, np.inf, -np.inf):
        x = np.random.default_rng(0).standard_normal(frame.view).astype("f")
        clean = normalization.normalized(x, None, None, frame, None)[0]
        x[(0,) * x.ndim] = bad
        result, middle, factor, _ = normalization.normalized(x, None, None, frame, None)
        hurt = np.broadcast_to(np.isnan(middle) | np.isinf(middle), x.shape)
        assert hurt.any() and not hurt.all()
        assert np.isnan(result[hurt]).any()
        np.testing.assert_array_equal(result[~hurt], clean[~hurt])


def test_what_does_not_fit_is_refused():
    x, w = np.ones((3, 4), "f"), np.ones(4, "f")
    mean = np.zeros(3, "f")
    for arguments in (
        (np.ones(4, "f"), w, w),
        (x.astype("i"), w, w),
        (x, w[:3], w),
        (x, w, w.astype("d")),
        (x, w, w[:2]),
    ):
        with pytest.raises(ValueError):
            fused_normalization.normalize_rows(*arguments, 4, (3, 1), EPS, True)
    for g, m in ((x[:2], mean), (x, mean[:2]), (x.astype("d"), mean)):
        with pytest.raises(ValueError):
            fused_normalization.rows_gradients(g, x, w, m, mean, (4,), True, True, True, True)
    groups, table = fused_normalization.Runs(3, 4, 5, (20, 5), 3, (4, 1)), np.ones(12, "f")
    runs = np.ones((3, 4, 5), "f")
    for given in ((runs[:2], table), (runs, table[:3]), (runs.astype("i"), table), (runs, table.astype("d"))):
        with pytest.raises(ValueError):
            fused_normalization.normalize_groups(*given, None, groups, (3,), EPS, None)
    with pytest.raises(ValueError):
        fused_normalization.normalize_groups(runs, None, None, groups, (4,), EPS, None)
    for g, m in ((runs[:2], mean), (runs, mean[:2]), (runs.astype("d"), mean)):
        with pytest.raises(ValueError):
            fused_normalization.groups_gradients(g, runs, table, m, mean, groups, False, True, True)


@pytest.mark.skipif(not fused_normalization.has_loops(np.ones(1)), reason="done by NumPy")
def test_empty_arrays():
    x, w = np.ones((0, 4), "f"), np.ones(4, "f")
    out, mean, factor = fused_normalization.normalize_rows(x, w, w, 4, (0, 1), EPS, True)
    assert (out.shape, mean.shape, factor.shape) == ((0, 4), (0, 1), (0, 1))
    found = fused_normalization.rows_gradients(x, x, w, mean, factor, (4,), True, True, True, True)
    assert [a.shape for a in found] == [(0, 4), (4,), (4,)]
    assert not found[1].any()


def test_loops_by_number_take_dense_arrays_only():
    x, w = np.ones((3, 4), "f"), np.ones(4, "f")
    for loop, arrays in (
        (-1, (x,)),
        (1000, (x,)),
        (0, (x[:, ::2], w)),
        (0, (x.astype("i"), w)),
        (0, (x, np.ones(5, np.uint8)[1:].view("f"))),
        (0, (x,) * 24),
    ):
        with pytest.raises(ValueError):
            loop_table.run(loop, arrays, (), 0, 3, 1)
    for wrong in ("array", [1.0], None):
        with pytest.raises(TypeError):
            loop_table.run(0, (wrong, x), (), 0, 3, 1)
