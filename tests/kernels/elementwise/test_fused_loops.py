"""Loops of fused_loops.h against NumPy."""

import numpy as np
import pytest

import cygrad
from cygrad._kernels.cpu.base import loop_table
from cygrad._kernels.cpu.elementwise.fused_loops import PIECE, fused, gated, gated_gradient
from cygrad._kernels.cpu.loss import losses

pytestmark = pytest.mark.skipif(not loop_table.has_loops(np.zeros(1)), reason="without loops")


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def less_1(x, factor, scale, within):
    return np.where(x > 0, x * scale, factor * np.expm1(within * np.minimum(x, 0)))


# Name: operands (0 stands for a single element), scalars, formula in double precision.
CASES = {
    "leaky_relu": ((1, 0), (), lambda x, y: np.where(x > 0, x, x * y)),
    "threshold": ((1,), (0.5, 7), lambda x: np.where(x <= 0.5, 7, x)),
    "hardtanh": ((1,), (-0.5, 2), lambda x: np.clip(x, -0.5, 2)),
    "hardsigmoid": ((1,), (), lambda x: np.clip(x + 3, 0, 6) / 6),
    "hardswish": ((1,), (), lambda x: x * (np.clip(x + 3, 0, 6) / 6)),
    "hardshrink": ((1,), (0.5,), lambda x: np.where((x >= -0.5) & (x <= 0.5), 0, x)),
    "softshrink": ((1,), (0.5,), lambda x: np.where(np.abs(x) > 0.5, x - np.copysign(0.5, x), x * 0)),
    "softplus": ((1,), (2, 20), lambda x: np.where(2 * x > 20, x, np.logaddexp(0, 2 * x) / 2)),
    "logsigmoid": ((1,), (), lambda x: -np.logaddexp(0, -x)),
    "erfc": ((1,), (), lambda x: erfc(x)),
    "elu": ((1,), (1.5, 2, 0.7), lambda x: less_1(x, 1.5, 2, 0.7)),
    "leaky_relu_gradient": ((1, 1, 0), (), lambda x, y, z: np.where(y > 0, x, x * z)),
    "negative_products": ((1, 1), (), lambda x, y: np.where(y > 0, 0, x * y)),
    "above": ((1, 1), (0.5,), lambda x, y: np.where(y <= 0.5, 0, x)),
    "inside": ((1, 1), (-0.5, 2), lambda x, y: np.where((y <= -0.5) | (y >= 2), 0, x)),
    "hardsigmoid_gradient": ((1, 1), (), lambda x, y: np.where((y > -3) & (y < 3), x / 6, 0)),
    "hardswish_gradient": ((1, 1), (), lambda x, y: np.where(y <= -3, 0, x * np.where(y < 3, y / 3 + 0.5, 1))),
    "outside": ((1, 1), (0.5,), lambda x, y: np.where((y >= -0.5) & (y <= 0.5), 0, x)),
    "softplus_gradient": ((1, 1), (2, 20), lambda x, y: x * np.where(2 * y > 20, 1, sigmoid(2 * y))),
    "logsigmoid_gradient": ((1, 1), (), lambda x, y: x * sigmoid(-y)),
    "elu_gradient": (
        (1, 1),
        (1.5, 2, 0.7),
        lambda x, y: x * np.where(y <= 0, 1.5 * 0.7 * np.exp(0.7 * np.minimum(y, 0)), 2),
    ),
    "squared_error": ((1, 1), (), lambda x, y: (x - y) ** 2),
    "smooth_l1": ((1, 1), (2, 0.25), lambda x, y: bent(x - y, 2) / 2),
    "huber": ((1, 0), (2,), lambda x, y: bent(x - y, 2)),
    "binary_cross_entropy_with_logits": ((1, 1), (), lambda x, y: (1 - y) * x + np.logaddexp(0, -x)),
    "soft_margin": ((1, 1), (), lambda x, y: np.logaddexp(0, -x * y)),
    "logaddexp": ((1, 1), (np.log(2), 1 / np.log(2)), np.logaddexp2),
    "squared_error_gradient": ((1, 1, 0), (), lambda x, y, z: 2 * (x - y) * z),
    "bounded_difference": ((1, 1, 1), (2, 0.5), lambda x, y, z: np.clip((x - y) * 0.5, -2, 2) * z),
    "binary_cross_entropy_with_logits_gradient": ((1, 1, 0), (), lambda x, y, z: (sigmoid(x) - y) * z),
    "exponential_share": ((1, 1, 1), (0.5,), lambda x, y, z: sigmoid(np.where(x == y, 0, (x - y) * 0.5)) * z),
    "soft_margin_gradient": ((1, 1, 0), (), lambda x, y, z: -y * sigmoid(-x * y) * z),
    "frac": ((1,), (), lambda x: x - np.trunc(x)),
    "rounded": ((1,), (4, 1), lambda x: np.rint(x * 4) / 4),
    "finite": ((1,), (2, 3, -4), lambda x: np.nan_to_num(x, nan=2, posinf=3, neginf=-4)),
    "where_finite": ((1, 1), (), lambda x, y: np.where(np.isfinite(y), x, 0)),
    "lerp_by_number": ((1, 1), (0.25, 0), lambda x, y: x + 0.25 * (y - x)),
    "lerp": ((1, 1, 1), (), lambda x, y, z: np.where(np.abs(z) < 0.5, x + z * (y - x), y - (y - x) * (1 - z))),
    "addcmul": ((1, 1, 1), (2,), lambda x, y, z: x + 2 * y * z),
    "addcdiv": ((1, 1, 0), (2,), lambda x, y, z: x + y / z * 2),
    "whole_quotient": ((1, 1), (), lambda x, y: np.trunc(x / y)),
    "heaviside": ((1, 1), (), lambda x, y: np.where(np.isnan(x), 0, np.heaviside(x, y))),
    "ldexp": ((1, 1), (), lambda x, y: np.where(np.isfinite(y), x * np.exp2(np.rint(y)), np.inf)),  # keeps y finite
    "clamped": ((1, 1, 1), (), lambda x, y, z: np.minimum(np.maximum(x, y), z)),
}


def erfc(x):
    return pytest.importorskip("scipy.special").erfc(x)


def bent(d, bound):
    return np.where(np.abs(d) < bound, d * d / 2, bound * (np.abs(d) - bound / 2))


def operands(kinds, dtype, n):
    random = np.random.default_rng(n)
    return [(random.standard_normal(n if full else 1) * 4).astype(dtype) for full in kinds]


def check(name, arrays, numbers, formula, dtype):
    with np.errstate(all="ignore"):
        expected = formula(*(a.astype(np.float64) for a in arrays))
    found = fused(name, *arrays, numbers=numbers)
    assert found.dtype == dtype and found.shape == expected.shape
    eps = np.finfo(dtype).eps
    np.testing.assert_allclose(found, expected.astype(dtype), 40 * eps if dtype == np.float64 else 8 * eps, 8 * eps)


def test_every_function_has_a_case():
    assert {*CASES, "incomplete_gamma"} == set(loop_table.FUSED_NUMBERS)


@pytest.mark.parametrize("name", ["gammainc", "gammaincc"])
def test_incomplete_gamma(name):
    """Only float32 has a loop, rounded once; arguments outside its range are passed to SciPy."""
    special = pytest.importorskip("scipy.special")
    random = np.random.default_rng(0)
    near = np.exp(random.uniform(-20, 7, 30_000))
    pairs = [(near, near * np.exp(random.normal(0, spread, near.size))) for spread in (0.01, 0.5, 10)]
    pairs.append((np.exp(random.uniform(-2, 2, 3000)), np.exp(random.uniform(-80, 80, 3000))))
    unusual = [0, -0.0, -1, 1e-45, 1e-30, 1, 1.5, 2, 149.99, 150, 3e38, np.inf, -np.inf, np.nan]
    pairs.append([a.reshape(-1) for a in np.meshgrid(unusual, unusual)])
    for a, x in pairs:
        a, x = np.float32(a), np.float32(x)
        with np.errstate(all="ignore"):
            exact = getattr(special, name)(a.astype(np.float64), x.astype(np.float64))
            rounded = exact.astype(np.float32)
        loop = fused("incomplete_gamma", a, x, numbers=(name == "gammaincc",))
        known = ~np.isnan(loop)
        found = getattr(cygrad.special, name)(cygrad.tensor(a), cygrad.tensor(x)).numpy()
        assert known.mean() > 0.2 and np.array_equal(found[known], loop[known])
        np.testing.assert_array_equal(np.isnan(found), np.isnan(exact))
        error = abs(found - exact)[known] / np.spacing(rounded[known])
        assert error.max() < 0.52, (a[known][error.argmax()], x[known][error.argmax()])
        with np.errstate(all="ignore"):
            np.testing.assert_array_equal(found[~known], getattr(special, name)(a, x)[~known])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", CASES)
def test_lengths(name, dtype):
    kinds, numbers, formula = CASES[name]
    for n in (1, 2, 7, 17, 1023, 1024, 1025, 2 * PIECE - 1, 3 * PIECE + 5):
        check(name, operands(kinds, dtype, n), numbers, formula, dtype)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", CASES)
def test_unusual_values(name, dtype):
    kinds, numbers, formula = CASES[name]
    values = np.array(
        [0, -0.0, 1, -1, np.inf, -np.inf, np.nan, 100, -100, 20.5, -20.5, 1e-30, 3, -3, 6, 0.5, -0.5], dtype
    )
    full = [np.repeat(values, len(values)), np.tile(values, len(values)), np.full(len(values) ** 2, dtype(0.75))]
    arrays = [full[i] if kind else full[2][:1] for i, kind in enumerate(kinds)]
    with np.errstate(all="ignore"):
        expected = formula(*(a.astype(np.float64) for a in arrays))
        found = fused(name, *arrays, numbers=numbers).astype(np.float64)
        finite = np.isfinite(expected) & ~np.isinf(expected.astype(dtype))
    # where a factor that underflows to 0 meets an infinite operand, the result is NaN
    meets = np.zeros(len(finite), bool)
    for a in arrays:
        meets |= np.isinf(np.broadcast_to(a, finite.shape))
    eps = np.finfo(dtype).eps
    np.testing.assert_allclose(found[finite & ~meets], expected[finite & ~meets], 40 * eps, 8 * eps)
    assert np.isnan(found[np.isnan(expected)]).all()


@pytest.mark.parametrize("name", ["huber", "elu", "hardtanh", "bounded_difference"])
def test_layouts(name):
    kinds, numbers, formula = CASES[name]
    arrays = [a.reshape(30, -1) if full else a for a, full in zip(operands(kinds, np.float32, 60 * 70), kinds)]
    expected = fused(name, *(a.copy() for a in arrays), numbers=numbers)

    def same(change):
        changed = [change(a) if a.ndim == 2 else a for a in arrays]
        assert np.array_equal(fused(name, *changed, numbers=numbers), change(expected))

    same(lambda a: a[:, ::2])
    same(lambda a: a[::-1])
    same(lambda a: a.T)
    same(lambda a: a.reshape(30, 7, 20).transpose(2, 0, 1))
    swapped = [a.astype(">f4") for a in arrays]
    assert np.array_equal(fused(name, *swapped, numbers=numbers), expected)
    for a in arrays:
        a.flags.writeable = False
    same(lambda a: a)
    assert fused(name, *(a.T if a.ndim == 2 else a for a in arrays), numbers=numbers).flags.f_contiguous


def test_nothing():
    x = np.ones((0, 3), np.float32)
    assert fused("hardtanh", x, numbers=(0, 1)).shape == (0, 3)


def test_expanded_operand_is_one_element():
    x, y = operands((1, 1), np.float32, 5000)
    g = np.broadcast_to(np.float32(0.3), x.shape)
    assert np.array_equal(fused("squared_error_gradient", x, y, g), fused("squared_error_gradient", x, y, g.copy()))


def test_no_loop():
    x = np.ones(4, np.float32)
    assert fused("hardtanh", x.astype(np.float16), numbers=(0, 1)) is None
    assert fused("hardtanh", np.arange(4), numbers=(0, 1)) is None
    assert fused("huber", x, x.astype(np.float64), numbers=(1,)) is None
    assert fused("huber", x.reshape(2, 2), x[:3], numbers=(1,)) is None
    assert fused("huber", x[:2, None], x[None, :3], numbers=(1,)) is None  # neither operand has the size of the result
    assert fused("huber", x[:0], x[:1], numbers=(1,)) is None


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_broadcasting(dtype):
    x, y, z = (a.reshape(6, 35, 20) for a in operands((1, 1, 1), dtype, 4200))
    for b in (y[0], y[:, :, :1], y[:, :1, :1], y[0, 0], y[0, :, :1], y[:1, :1, :1], y[0, 0, 0]):
        b = np.ascontiguousarray(b).reshape(b.shape)
        full = np.broadcast_to(b, x.shape).copy()
        assert np.array_equal(fused("addcmul", x, b, z, numbers=(2,)), fused("addcmul", x, full, z, numbers=(2,)))
        assert np.array_equal(fused("lerp", b, z, x), fused("lerp", full, z, x))
    assert fused("addcmul", x, np.ascontiguousarray(y[:, :1, ::2]), z, numbers=(2,)) is None
    assert fused("addcmul", x, np.ascontiguousarray(y[:, :1]), z, numbers=(2,)) is None
    large = np.tile(x, (20, 1, 1))
    assert np.array_equal(
        fused("addcmul", large, y[0], large, numbers=(2,)),
        fused("addcmul", large, np.broadcast_to(y[0], large.shape).copy(), large, numbers=(2,)),
    )


def test_into_an_operand():
    x, y = operands((1, 1), np.float32, 3000)
    expected = fused("lerp_by_number", x, y, numbers=(0.25, 0))
    assert fused("lerp_by_number", x, y, numbers=(0.25, 0), out=y) is y
    assert np.array_equal(y, expected)
    strided = np.zeros(6000, np.float32)[::2]
    fused("lerp_by_number", x, x, numbers=(0.25, 0), out=strided)
    assert np.array_equal(strided, x)


@pytest.mark.parametrize("name", CASES)
def test_number_of_threads_changes_nothing(name):
    from cygrad._kernels.platform import thread_pool

    kinds, numbers, _ = CASES[name]
    arrays = operands(kinds, np.float32, 5 * PIECE + 3)
    former, results = thread_pool.num_threads(), []
    try:
        for count in (1, 2, 3):
            thread_pool.set_num_threads(count)
            results.append(fused(name, *arrays, numbers=numbers))
    finally:
        thread_pool.set_num_threads(former)
    assert np.array_equal(results[0], results[1]) and np.array_equal(results[0], results[2])


@pytest.mark.parametrize("weighted", [False, True])
def test_large_losses_with_weights(weighted):
    x, y, w = (np.random.default_rng(i).random((400, 500), np.float32) for i in range(3))
    weight, pos_weight = (w, w[0] + 1) if weighted else (None, None)
    found = losses.binary_cross_entropy_with_logits(x, y, weight, pos_weight)
    more = (pos_weight - 1) * y + 1 if weighted else 1
    expected = (1 - y) * x + more * np.logaddexp(0, -x.astype(np.float64))
    np.testing.assert_allclose(found, expected * w if weighted else expected, 1e-5, 1e-6)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("shape", "dim"), [((2,), 0), ((5, 6), 1), ((4, 6000), 0), ((3, 4098), 1), ((7, 10, 33), 1)])
def test_gated(shape, dim, dtype):
    random = np.random.default_rng(0)
    a = (random.standard_normal(shape) * 4).astype(dtype)
    first, second = np.split(a.astype(np.float64), 2, dim)
    g = random.standard_normal(first.shape).astype(dtype)
    s, eps = sigmoid(second), np.finfo(dtype).eps
    np.testing.assert_allclose(gated(a, dim), first * s, 8 * eps, 8 * eps)
    expected = np.concatenate([g * s, g * first * s * sigmoid(-second)], dim)
    for x, y in ((a, g), (np.asfortranarray(a), g), (a, np.asfortranarray(g))):
        np.testing.assert_allclose(gated_gradient(y, x, dim), expected, 8 * eps, 8 * eps)
    with pytest.raises(ValueError, match="a gradient of shape"):
        gated_gradient(a, a, dim)
