"""Activation functions and their gradients, against their formulas in double precision."""

import math
import warnings

import numpy as np
import pytest
from arrays_zoo import LENGTHS, layouts, values

from cygrad._kernels.cpu.nn import activations

FLOATS = ["e", "f", "d", "g"]
SHAPES = [(), (1,), (7,), (5, 3), (4, 33), (3, 4, 5)]
SPECIAL = [0.0, -0.0, 1e-40, -1e-40, 3.9, -3.9, 19.9, 20.1, 88.7, -88.7, -103.9, 708.0, -745.0, 1e5, -1e5, 1e30, -1e30]


@pytest.fixture(autouse=True)
def no_warnings():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def sigmoid(x):
    return 1 / (1 + math.exp(-x)) if x > -700 else 0.0


def tanh_of_softplus(x):
    return math.tanh(math.log1p(math.exp(x))) if x < 30 else 1.0


def distribution(x):
    return 0.5 * math.erfc(-x * math.sqrt(0.5))


def density(x):
    return math.exp(-x * x / 2) / math.sqrt(2 * math.pi) if abs(x) < 1e9 else 0.0


def tanh_inner(x):
    return max(-20.0, min(math.sqrt(2 / math.pi) * (x + 0.044715 * min(abs(x), 1e9) ** 2 * x), 20.0))


def gelu_tanh_slope(x):
    u = tanh_inner(x)
    inner = math.sqrt(2 / math.pi) * (1 + 3 * 0.044715 * min(abs(x), 1e9) ** 2)
    return 0.5 * (1 + math.tanh(u)) + (0.5 * x * (1 - math.tanh(u) ** 2) * inner if abs(u) < 20 else 0.0)


# Functions with gradients in terms of the input: function, gradient, and both for one number.
OF_INPUT = {
    "sigmoid": (activations.sigmoid, None, sigmoid, None),
    "silu": (
        activations.silu,
        activations.silu_backward,
        lambda x: x * sigmoid(x),
        lambda x: sigmoid(x) + x * sigmoid(x) * sigmoid(-x),
    ),
    "mish": (
        activations.mish,
        activations.mish_backward,
        lambda x: x * tanh_of_softplus(x),
        lambda x: tanh_of_softplus(x) + x * sigmoid(x) * (1 - tanh_of_softplus(x) ** 2),
    ),
    "gelu": (
        activations.gelu,
        activations.gelu_backward,
        lambda x: x * distribution(x),
        lambda x: distribution(x) + x * density(x),
    ),
    "gelu_tanh": (
        activations.gelu_tanh,
        activations.gelu_tanh_backward,
        lambda x: 0.5 * x * (1 + math.tanh(tanh_inner(x))),
        gelu_tanh_slope,
    ),
}
# Gradients in terms of the result: the gradient, and its factor.
OF_RESULT = {
    "tanh": (activations.tanh_backward, lambda y: 1 - y * y),
    "sigmoid": (activations.sigmoid_backward, lambda y: (1 - y) * y),
    "threshold": (activations.threshold_backward, lambda y: y > 0),
}
FUNCTIONS = [pytest.param(*functions, id=name) for name, functions in OF_INPUT.items()]
GRADIENTS = [pytest.param(*functions, id=name) for name, functions in OF_RESULT.items()]


def each(function, a):
    """Apply the function to each element in double precision."""
    return np.array([function(x) for x in a.astype("d").ravel().tolist()]).reshape(a.shape)


def check(actual, expected, dtype):
    assert type(actual) is np.ndarray
    assert (actual.dtype, actual.shape) == (np.dtype(dtype), expected.shape)
    eps = max(np.finfo(dtype).eps, np.finfo("d").eps)
    np.testing.assert_allclose(actual.astype("d"), expected, rtol=64 * eps, atol=64 * eps)


@pytest.mark.parametrize("forward, backward, function, slope", FUNCTIONS)
@pytest.mark.parametrize("dtype", FLOATS)
def test_functions_of_all_layouts(forward, backward, function, slope, dtype, rng):
    for shape in SHAPES:
        a, g = np.asarray(3 * values(rng, shape, dtype), dtype), values(rng, shape, dtype)
        for _, x in layouts(a):
            check(forward(x), each(function, a), dtype)
            for _, y in layouts(g) if backward else ():
                check(backward(y, x), g.astype("d") * each(slope, a), dtype)


@pytest.mark.parametrize("forward, backward, function, slope", FUNCTIONS)
@pytest.mark.parametrize("dtype", ["f", "d"])
def test_functions_of_all_lengths_write_nothing_else(forward, backward, function, slope, dtype, rng):
    for n in [*LENGTHS, 20001]:
        room = np.asarray(3 * values(rng, n + 5, dtype), dtype)
        a, g, before = room[2 : n + 2], values(rng, n, dtype), room.copy()
        check(forward(a), each(function, a), dtype)
        if backward:
            check(backward(g, a), g.astype("d") * each(slope, a), dtype)
        np.testing.assert_array_equal(room, before)


@pytest.mark.parametrize("forward, backward, function, slope", FUNCTIONS)
@pytest.mark.parametrize("dtype", ["f", "d"])
def test_functions_of_special_values(forward, backward, function, slope, dtype):
    a = np.array(SPECIAL * 3, dtype)
    check(forward(a), each(function, a), dtype)
    assert forward(np.array([np.inf], dtype)) == (1 if forward is activations.sigmoid else np.inf)
    assert np.isnan(forward(np.array([np.nan] * 40, dtype))).all()
    if backward:
        check(backward(np.ones_like(a), a), each(slope, a), dtype)
        assert np.isnan(backward(np.ones(40, dtype), np.array([np.nan] * 40, dtype))).all()


@pytest.mark.parametrize("backward, factor", GRADIENTS)
@pytest.mark.parametrize("dtype", [*FLOATS, "F"])
def test_gradients_from_the_result(backward, factor, dtype, rng):
    if dtype == "F" and backward is activations.threshold_backward:
        return
    double = np.dtype("D" if dtype == "F" else "d")
    eps = max(np.finfo(dtype).eps, np.finfo("d").eps)
    for shape in [*SHAPES, *[(n,) for n in LENGTHS], (20001,)]:
        a, g = values(rng, shape, dtype), values(rng, shape, dtype)
        expected = g.astype(double) * np.conj(factor(a.astype(double)))
        kinds = [(a, g)] if len(shape) == 1 else [(x, y) for _, x in layouts(a) for _, y in layouts(g)]
        for x, y in kinds:
            actual = backward(y, x)
            assert (actual.dtype, actual.shape) == (np.dtype(dtype), shape)
            np.testing.assert_allclose(actual.astype(double), expected, rtol=8 * eps, atol=16 * eps)


def test_memory_order_is_kept(rng):
    a = values(rng, (5, 7), "f").T
    for f in (activations.threshold_backward, activations.tanh_backward, activations.sigmoid_backward):
        assert f(a, a).strides == a.strides
    for f in (activations.sigmoid, activations.silu, activations.gelu):
        assert f(a).strides == a.strides


def test_gradients_from_special_results():
    nan, inf = np.nan, np.inf
    for dtype in ("f", "d"):
        x = np.array([nan, inf, -inf, 0, -0.0, 2] + [1] * 40, dtype)
        g = np.arange(1, 47, dtype=dtype)
        np.testing.assert_array_equal(activations.threshold_backward(g, x)[:6], [1, 2, 0, 0, 0, 6])
        np.testing.assert_array_equal(activations.sigmoid(x[:5]), [nan, 1, 0, 0.5, 0.5])
        np.testing.assert_array_equal(activations.tanh_backward(g, x)[:5], [nan, -inf, -inf, 4, 5])


def test_gradients_must_have_the_shape_and_type_of_the_array():
    for f in (activations.threshold_backward, activations.tanh_backward, activations.gelu_backward):
        for grad in (np.ones(3), np.ones((2, 4)), np.ones((2, 3), "f")):
            with pytest.raises(ValueError, match="a gradient of shape"):
                f(grad, np.ones((2, 3)))
