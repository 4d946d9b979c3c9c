"""Connectionist temporal classification: sums over all alignments of a target with a sequence of symbols.

After A. Graves et al., "Connectionist Temporal Classification" (ICML 2006), section 4.1. `log_probs` is (T, N, C),
`states` (N, 2 S + 1) are the targets with blanks around and between them. Log-probabilities by state have the states
as their last dimension.
"""

import numpy as np

import cygrad._kernels.cpu.base.loop_table as loop_table
from cygrad._kernels.cpu.base.arrays import dense, new_array
from cygrad._kernels.cpu.base.loop_table import LOOP_SIZES, LOOPS
from cygrad._kernels.device.cupy_library import beside
from cygrad._kernels.device.dispatch import dispatching

CTC = LOOPS.CTC
ROOM = LOOP_SIZES.CTC_ROWS  # scratch rows per sample
PIECE = 1 << 12  # states over all times, per chunk


def in_rows(targets, lengths):
    """Split concatenated targets into rows (N, S). Positions after a target's end hold arbitrary values."""
    longest = int(lengths.max(initial=0))
    places = (np.cumsum(lengths) - lengths)[:, None] + np.arange(longest)
    return targets.take(beside(np.minimum(places, max(len(targets) - 1, 0)), targets))


def states_of(targets, lengths, blank):
    """Return (N, 2 S + 1): the padded targets (N, S) with blanks before, between and after their symbols."""
    count, longest = targets.shape
    states = np.full((count, 2 * longest + 1), blank, np.int64)
    states[:, 1::2] = np.where(np.arange(longest) < lengths[:, None], targets, blank)
    return states


def _emissions(log_probs, states):
    """Return (T, N, 2 S + 1): the log-probability of each state's symbol."""
    return np.take_along_axis(log_probs, np.broadcast_to(states, (len(log_probs), *states.shape)), 2)


def _skips(states, blank):
    """Whether a state may directly follow the one two before it: their symbols differ, with a blank in between."""
    skips = np.zeros(states.shape, bool)
    skips[:, 2:] = (states[:, 2:] != blank) & (states[:, 2:] != states[:, :-2])
    return skips


def _step(before, skips):
    """The log of the sum over the states from which each state can be reached."""
    none = np.full((len(before), 2), -np.inf, before.dtype)
    one = np.concatenate([none[:, :1], before[:, :-1]], 1)
    two = np.where(skips, np.concatenate([none, before], 1)[:, : before.shape[1]], -np.inf)
    return np.logaddexp(np.logaddexp(before, one), two)


def _run(
    log_probs, states, input_lengths, target_lengths, blank, alpha, loss, zero_infinity=False, grad=None, out=None
):
    """Run the loop of ctc.h, which overwrites `alpha` and `loss`, or `out` if there is a `grad`."""
    steps, samples, symbols = log_probs.shape
    width = states.shape[1]
    whole = [np.ascontiguousarray(array, np.int64) for array in (states, input_lengths, target_lengths)]
    if not len(states) == input_lengths.size == target_lengths.size == samples or width % 2 != 1:
        raise ValueError(f"states {states.shape} of {samples} samples")
    room = np.empty((samples, ROOM, width + 2), log_probs.dtype)
    like = [
        loop_table.of_size(array, log_probs, size)
        for array, size in ((alpha, steps * samples * width), (loss, samples), (room, room.size), (grad, samples))
    ]
    arrays = (dense(log_probs), *whole, *like, out)
    numbers = steps, samples, symbols, width, blank, zero_infinity
    loop_table.run(CTC, arrays, numbers, 0, samples, PIECE // max(steps * width, 1))


def forward(log_probs, states, input_lengths, target_lengths, blank):
    """Return (negative log-likelihood of each target, log-probability (T, N, 2 S + 1) of reaching each state by
    then).
    """
    if loop_table.has_loops(log_probs):
        loss = new_array(states.shape[:1], log_probs.dtype.num)
        alpha = new_array((len(log_probs), *states.shape), log_probs.dtype.num)
        _run(log_probs, states, input_lengths, target_lengths, blank, alpha, loss)
        return loss, alpha
    return forward_by_numpy(log_probs, states, input_lengths, target_lengths, blank)


def forward_by_numpy(log_probs, states, input_lengths, target_lengths, blank):
    emitted, skips = _emissions(log_probs, states), _skips(states, blank)
    rows = np.arange(len(states))
    alpha = np.full(emitted.shape, -np.inf, log_probs.dtype)
    with np.errstate(all="ignore"):
        start = np.full(states.shape, -np.inf, log_probs.dtype)
        start[:, 0] = 0
        start[:, 1:2] = np.where(target_lengths[:, None] > 0, 0, -np.inf)
        for t in range(len(alpha)):
            alpha[t] = (start if t == 0 else _step(alpha[t - 1], skips)) + emitted[t]
        last = alpha[input_lengths - 1, rows] if len(alpha) else np.full(states.shape, -np.inf, log_probs.dtype)
        ends = last[rows, 2 * target_lengths], last[rows, np.maximum(2 * target_lengths - 1, 0)]
        total = np.where(target_lengths > 0, np.logaddexp(*ends), ends[0])
        total = np.where(input_lengths > 0, total, np.where(target_lengths > 0, -np.inf, 0))
        return -total.astype(log_probs.dtype), alpha


def backward(grad, log_probs, states, input_lengths, target_lengths, blank, loss, alpha, zero_infinity):
    """Gradient with respect to the logits, `log_probs` being their log-softmax: probabilities minus those given the
    target.

    For an impossible target it is 0 with `zero_infinity`, else NaN.
    """
    if loop_table.has_loops(log_probs):
        out = new_array(log_probs.shape, log_probs.dtype.num)
        _run(log_probs, states, input_lengths, target_lengths, blank, alpha, loss, zero_infinity, grad, out)
        return out
    return backward_by_numpy(grad, log_probs, states, input_lengths, target_lengths, blank, loss, alpha, zero_infinity)


def backward_by_numpy(grad, log_probs, states, input_lengths, target_lengths, blank, loss, alpha, zero_infinity):
    emitted = _emissions(log_probs, states)
    # backwards, a skip leads to the state two before: the same condition, seen from the other end
    skips = np.zeros(states.shape, bool)
    skips[:, :-2] = _skips(states, blank)[:, 2:]
    place = np.arange(states.shape[1])
    is_end = (place == 2 * target_lengths[:, None]) | (place == 2 * target_lengths[:, None] - 1)
    end = np.where(is_end, 0, -np.inf).astype(log_probs.dtype)
    out = np.zeros_like(log_probs)
    beta = np.full(states.shape, -np.inf, log_probs.dtype)
    symbols = np.zeros((len(states), log_probs.shape[2]), log_probs.dtype)
    rows = np.arange(len(states))[:, None]
    counted = ~np.isinf(loss) if zero_infinity else True
    with np.errstate(all="ignore"):
        for t in range(len(log_probs) - 1, -1, -1):
            onward = _step(beta[:, ::-1], skips[:, ::-1])[:, ::-1]
            onward = np.where((input_lengths - 1 == t)[:, None], end, onward)
            given = alpha[t] + onward
            given = np.exp(given - given.max(1, keepdims=True))
            given /= given.sum(1, keepdims=True)  # loses less than subtracting logarithms of large size
            beta = onward + emitted[t]
            symbols[...] = np.where(np.isinf(loss), np.nan, 0)[:, None]  # where `given` is NaN, too
            np.add.at(symbols, (rows, states), given)
            inside = ((t < input_lengths) & counted)[:, None]
            out[t] = np.where(inside, (np.exp(log_probs[t]) - symbols) * grad[:, None], 0)
    return out


dispatching(globals(), "states_of forward backward")
