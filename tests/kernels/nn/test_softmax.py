"""Fused softmax and log-likelihood kernels against their formulas in double precision."""

import math
import warnings

import numpy as np
import pytest
from arrays_zoo import LENGTHS, layouts, values

from cygrad._kernels.cpu.base import elementwise
from cygrad._kernels.cpu.nn import softmax

FLOATS = ["e", "f", "d", "g"]
SHAPES = [(), (1,), (7,), (5, 3), (1, 1), (4, 33), (3, 4, 5), (2, 70, 3), (2, 3, 1, 4), (3, 40, 40)]


@pytest.fixture(autouse=True)
def no_warnings():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def check(actual, expected, dtype, ulps=8):
    assert type(actual) is np.ndarray
    assert (actual.dtype, actual.shape) == (np.dtype(dtype), expected.shape)
    eps = max(np.finfo(dtype).eps, np.finfo("d").eps)
    np.testing.assert_allclose(actual.astype("d"), expected.astype("d"), rtol=ulps * eps, atol=ulps * eps)


def wide(a):
    return a.astype("d")


def log_softmax(a, axis):
    distance = a - a.max(axis, keepdims=True)
    return distance - np.log(np.exp(distance).sum(axis, keepdims=True))


# --- Softmax -------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", FLOATS)
def test_softmax(dtype, rng):
    for shape in SHAPES:
        a, g = np.asarray(3 * values(rng, shape, dtype), dtype), values(rng, shape, dtype)
        for axis in range(max(a.ndim, 1)):
            x, y = (np.atleast_1d(wide(v)) for v in (a, g))
            logs = log_softmax(x, axis)
            soft = np.exp(logs)
            inner = (y * soft).sum(axis, keepdims=True)
            total = y.sum(axis, keepdims=True)
            rounded, logs_rounded = soft.astype(dtype).reshape(shape), logs.astype(dtype).reshape(shape)
            for _, v in layouts(a):
                check(softmax.softmax(v, axis), soft.reshape(shape), dtype)
                check(softmax.log_softmax(v, axis), logs.reshape(shape), dtype, 16)
            for _, v in layouts(g):
                for _, s in layouts(rounded):
                    check(softmax.softmax_backward(v, s, axis), ((y - inner) * soft).reshape(shape), dtype)
                for _, s in layouts(logs_rounded):
                    expected = (y - soft * total).reshape(shape)
                    check(softmax.log_softmax_backward(v, s, axis), expected, dtype, 100)


@pytest.mark.parametrize("dtype", ["f", "d"])
def test_rows_and_columns_of_all_lengths(dtype, rng):
    for n in [*LENGTHS[1:], 2047, 2048, 2049, 5000, 70000]:
        for rows in (1, 3):
            a, g = values(rng, (rows, n), dtype), values(rng, (rows, n), dtype)
            logs = log_softmax(wide(a), 1)
            soft, total = np.exp(logs), wide(g).sum(1, keepdims=True)
            check(softmax.softmax(a, 1), soft, dtype)
            check(softmax.log_softmax(a, 1), logs, dtype, 16)
            check(softmax.softmax(a.T, 0), soft.T, dtype)
            check(softmax.log_softmax(a.T.copy(), 0), logs.T, dtype, 16)
            back = (g - (g * soft).sum(1, keepdims=True)) * soft
            check(softmax.softmax_backward(g, soft.astype(dtype), 1), back, dtype)
            check(softmax.softmax_backward(g.T.copy(), soft.T.astype(dtype), 0), back.T, dtype)
            back = g - soft * total
            check(softmax.log_softmax_backward(g, logs.astype(dtype), 1), back, dtype, 100)
            check(softmax.log_softmax_backward(g.T.copy(), logs.T.astype(dtype), 0), back.T, dtype, 100)


@pytest.mark.parametrize("dtype", FLOATS)
def test_softmax_of_special_values(dtype):
    nan, inf, high = np.nan, np.inf, min(np.finfo(dtype).max, np.finfo("d").max)
    for n in (3, 40):
        fill = np.full(n, -inf)
        rows = np.stack([fill.copy() for _ in range(5)])
        rows[0, 0] = 0
        rows[1, :2] = high, -high
        rows[2, 1] = nan
        rows[3, 2] = inf
        rows = rows.astype(dtype)
        for a, axis in ((rows, 1), (rows.T.copy(), 0)):
            soft, logs = softmax.softmax(a, axis), softmax.log_softmax(a, axis)
            if axis == 0:
                soft, logs = soft.T, logs.T
            for k in (0, 1):
                np.testing.assert_array_equal(soft[k], [1] + [0] * (n - 1))
                assert logs[k, 0] == 0
                assert (logs[k, 1:] < -1000).all()
            assert np.isnan(soft[2:]).all()
            assert np.isnan(logs[2:]).all()


def test_softmax_underflows_to_zero_where_the_exponential_does():
    with np.errstate(under="ignore"):
        found = softmax.softmax(np.array([0, -103, -103.5, -104, -105, -1e30, -np.inf], "f"), 0)
    assert found[1] > 0 and (found[3:] == 0).all()


def test_exponentials_of_all_that_is_far_below_are_zero():
    """Neither the power of 2 nor the remaining factor may be representable as a float there."""
    far = -np.geomspace(104.5, np.finfo("f").max, 30_000).astype("f")
    around = -8721806 + np.arange(-3000, 3000).astype("f") / 4  # x / log(2) + 1.5 * 2^23 changes its sign there
    row = np.concatenate([[0, 0], far, around, [-np.inf]]).astype("f")
    expected = np.zeros_like(row)
    expected[:2] = 0.5
    np.testing.assert_array_equal(softmax.softmax(row, 0), expected)
    np.testing.assert_array_equal(softmax.log_softmax_backward(expected, row, 0), [-0.5, -0.5, *expected[2:]])
    _, _, probabilities = softmax.cross_entropy(row[None], np.zeros(1, int), None, -100, 0)
    np.testing.assert_array_equal(probabilities, expected[None])


def test_softmax_of_nothing():
    for dtype in FLOATS:
        for shape in ((0,), (0, 3), (3, 0), (2, 0, 3)):
            a = np.empty(shape, dtype)
            for axis in range(len(shape)):
                assert softmax.softmax(a, axis).shape == softmax.log_softmax(a, axis).shape == shape
                assert softmax.softmax_backward(a, a, axis).shape == shape
                assert softmax.log_softmax_backward(a, a, axis).shape == shape
    for axis in (-1, 2):
        with pytest.raises(ValueError, match="axis"):
            softmax.softmax(np.ones((2, 3)), axis)
    with pytest.raises(ValueError, match="axis"):
        softmax.log_softmax(np.array(1.0), 1)


def test_gradients_must_have_the_shape_and_type_of_the_result():
    for f in (softmax.softmax_backward, softmax.log_softmax_backward):
        with pytest.raises(ValueError, match="a gradient of shape"):
            f(np.ones(3), np.ones((2, 3)), 1)


# --- Negative log-likelihood ---------------------------------------------------------------------

NONE, MEAN, SUM = range(3)


def nll(logp, target, weight, ignored, reduction):
    w = np.ones(logp.shape[1]) if weight is None else wide(weight)
    kept = target != ignored
    factor = np.where(kept, w[np.where(kept, target, 0)], 0)
    losses = -factor * wide(logp)[np.arange(len(target)), np.where(kept, target, 0)]
    with np.errstate(all="ignore"):
        loss = {NONE: losses, MEAN: losses.sum() / factor.sum(), SUM: losses.sum()}[reduction]
    return np.asarray(loss), factor


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("reduction", [NONE, MEAN, SUM])
def test_nll(dtype, reduction, rng):
    for n, classes in [(1, 1), (5, 3), (64, 10), (0, 4)]:
        logp = values(rng, (n, classes), dtype)
        target = rng.integers(0, classes, n)
        target[::4] = -100
        for weight in (None, np.abs(values(rng, classes, dtype))):
            expected, factor = nll(logp, target, weight, -100, reduction)
            g = values(rng, expected.shape, dtype)
            scale = wide(g) * (1 / max(factor.sum(), 1e-30) if reduction == MEAN else 1)
            back = np.zeros((n, classes))
            kept = target != -100
            back[np.flatnonzero(kept), target[kept]] = -(factor * scale)[kept]
            for name, x in layouts(logp):
                targets = (target, target.astype("i"), target.astype(">i8"), target[::-1].copy()[::-1])
                for t in targets if name == "contiguous" else targets[:1]:
                    loss, total = softmax.nll(x, t, weight, -100, reduction)
                    check(loss, expected, dtype, 40)
                    # float16 ends at 65504, which is few for a count
                    check(total, np.asarray(factor.sum()), "f" if dtype == "e" else dtype, 40)
                    check(softmax.nll_backward(g, x, t, weight, -100, reduction, total), back, dtype, 40)


def test_nll_of_ignored_rows_only():
    logp, target = np.full((3, 2), np.nan, "f"), np.full(3, 1)
    losses, total = softmax.nll(logp, target, None, 1, NONE)
    np.testing.assert_array_equal(losses, [0, 0, 0])
    assert total == 0
    assert np.isnan(softmax.nll(logp, target, None, 1, MEAN)[0])
    assert softmax.nll(logp, target, None, 1, SUM)[0] == 0
    grad = softmax.nll_backward(np.array(1, "f"), logp, target, None, 1, MEAN, total)
    np.testing.assert_array_equal(grad, np.zeros((3, 2)))


def test_nll_refuses_targets_that_are_no_class():
    logp, one = np.zeros((3, 10), "f"), np.array(1, "f")
    for bad in (10, -1, -100, 2**40):
        target = np.array([0, bad, 1])
        with pytest.raises(IndexError, match=rf"^Target {bad} is out of bounds\.\n  the input has scores for 10 "):
            softmax.nll(logp, target, None, 7, MEAN)
        with pytest.raises(IndexError, match=rf"^Target {bad} is out of bounds\.\n  the input has scores for 10 "):
            softmax.nll_backward(one, logp, target, None, 7, MEAN, one)


def test_nll_refuses_shapes_that_do_not_fit():
    logp, target, one = np.zeros((3, 4)), np.zeros(3, int), np.array(1.0)
    for a, t, w in (
        (logp, target[:2], None),
        (logp[0], target, None),
        (logp, target[:, None], None),
        (logp, target, np.ones(3)),
        (logp, target, np.array(1.0)),
    ):
        with pytest.raises(ValueError, match=r"nll takes|weights of shape"):
            softmax.nll(a, t, w, -100, MEAN)
        with pytest.raises(ValueError, match=r"nll takes|weights of shape"):
            softmax.nll_backward(one, a, t, w, -100, MEAN, one)
    for grad, reduction in ((one, NONE), (np.ones(3), MEAN), (np.ones(4), NONE)):
        with pytest.raises(ValueError, match="for a loss of 3 rows"):
            softmax.nll_backward(grad, logp, target, None, -100, reduction, one)


def test_error_function_of_single_precision(rng):
    x = np.concatenate([rng.uniform(-5, 5, 3001), 10 ** rng.uniform(-30, 0, 100), [0, -0.0, 3.92, -4, np.inf, -np.inf]])
    x = x.astype(np.float32)
    expected = np.array([math.erf(v) for v in x])
    error = np.abs(elementwise.erf(x) - expected) / np.spacing(np.abs(expected).astype(np.float32))
    assert error.max() < 0.52
    assert np.isnan(elementwise.erf(np.array([np.nan], np.float32)))[0]
