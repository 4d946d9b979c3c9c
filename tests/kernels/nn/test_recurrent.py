"""Whole sequences of recurrent layers: the loops against the formula for each sequence, and against NumPy."""

import numpy as np
import pytest
from ops.samples.nn.recurrent import one_direction

import cygrad
from cygrad._kernels.cpu.nn import recurrent

KINDS = list(recurrent.GATES)
SIZES = [(1,), (5, 5, 5), (20, 20, 7, 1), (9, 9, 0), (33, 17), (40,) * 3, (24, 16, 9, 8), (0, 0)]
ACCURACY = {np.float32: 1e-5, np.float64: 1e-13}


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def layer(rng, kind, sizes, width, dtype, out_width=None, size=4):
    """(x, h0, w_ih, w_hh, b_ih, b_hh, c0, w_hr)"""

    def values(*shape):
        return rng.standard_normal(shape).astype(dtype)

    gates, out = recurrent.GATES[kind] * width, out_width or width
    x, h0, c0 = values(sum(sizes), size), values(sizes[0], out), values(sizes[0], width)
    weights = values(gates, size), values(gates, out), values(gates), values(gates)
    return x, h0, *weights, c0 if kind == "lstm" else None, values(out, width) if out_width else None


def gradients(rng, kind, layer, results, sizes, is_reversed):
    """Gradients of all inputs, from gradients of all outputs."""
    out, last, (gates, *kept) = results
    d_out, *d_last = (rng.standard_normal(a.shape).astype(a.dtype) for a in (out, *last))
    wanted = [a is not None for a in layer]
    return recurrent.BACKWARD[kind](d_out, d_last, layer, gates, kept, sizes, is_reversed, wanted)


def assert_close(found, expected, accuracy):
    for a, b in zip(found, expected, strict=True):
        assert (a is None) == (b is None)
        if a is not None:
            np.testing.assert_allclose(a, b, 0, accuracy * max(1, np.abs(b).max(initial=0)))


@pytest.mark.parametrize("dtype", ACCURACY)
@pytest.mark.parametrize("sizes", SIZES)
@pytest.mark.parametrize(("kind", "out_width"), [*[(kind, None) for kind in KINDS], ("lstm", 3), ("lstm", 16)])
def test_loops_are_the_formula(kind, out_width, sizes, dtype, rng, monkeypatch):
    for width in (1, 4, 7, 16, 33, 48):
        for is_reversed in (False, True):
            arrays = layer(rng, kind, sizes, width, dtype, out_width)
            out, last, kept = results = recurrent.FORWARD[kind](*arrays, sizes, is_reversed)
            exact = [None if a is None else a.astype("d") for a in arrays]
            assert_close([out, *last], one_direction(kind, sizes, is_reversed, *exact), 10 * ACCURACY[dtype])
            found = gradients(np.random.default_rng(1), kind, arrays, results, sizes, is_reversed)
            with monkeypatch.context() as patch:
                patch.setattr(recurrent, "_has_loop", lambda out: False)
                results = recurrent.FORWARD[kind](*arrays, sizes, is_reversed)
                expected = gradients(np.random.default_rng(1), kind, arrays, results, sizes, is_reversed)
            assert_close([out, *last, *kept], [results[0], *results[1], *results[2]], 10 * ACCURACY[dtype])
            assert_close(found, expected, 10 * ACCURACY[dtype])


@pytest.mark.parametrize("kind", KINDS)
def test_gates_of_extreme_sums(kind):
    large = np.array([0, 1e-30, -1e-30, 20, -20, 100, -100, 3e38, -3e38, np.inf, -np.inf, np.nan], np.float32)
    x, zeros = large.reshape(-1, 1), np.zeros((len(large), 1), np.float32)
    gates = recurrent.GATES[kind]
    w_ih, w_hh = np.ones((gates, 1), np.float32), np.zeros((gates, 1), np.float32)
    c0 = zeros if kind == "lstm" else None
    out, *_ = recurrent.FORWARD[kind](x, zeros, w_ih, w_hh, None, None, c0, None, (len(large),), False)
    with np.errstate(all="ignore"):
        expected = one_direction(kind, (len(large),), False, x.astype("d"), zeros, w_ih, w_hh, c0=c0)[0]
    np.testing.assert_allclose(out, expected.astype("f"), 1e-5, 1e-7)


@pytest.mark.parametrize("kind", KINDS)
def test_small_sums_keep_their_digits(kind, rng):
    x, h0, _, w_hh, *_, c0, _ = layer(rng, kind, (50,), 5, np.float32)
    w_ih = np.ones((len(w_hh), 1), np.float32)
    x, w_hh = np.logspace(-20, -2, 50, dtype=np.float32)[:, None], np.zeros_like(w_hh)
    arrays = x, np.zeros_like(h0), w_ih, w_hh, None, None, None if c0 is None else np.zeros_like(c0), None
    out, *_ = recurrent.FORWARD[kind](*arrays, (50,), False)
    exact = [None if a is None else a.astype("d") for a in arrays]
    np.testing.assert_allclose(out, one_direction(kind, (50,), False, *exact)[0], 2e-6)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("sizes", [(16,) * 5, (70, 31, 5)])
def test_threads_do_not_change_a_bit(kind, sizes, rng):
    arrays = layer(rng, kind, sizes, 24, np.float32)
    former, found = cygrad.get_num_threads(), []
    for count in (1, 2, 7):
        cygrad.set_num_threads(count)
        out, last, kept = results = recurrent.FORWARD[kind](*arrays, sizes, False)
        grads = gradients(np.random.default_rng(1), kind, arrays, results, sizes, False)
        found.append([a.tobytes() for a in (out, *last, *kept, *grads) if a is not None])
    cygrad.set_num_threads(former)
    assert found[0] == found[1] == found[2]


@pytest.mark.parametrize("kind", KINDS)
def test_any_layout(kind, rng):
    arrays = layer(rng, kind, (6, 4), 5, np.float64)
    strided = [None if a is None else np.repeat(a, 2, a.ndim - 1)[..., ::2] for a in arrays]
    turned = [None if a is None else np.asfortranarray(a) for a in arrays]
    expected = recurrent.FORWARD[kind](*arrays, (6, 4), True)
    for other in (strided, turned):
        found = recurrent.FORWARD[kind](*other, (6, 4), True)
        assert_close([found[0], *found[1]], [expected[0], *expected[1]], 1e-14)
        grads = [
            gradients(np.random.default_rng(1), kind, a, r, (6, 4), True)
            for a, r in ((other, found), (arrays, expected))
        ]
        assert_close(*grads, 1e-13)


@pytest.mark.parametrize("kind", KINDS)
def test_a_weight_of_another_shape_is_refused_backward(kind, rng):
    arrays = list(layer(rng, kind, (3, 3), 5, np.float64))
    results = recurrent.FORWARD[kind](*arrays, (3, 3), False)
    arrays[3] = arrays[3][:, :-1]
    with pytest.raises(ValueError, match="instead of"):
        gradients(rng, kind, arrays, results, (3, 3), False)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("sizes", [(16,) * 3, (20,) * 3, (4, 3)])
def test_gradients_that_nobody_wants_change_no_other(kind, sizes, rng):
    arrays = layer(rng, kind, sizes, 16, np.float32, size=12)
    out, last, (gates, *kept) = recurrent.FORWARD[kind](*arrays, sizes, False)
    grads = np.ones_like(out), [np.ones_like(a) for a in last]
    wanted = [a is not None for a in arrays]
    every = recurrent.BACKWARD[kind](*grads, arrays, gates, kept, sizes, False, wanted)
    for i in (0, 2, 3, 4, 5):
        alone = [k == i for k in range(len(arrays))]
        found = recurrent.BACKWARD[kind](*grads, arrays, gates, kept, sizes, False, alone)
        np.testing.assert_array_equal(found[i], every[i])
        assert found[0] is None or i == 0


@pytest.mark.parametrize(("kind", "out_width"), [*[(kind, None) for kind in KINDS], ("lstm", 3)])
@pytest.mark.parametrize("is_reversed", [False, True])
def test_gradients_of_some_steps_at_a_time(kind, out_width, is_reversed, rng, monkeypatch):
    for sizes in ((8,) * 7, (3,) * 5):
        arrays = layer(rng, kind, sizes, 4, np.float64, out_width)
        results = recurrent.FORWARD[kind](*arrays, sizes, is_reversed)
        expected = gradients(np.random.default_rng(1), kind, arrays, results, sizes, is_reversed)
        with monkeypatch.context() as small:
            small.setattr("cygrad._kernels.cpu.base.chunks.SIZE", 1)
            small.setattr(recurrent, "MOST_ROWS", 2 * sizes[0])
            found = gradients(np.random.default_rng(1), kind, arrays, results, sizes, is_reversed)
        assert_close(found, expected, 1e-13)
