"""Samples for the connectionist temporal classification (CTC) loss."""

from itertools import product

import numpy as np
from ops.sample import Sample, grid


def log_softmax(a):
    return a - np.log(np.exp(a).sum(-1, keepdims=True))


def reading(path, blank):
    """The label sequence of a path: repetitions merged, then blanks removed."""
    return [c for i, c in enumerate(path) if c != blank and (i == 0 or path[i - 1] != c)]


def losses(log_probs, targets, input_lengths, target_lengths, blank=0):
    """The loss, by enumerating all paths."""
    found = []
    start = 0
    for n, (steps, length) in enumerate(zip(input_lengths, target_lengths)):
        target = list(targets[n, :length] if targets.ndim == 2 else targets[start : start + length])
        start += length
        paths = product(range(log_probs.shape[2]), repeat=int(steps))
        odds = [sum(log_probs[t, n, c] for t, c in enumerate(p)) for p in paths if reading(p, blank) == target]
        found.append(-np.log(np.exp(odds).sum()) if odds else np.inf)
    return np.array(found)


def samples():
    x = log_softmax(grid(5, 3, 3))
    targets, joined = np.array([[1, 2], [1, 1], [2, 0]]), np.array([1, 2, 1, 1, 2])
    steps, lengths = (5, 4, 3), (2, 2, 1)

    def plain(a, t, i, s, blank=0, reduction=0, zero_infinity=False):
        each = losses(a, t, i, s, blank)
        each = np.where(np.isinf(each), 0, each) if zero_infinity else each
        if reduction == 1:
            return (each / np.maximum(s, 1)).mean()
        return each if reduction == 0 else each.sum()

    calls = [(x, targets, steps, lengths), (x, joined, steps, lengths)]
    calls += [(x, targets % 2, (5, 5, 5), (1, 2, 2), 2), (x, targets, steps, (0, 0, 1))]
    reduced = [(x, targets, steps, lengths, 0, code) for code in (1, 2)] + [
        (x, targets, (1, 2, 3), lengths, 0, 2, True)
    ]
    # The gradient is not with respect to log_probs but to the inputs of their log-softmax, so it is only compared with
    # PyTorch's.
    return {
        "ctc_loss": [Sample(call, numpy=plain, smooth=False) for call in calls],
        "ctc_loss.reduced": [Sample(call, numpy=plain, smooth=False) for call in reduced],
        "ctc_loss_backward": [backward_sample()],
    }


def backward_sample():
    x = log_softmax(grid(2, 1, 2))
    states, loss = np.array([[0, 1, 0]]), losses(x, np.array([[1]]), (2,), (1,))
    alpha = np.array([[[x[0, 0, 0], x[0, 0, 1], -np.inf]], [[0.0, 0.0, 0.0]]])
    alpha[1, 0] = np.logaddexp(alpha[0, 0], np.concatenate([[-np.inf], alpha[0, 0, :2]])) + x[1, 0, [0, 1, 0]]

    def numpy(g, a, *rest):
        both = np.exp(np.array([a[0, 0, 1] + a[1, 0, 0], a[0, 0, 1] + a[1, 0, 1], a[0, 0, 0] + a[1, 0, 1]]) + rest[-3])
        given = np.array([[[both[2], both[0] + both[1]]], [[both[0], both[1] + both[2]]]])
        return (np.exp(a) - given) * g[0]

    return Sample(
        (np.array([1.5]), x, states, np.array([2]), np.array([1]), 0, loss, alpha, False), {}, numpy, grad=False
    )


# --- Invalid input -----------------------------------------------------------------------------


def errors():
    x, t = log_softmax(grid(6, 2, 4)), np.array([[1, 2, 1], [3, 3, 0]])

    def bad(*cases):
        return [Sample(case, {}) for case in cases]

    return {
        "ctc_loss": bad(
            (x, t[0], (6, 6), (3, 2)),
            (x, t, (6,), (3, 2)),
            (x, t, (7, 6), (3, 2)),
            (x, t, (6, 6), (4, 2)),
            (x, t, (6, 6), (3,)),
            (x, t, (6, 6), (3, 2), 4),
            (x, t, (6, 6), (3, 2), -1),
            (x.astype(int), t, (6, 6), (3, 2)),
            (x, t, np.array([6.0, 6.0]), np.array([3, 2])),
            (x, t, (-1, 6), (3, 2)),
            (x, t, (6, 6), (-3, 2)),
        )
    }
