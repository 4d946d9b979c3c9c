"""Optimizer steps against their formulas in double precision, and against PyTorch."""

import itertools
import warnings

import numpy as np
import pytest
from arrays_zoo import LENGTHS, layouts, unaligned, values

from cygrad._kernels.cpu.optim.optim import adam_step, count_steps, sgd_step

SGD = [
    dict(zip(("momentum", "dampening", "weight_decay", "nesterov", "maximize"), row))
    for row in itertools.product((0, 0.9), (0, 0.3), (0, 0.1), (False, True), (False, True))
    if (row[0] or not (row[1] or row[3])) and not (row[1] and row[3])
]
ADAM = [
    dict(zip(("weight_decay", "amsgrad", "maximize", "decoupled"), row))
    for row in itertools.product((0, 0.1), (False, True), (False, True), (False, True))
]


@pytest.fixture(autouse=True)
def no_warnings():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def sgd(p, grads, lr, momentum=0, dampening=0, weight_decay=0, nesterov=False, maximize=False):
    """Return the parameter and its buffer after some steps."""
    b = None
    for g in grads:
        d = (-g if maximize else g) + weight_decay * p
        if momentum:
            b = d if b is None else momentum * b + (1 - dampening) * d
            d = d + momentum * b if nesterov else b
        p = p - lr * d
    return p, b


def adam(p, grads, lr, beta1, beta2, eps, weight_decay, amsgrad, maximize, decoupled):
    """Return the parameter and its averages after some steps."""
    m = v = x = np.zeros_like(p)
    for t, g in enumerate(grads, 1):
        if decoupled:
            p = p * (1 - lr * weight_decay)
        d = (-g if maximize else g) + (0 if decoupled else weight_decay * p)
        m = beta1 * m + (1 - beta1) * d
        v = beta2 * v + (1 - beta2) * d * d
        x = np.maximum(x, v)
        root = np.sqrt((x if amsgrad else v) / (1 - beta2**t))
        p = p - lr * m / (1 - beta1**t) / (root + eps)
    return p, m, v, x


def check(actual, expected):
    eps = max(np.finfo(actual.dtype).eps, np.finfo("d").eps)
    np.testing.assert_allclose(actual.astype("d"), expected, rtol=10 * eps, atol=10 * eps)


def run_sgd(params, grads, options):
    """Take one step per gradient, in place; return the momentum buffers."""
    buffers = [None] * len(params)
    for step in zip(*grads):
        sgd_step(params, list(step), buffers, 0.1, **options)
    return buffers


def run_adam(params, grads, options):
    state = [[np.zeros_like(p) for p in params] for _ in range(3)]
    for t, step in enumerate(zip(*grads), 1):
        state[2] = state[2] if options["amsgrad"] else None
        adam_step(params, list(step), *state, [t] * len(params), 0.01, 0.9, 0.99, 1e-8, **options)
    return state


@pytest.mark.parametrize("dtype", ["f", "d", "g"])
def test_sgd(dtype, rng):
    for options in SGD:
        shapes = [(), (5,), (0,), (3, 33)]
        start = [values(rng, s, dtype) for s in shapes]
        grads = [[values(rng, s, dtype) for _ in range(3)] for s in shapes]
        params = [p.copy() for p in start]
        buffers = run_sgd(params, grads, options)
        for p, first, each, buffer in zip(params, start, grads, buffers):
            expected, b = sgd(first.astype("d"), [g.astype("d") for g in each], 0.1, **options)
            check(p, expected)
            if options["momentum"]:
                check(buffer, b)
            else:
                assert buffer is None


@pytest.mark.parametrize("dtype", ["f", "d", "g"])
def test_adam(dtype, rng):
    for options in ADAM:
        shapes = [(), (5,), (0,), (3, 33)]
        start = [values(rng, s, dtype) for s in shapes]
        grads = [[values(rng, s, dtype) for _ in range(3)] for s in shapes]
        params = [p.copy() for p in start]
        means, squares, largest = run_adam(params, grads, options)
        for i, p in enumerate(params):
            each = [g.astype("d") for g in grads[i]]
            expected = adam(start[i].astype("d"), each, 0.01, 0.9, 0.99, 1e-8, **options)
            check(p, expected[0])
            check(means[i], expected[1])
            check(squares[i], expected[2])
            if options["amsgrad"]:
                check(largest[i], expected[3])


@pytest.mark.parametrize("dtype", ["f", "d"])
def test_lengths(dtype, rng):
    for n in [*LENGTHS, 20001]:
        start = values(rng, n, dtype)
        grads = [values(rng, n, dtype) for _ in range(3)]
        double = [g.astype("d") for g in grads]
        for options in (SGD[0], SGD[-1]):
            p = start.copy()
            run_sgd([p], [grads], options)
            check(p, sgd(start.astype("d"), double, 0.1, **options)[0])
        for options in (ADAM[0], ADAM[-1]):
            p = start.copy()
            run_adam([p], [grads], options)
            check(p, adam(start.astype("d"), double, 0.01, 0.9, 0.99, 1e-8, **options)[0])


@pytest.mark.parametrize("shape", [(), (7,), (4, 5)])
@pytest.mark.parametrize("dtype", ["f", "d"])
def test_memory(shape, dtype, rng):
    start, grad = values(rng, shape, dtype), values(rng, shape, dtype)
    sgd_options, adam_options = SGD[-1], ADAM[-1]
    after_sgd = sgd(start.astype("d"), [grad.astype("d")] * 2, 0.1, **sgd_options)[0]
    double = [grad.astype("d")] * 2
    after_adam = adam(start.astype("d"), double, 0.01, 0.9, 0.99, 1e-8, **adam_options)[0]
    for name, p in layouts(start.copy()):
        if name == "read-only":
            continue
        for _, g in layouts(grad):
            p[...] = start
            run_sgd([p], [[g, g]], sgd_options)
            check(p, after_sgd)
            p[...] = start
            run_adam([p], [[g, g]], adam_options)
            check(p, after_adam)
            p[...] = start


def test_arrays_may_be_the_same(rng):
    start = values(rng, 100, "f")
    p = start.copy()
    sgd_step([p], [p], [None], 0.25)
    np.testing.assert_array_equal(p, start - np.float32(0.25) * start)
    p = start.copy()
    sgd_step([p, p], [start, start], [None, None], 0.25)  # the same parameter twice
    np.testing.assert_allclose(p, 0.5 * start, rtol=1e-6)
    memory = np.arange(101, dtype="f")
    sgd_step([memory[:-1]], [memory[1:].copy()], [None], 1.0)
    np.testing.assert_array_equal(memory, [-1] * 100 + [100])


def test_special_values():
    nan, inf = np.nan, np.inf
    for dtype in ("f", "d", ">f4"):
        g = np.array([nan, inf, -inf, 0], dtype)
        p = np.ones(4, dtype)
        sgd_step([p], [g], [None], 0.5, momentum=0.9)
        np.testing.assert_array_equal(p, [nan, -inf, inf, 1])
        p, m, v, x = np.ones(4, dtype), *(np.zeros(4, dtype) for _ in range(3))
        adam_step([p], [g], [m], [v], [x], [1], 0.5, 0.9, 0.99, 1e-8, amsgrad=True)
        np.testing.assert_array_equal(p, [nan, nan, nan, 1])
        np.testing.assert_array_equal(x, [nan, inf, inf, 0])
        adam_step([p], [np.zeros_like(g)], [m], [v], [x], [2], 0.5, 0.9, 0.99, 1e-8, amsgrad=True)
        assert np.isnan(x[0])


def test_bad_arrays_are_refused_before_anything_changes():
    good, more = np.ones(3), np.ones(3)
    frozen = np.ones(3)
    frozen.flags.writeable = False
    cases = [
        (([good, more], [good], [None, None], 0.1), "2 parameters, but 1 gradients"),
        (([good, more], [more, np.ones(4)], [None, None], 0.1), "gradients: shape"),
        (([good, frozen], [more, more], [None, None], 0.1), "parameters: an array is read-only"),
        (([good], [more], [np.ones((1, 3))], 0.1, 0.9), "momentum buffers: shape"),
        (([good], [more], [frozen], 0.1, 0.9), "momentum buffers: an array is read-only"),
        (([good], [more], [], 0.1, 0.9), "0 momentum buffers"),
    ]
    for arguments, text in cases:
        with pytest.raises(ValueError, match=text):
            sgd_step(*arguments)
    settings = (0.1, 0.9, 0.99, 1e-8, 0.0)
    cases = [
        (([good], [more], [frozen], [more.copy()], None, [1], *settings), "averages: an array"),
        (([good], [more], [more.copy()], [np.ones(2)], None, [1], *settings), "squares: shape"),
        (([good], [more], [more.copy()], [more.copy()], None, [], *settings), "0 steps"),
        (([good], [more], [more.copy()], [more.copy()], [], [1], *settings, True), "0 largest"),
    ]
    for arguments, text in cases:
        with pytest.raises(ValueError, match=text):
            adam_step(*arguments)
    with pytest.raises(TypeError, match="gradients: None"):
        sgd_step([good], [None], [None], 0.1)
    np.testing.assert_array_equal(good, [1, 1, 1])


def test_unaligned_parameters(rng):
    start, grad = values(rng, 50, "f"), values(rng, 50, "f")
    p = unaligned(start)
    sgd_step([p], [unaligned(grad)], [None], 0.1, momentum=0.9)
    check(p, start.astype("d") - 0.1 * grad.astype("d"))


# --- PyTorch -------------------------------------------------------------------------------------


@pytest.mark.oracle
@pytest.mark.parametrize("dtype", ["f", "d"])
def test_as_pytorch(dtype, rng):
    import torch

    start = values(rng, (20, 30), dtype)
    grads = [values(rng, (20, 30), dtype) for _ in range(10)]
    tolerance = {"rtol": 1e-6 if dtype == "f" else 1e-12, "atol": 1e-6 if dtype == "f" else 1e-12}
    for options in SGD:
        expected = torch.from_numpy(start.copy()).requires_grad_()
        optimizer = torch.optim.SGD([expected], 0.1, **options)
        p, buffers = start.copy(), [None]
        for g in grads:
            expected.grad = torch.from_numpy(g)
            optimizer.step()
            sgd_step([p], [g], buffers, 0.1, **options)
            np.testing.assert_allclose(p, expected.detach().numpy(), **tolerance)
    for options in ADAM:
        expected = torch.from_numpy(start.copy()).requires_grad_()
        keywords = {k: v for k, v in options.items() if k != "decoupled"}
        kind = torch.optim.AdamW if options["decoupled"] else torch.optim.Adam
        optimizer = kind([expected], 0.01, (0.9, 0.99), **keywords)
        p, m, v, x = start.copy(), *(np.zeros_like(start) for _ in range(3))
        for t, g in enumerate(grads, 1):
            expected.grad = torch.from_numpy(g)
            optimizer.step()
            adam_step([p], [g], [m], [v], [x], [t], 0.01, 0.9, 0.99, 1e-8, **options)
            np.testing.assert_allclose(p, expected.detach().numpy(), **tolerance)


def test_count_steps():
    counts = [np.array(2.0, "f"), np.array(3.0), np.array(4), np.array([5.0, 0.0], "f")[:1].reshape(())]
    assert count_steps(counts) == [3.0, 4.0, 5, 6.0]
    assert [count.item() for count in counts] == [3.0, 4.0, 5, 6.0]
