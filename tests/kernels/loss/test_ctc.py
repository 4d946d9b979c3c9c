"""Sums over the alignments of a target (ctc.h) against NumPy."""

import numpy as np
import pytest

from cygrad._kernels.cpu.base import loop_table
from cygrad._kernels.cpu.loss import ctc
from cygrad._kernels.device.dispatch import in_memory

SPECIAL = [None, np.nan, -np.inf, np.inf, 200.0]


def operands(seed, special, dtype):
    """The arguments of `forward` with random sizes, which may be 0, and all kinds of lengths and targets."""
    random = np.random.default_rng(seed)
    steps, samples, symbols, longest = random.integers((0, 0, 2, 0), (20, 6, 9, 8))
    x = random.standard_normal((steps, samples, symbols)) * random.choice([0.1, 1, 10, 100])
    if special is not None:
        x.reshape(-1)[random.integers(0, max(x.size, 1), 3 * (x.size > 0))] = special
    blank = int(random.integers(symbols))
    lengths = random.integers(0, longest + 1, samples)
    states = in_memory(ctc.states_of)(random.integers(0, symbols, (samples, longest)), lengths, blank)
    return x.astype(dtype), states, random.integers(0, steps + 1, samples), lengths, blank


@pytest.mark.parametrize("special", SPECIAL, ids=str)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_as_by_numpy(dtype, special):
    close = {"rtol": 2e-4, "atol": 2e-4} if dtype == np.float32 else {"rtol": 1e-10, "atol": 1e-10}
    for seed in range(40):
        given = operands(seed, special, dtype)
        found, expected = ctc.forward(*given), ctc.forward_by_numpy(*given)
        np.testing.assert_allclose(found[0], expected[0], **close)
        grad = np.linspace(-1, 1, len(found[0])).astype(dtype)
        for zero_infinity in (False, True):
            slopes = ctc.backward(grad, *given, *found, zero_infinity)
            np.testing.assert_allclose(slopes, ctc.backward_by_numpy(grad, *given, *expected, zero_infinity), **close)


def test_layouts():
    x, *given = operands(4, None, np.float64)
    assert x.size
    loss, alpha = ctc.forward(x, *given)
    slopes = ctc.backward(np.ones(1).repeat(len(loss)), x, *given, loss, alpha, False)
    other = np.asfortranarray(x)[:, ::-1].copy()[:, ::-1]
    np.testing.assert_array_equal(ctc.forward(other, *given)[0], loss)
    ones = np.broadcast_to(np.ones(1), loss.shape)
    np.testing.assert_array_equal(ctc.backward(ones, other, *given, loss, alpha, False), slopes)


@pytest.mark.skipif(not loop_table.has_loops(np.empty(0)), reason="plain NumPy")
def test_what_does_not_fit_is_refused():
    x, states, steps, lengths, blank = operands(4, None, np.float64)
    with pytest.raises(ValueError, match="samples"):
        ctc.forward(x, states, steps[1:], lengths, blank)
    with pytest.raises(ValueError, match="samples"):
        ctc.forward(x, states[:, 1:], steps, lengths, blank)
    out_of_range = ctc.forward(x, states, steps + 100, lengths + 100, blank)
    assert out_of_range[0].shape == lengths.shape
    assert np.isnan(ctc.forward(x, states + 100, steps.clip(1), lengths, blank)[0]).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_impossible_blanks(dtype):
    """Without a blank there is one path through two steps: 1, 1. The gradient is exp(x) less 1 on the path."""
    x = np.log(np.array([[[1, 0.75, 0.25]], [[1, 0.5, 0.5]]], dtype))
    x[..., 0] = -np.inf
    blank, one = 0, np.ones(1, np.int64)
    states = in_memory(ctc.states_of)(one[:, None], one, blank)
    given = x, states, 2 * one, one, blank
    for forward, backward in ((ctc.forward, ctc.backward), (ctc.forward_by_numpy, ctc.backward_by_numpy)):
        loss, alpha = forward(*given)
        np.testing.assert_allclose(loss, -np.log(0.375), 1e-6)
        slopes = backward(np.ones(1, dtype), *given, loss, alpha, False)
        np.testing.assert_allclose(slopes[:, 0], [[0, -0.25, 0.25], [0, -0.5, 0.5]], rtol=0, atol=1e-6)
