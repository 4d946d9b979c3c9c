"""Steps of the optimizers other than SGD and Adam: loops against the formulas, element by element."""

import math
import os

import numpy as np
import pytest

from cygrad._kernels.cpu.optim.formulas import OPTIONS, shared_numbers, step

pytestmark = pytest.mark.skipif(bool(os.environ.get("CYGRAD_PURE")), reason="its loops are switched off")

# Options in the order of `OPTIONS`, flattened; the number of arrays of state; further scalars.
CASES = {
    "Adadelta": ([0.5, 0.1, 0.9, 1e-6], 2, []),
    "Adagrad": ([0.1, 0.1, 0.2, 1e-10], 1, []),
    "Adamax": ([0.1, 0.1, 0.9, 0.99, 1e-8], 2, []),
    "ASGD": ([0.1, 0.1, 1e-2, 0.75, 1.0], 1, [0.1, 1.0]),
    "NAdam": ([0.1, 0.1, 0.9, 0.99, 1e-8, 4e-3], 2, [1.0]),
    "RAdam": ([0.1, 0.1, 0.9, 0.5, 1e-8], 2, []),
    "RMSprop": ([0.1, 0.1, 0.9, 1e-3, 0.5], 3, []),
    "Rprop": ([0.1, 0.5, 1.2, 1e-3, 50.0], 2, []),
}


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def formula(name, p, g, s, c):
    """The new values of a parameter and its state, of Python's floats; `c` are the shared numbers."""
    sign, decay, shrink, *c = c
    x = p * shrink
    d = sign * g + decay * x
    if name == "Adadelta":
        v = s[0] * c[0] + c[1] * d * d
        update = math.sqrt(s[1] + c[2]) / math.sqrt(v + c[2]) * d
        return x - c[3] * update, [v, s[1] * c[0] + c[1] * update * update]
    if name == "Adagrad":
        return x - c[0] * d / (math.sqrt(s[0] + d * d) + c[1]), [s[0] + d * d]
    if name == "Adamax":
        m, most = s[0] + (d - s[0]) * c[0], max(s[1] * c[1], abs(d) + c[2])
        return x - c[3] * m / most, [m, most]
    if name == "ASGD":
        x = x * c[0] - c[1] * d
        return x, [s[0] + c[2] * (x - s[0])]
    if name == "Rprop":
        turn = d * s[0]
        size = min(max(s[1] * (c[1] if turn > 0 else c[0] if turn < 0 else 1), c[2]), c[3])
        d = 0.0 if turn < 0 else d
        return x - math.copysign(1, d) * size * (d != 0), [d, size]
    if name == "RMSprop":
        v, mean = s[0] * c[0] + c[1] * d * d, s[2] + (d - s[2]) * c[1]
        update = s[1] * c[3] + d / (math.sqrt(v - mean * mean) + c[2])
        return x - c[4] * update, [v, update, mean]
    m, v = s[0] + (d - s[0]) * c[0], s[1] * c[1] + c[2] * d * d
    if name == "NAdam":
        return x - (c[5] * m + c[6] * d) / (math.sqrt(v / c[3]) + c[4]), [m, v]
    return x - c[3] * m * (1 if c[4] < 0 else c[4] / (math.sqrt(v) + c[5])), [m, v]


def scalars(values, dtype=np.float32):
    return [np.asarray(value, dtype) for value in (0.0, *values)]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", CASES)
def test_each_element(name, dtype, rng):
    options, count, further = CASES[name]
    for n in (0, 1, 7, 33, 40_000):
        p, g, *state = (rng.uniform(0.5, 1, n).astype(dtype) for _ in range(2 + count))
        g -= dtype(0.75)
        state[0] += name == "RMSprop"  # whose mean of squares is not below the square of the mean
        counted, twins = scalars(further), scalars(further)
        for t in range(1, 9 if n < 100 else 2):
            numbers = shared_numbers(name, options, twins, True, False)
            some = range(0, n, max(n // 50, 1))
            wanted = [formula(name, float(p[i]), float(g[i]), [float(s[i]) for s in state], numbers) for i in some]
            assert step(name, p, g, state, options, counted, True, False)
            assert [float(a) for a in counted] == [float(b) for b in twins] and counted[0] == t
            for k, i in enumerate(some):
                close = {"rtol": 3e-5 if dtype is np.float32 else 1e-12, "atol": 1e-7 if dtype is np.float32 else 1e-14}
                np.testing.assert_allclose(p[i], wanted[k][0], **close)
                np.testing.assert_allclose([s[i] for s in state], wanted[k][1], **close)


def test_the_decay_may_be_apart():
    options = CASES["NAdam"][0]
    sign, decay, shrink, *_ = shared_numbers("NAdam", options, scalars([1.0]), False, True)
    assert (sign, decay, shrink) == (1, 0, 1 - 0.1 * 0.1)
    sign, decay, shrink, *_ = shared_numbers("NAdam", options, scalars([1.0]), True, False)
    assert (sign, decay, shrink) == (-1, 0.1, 1)


def test_scalars_in_double_precision():
    narrow, wide = scalars([1.0]), scalars([1.0], np.float64)
    for _ in range(3):
        a = shared_numbers("NAdam", CASES["NAdam"][0], narrow)
        b = shared_numbers("NAdam", CASES["NAdam"][0], wide)
    np.testing.assert_allclose(a, b, rtol=1e-6)
    assert wide[1] != narrow[1]


def test_what_needs_another_loop_is_left_alone():
    options, _, further = CASES["Adagrad"]
    dense, other = np.ones((3, 4), np.float32), np.ones((4, 3), np.float32).T
    count = scalars(further)
    assert not step("Adagrad", dense, other, [dense.copy()], options, count)
    assert not step("Adagrad", dense.astype(np.float16), dense, [dense.copy()], options, count)
    assert not step("Adagrad", dense, dense.copy(), [dense.astype(np.float64)], options, count)
    assert not step("Adagrad", dense, dense.copy(), [dense.copy()], options, scalars(further, np.float16))
    assert count[0] == 0 and (dense == 1).all()
    with pytest.raises(ValueError, match="shape"):
        step("Adagrad", dense, dense.copy(), [np.ones(3, np.float32)], options, count)
    with pytest.raises(TypeError):
        shared_numbers("Adagrad", options, scalars(further, np.float16))
    with pytest.raises(TypeError):
        step("Adagrad", None, dense, [dense], options, count)


def test_all_are_tried():
    assert set(CASES) == set(OPTIONS)
