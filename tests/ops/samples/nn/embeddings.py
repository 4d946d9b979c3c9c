"""Samples for embeddings, one-hot codes, channel shuffles and bilinear products."""

import numpy as np
from ops.sample import Sample, grid, integers


def samples():
    return {**rows(), **bags(), **others()}


def rows():
    w, i = grid(5, 3), np.array([[0, 1, 4], [2, 2, 1]])

    def embedding(weight, indices, *rest):
        return weight[indices]

    return {
        "embedding": [
            Sample((w, i), numpy=embedding),
            Sample((w, i.astype(np.int32)), numpy=embedding),
            Sample((w, np.asarray(3)), numpy=embedding),
            Sample((w, np.zeros((0, 2), int)), numpy=embedding, oracle_grad=False),  # PyTorch's second gradient fails
            # a row without a gradient, or gradients scaled by frequency, do not match the result's derivative
            Sample((w, i, 2), numpy=embedding, smooth=False),
            # PyTorch does not scale the second gradient
            Sample((w, i, 1, True), numpy=embedding, smooth=False, oracle_grad=False),
            Sample((w, i, -1, True), numpy=embedding, smooth=False, oracle_grad=False),
        ],
    }


def bags():
    w, i, offsets = grid(5, 3), np.array([4, 1, 0, 2, 2, 1]), np.array([0, 2, 2, 5])

    def calls(*cases, **how):
        for by_frequency, mode, weights, include_last, padding in cases:
            yield Sample((w, i, offsets, by_frequency, mode, False, weights, include_last, padding), **how)

    return {
        "embedding_bag": [
            *calls(
                (False, 0, None, False, None),
                (False, 0, grid(6), False, None),
                (False, 0, grid(6), True, 2),
                (False, 1, None, False, None),
                (False, 1, None, False, -3),
                (False, 2, None, False, None),
                (False, 2, None, True, 2),
            ),
            # PyTorch scales some gradients by other frequencies
            *calls((True, 1, None, False, None), (True, 0, None, False, 1), smooth=False, oracle_grad=False),
        ]
    }


def others():
    images = grid(2, 6, 2, 2)
    x, y, w = grid(3, 2), grid(3, 4), grid(5, 2, 4)

    def shuffle(a, groups):
        parts = a.reshape(a.shape[0], groups, -1, *a.shape[2:])
        return parts.swapaxes(1, 2).reshape(a.shape)

    def bilinear(a, b, weight, bias=0):
        return np.einsum("...i,oij,...j->...o", a, weight, b) + bias

    return {
        "one_hot": [
            Sample((integers(3, low=0),), numpy=lambda a: np.eye(a.max() + 1, dtype=int)[a]),
            Sample((integers(2, 2, low=0), 6), numpy=lambda a, n: np.eye(n, dtype=int)[a]),
            Sample((np.asarray(2), 3), numpy=lambda a, n: np.eye(n, dtype=int)[a]),
            Sample((np.zeros((0, 2), int), 3), numpy=lambda a, n: np.zeros((0, 2, 3), int)),
        ],
        "channel_shuffle": [
            *(Sample((images, groups), numpy=shuffle) for groups in (1, 2, 3, 6)),
            Sample((grid(2, 4, 3), 2), numpy=shuffle),
            Sample((integers(1, 4, 2), 2), numpy=shuffle),
            Sample((np.zeros((0, 4, 2)), 2), numpy=lambda a, groups: a),
        ],
        "trilinear": [Sample((x, y, w), numpy=bilinear)],
        "bilinear": [
            Sample((x, y, w), numpy=bilinear),
            Sample((x, y, w, grid(5)), numpy=bilinear),
            Sample((x[0], y[0], w, grid(5)), numpy=bilinear),
            Sample((grid(2, 3, 2), grid(2, 3, 4), w), numpy=bilinear),
        ],
    }


# --- Invalid input -----------------------------------------------------------------------------


def errors():
    w, i, o = grid(5, 3), np.array([4, 1, 0]), np.array([0, 2])
    x, y, stack, images = grid(2, 3), grid(2, 4), grid(5, 3, 4), grid(2, 6, 2, 2)

    def bad(*cases, **named):
        return [Sample(case, named) for case in cases]

    return {
        "embedding": bad((w, i + 3), (w, i - 3), (w, i + 0.5), (w, i.astype(np.int16)), (w[0], i), ([1], i), (w, 1)),
        "embedding_bag": bad(
            (w, i, o + 1, False, 1),
            (w, i + 3, o),
            (w, i + 0.5, o),
            (w, i, o, False, 0, False, None, False, 9),
        ),
        "one_hot": bad((np.array([0, -2]),), (x,), (o, 2), (np.zeros(0, int),), (o, 2.5)),
        "channel_shuffle": bad((images, 4), (images, 0), (images[0, 0], 2), (images, 2.5), (1, 2)),
        "bilinear": bad((x, y[:1], stack), (x, x, stack), (y, y, stack), (x, y, stack[0]), (x, y, stack, grid(3))),
    }
