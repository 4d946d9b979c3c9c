"""Samples of strided views and of the ops that compute their gradients."""

import numpy as np
from ops.sample import Sample, grid

# In bytes of float64: a matrix of shape (2, 3), and views of it.
BASE = ((2, 3), (24, 8))
COLUMN = ((2,), (24,), 8)
WINDOWS = ((4, 2), (8, 8), 0)  # neighbors overlap
REPEATED = ((2, 2), (0, 8), 24)
BEYOND = ((3,), (24,), 16)  # the last element is out of bounds
EXPANDED = ((2, 3), (0, 8))  # both rows share the same memory
BACKWARDS = ((2, 3), (-24, -8))


def samples():
    x = grid(2, 3)
    return {
        # One element, so that the memory layout is irrelevant; test_views.py has the rest.
        "as_strided": [
            Sample((grid(1), (3, 2), (0, 0)), numpy=lambda a, *_: np.full((3, 2), a[0])),
            Sample((grid(1), (), (), 0), numpy=lambda a, *_: a[0]),
        ],
        "strided_sum": [
            Sample((grid(2), COLUMN, BASE), numpy=column_gradient),
            Sample((grid(4, 2), WINDOWS, BASE), numpy=windows_gradient),
            Sample((grid(2, 2), REPEATED, BASE)),
            Sample((grid(3), BEYOND, BASE)),
            Sample((grid(2), COLUMN, EXPANDED)),
            Sample((grid(4, 2), WINDOWS, EXPANDED)),
            Sample((grid(2), ((2,), (-24,), -8), BACKWARDS)),
            Sample((np.zeros((0, 2)), ((0, 2), (8, 8), 0), BASE)),
        ],
        "strided_gather": [
            Sample((x, COLUMN, BASE), numpy=lambda a, *_: a[:, 1]),
            Sample((x, WINDOWS, BASE), numpy=lambda a, *_: windows(a.reshape(-1))),
            Sample((x, REPEATED, BASE), numpy=lambda a, *_: np.broadcast_to(a[1, :2], (2, 2))),
            Sample((x, BEYOND, BASE), numpy=lambda a, *_: np.array([a[0, 2], a[1, 2], 0])),
            Sample((x, ((3,), (8,), 0), EXPANDED), numpy=lambda a, *_: a.mean(0)),
            Sample((x, ((2,), (-24,), -8), BACKWARDS), numpy=lambda a, *_: a[:, 1]),
        ],
        "strided_scatter": [
            Sample((x, grid(2), COLUMN, BASE)),
            Sample((x, None, COLUMN, BASE)),
            Sample((x, grid(2), ((2,), (-24,), -8), BACKWARDS)),
        ],
    }


def windows(flat):
    return np.stack([flat[:4], flat[1:5]], 1)


def column_gradient(g, *_):
    result = np.zeros((2, 3))
    result[:, 1] = g
    return result


def windows_gradient(g, *_):
    flat = np.zeros(6)
    flat[:4] += g[:, 0]
    flat[1:5] += g[:, 1]
    return flat.reshape(2, 3)


def errors():
    x = grid(4)
    return {
        "as_strided": [
            Sample((x, (2, 2), (3, 1))),
            Sample((x, (2, 2), (2, 1), 1)),
            Sample((x, (2,), (1, 2))),
            Sample((x, (-2,), (1,))),
            Sample((x, (2,), (-1,))),
            Sample((x, (2,), (1,), -1)),
        ]
    }
