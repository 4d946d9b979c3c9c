"""Samples of reading and writing by flat index and by mask."""

import numpy as np
from ops.sample import Sample, booleans, complex_grid, grid, integers

MASK = np.array([True, False, True])


def samples():
    x, z = grid(4, 3), complex_grid(2, 2)
    numbers = np.array([[0, -1], [5, 5]])
    along = np.array([[0, 2, 1], [3, 1, -1]])
    return {
        "take": [
            Sample((x, numbers), numpy=lambda a, i: np.take(a, i)),
            Sample((x, np.array(3)), numpy=lambda a, i: np.take(a, i)),
            Sample((z, np.array([1, -1])), numpy=lambda a, i: np.take(a, i)),
            Sample((integers(4), np.array([1, 1])), numpy=lambda a, i: np.take(a, i)),
            Sample((grid(), np.array([0, 0])), numpy=lambda a, i: np.take(a, i)),
            Sample((np.zeros(0), np.zeros((0, 2), int)), numpy=lambda a, i: np.zeros((0, 2))),
        ],
        "put": [
            Sample((x, np.array([[0, -1], [5, 7]]), grid(4)), numpy=put),
            Sample((x, np.array([0, 3]), grid(2, 1)), numpy=put),
            Sample((x, numbers, grid(2, 2), True), numpy=put),
            Sample((z, np.array([0, 3]), complex_grid(2)), numpy=put),
            Sample((integers(4), np.array([1, 1]), integers(2), True), numpy=put),
            Sample((grid(), np.array([0]), grid(1)), numpy=put),
        ],
        "take_along_dim": [
            Sample((x, along, 0), numpy=np.take_along_axis),
            Sample((x, along[:, :1], 0), numpy=np.take_along_axis),
            Sample((x[:1], along % 3, 1), numpy=lambda a, i, d: np.take_along_axis(a.repeat(2, 0), i, d)),
            Sample((x, np.array([[0, 7, 11]])), numpy=lambda a, i: np.take(a, i.reshape(-1))),
        ],
        "masked_select": [
            Sample((x, x > 0), numpy=lambda a, m: a[m]),
            Sample((x, MASK), numpy=lambda a, m: a[:, m].reshape(-1)),
            Sample((grid(3), booleans(2, 3)), numpy=lambda a, m: np.broadcast_to(a, m.shape)[m]),
            Sample((z, z.real > 0), numpy=lambda a, m: a[m]),
            Sample((integers(3), MASK), numpy=lambda a, m: a[m]),
            Sample((grid(), np.array(True)), numpy=lambda a, m: a.reshape(1)),
            Sample((np.zeros((2, 0)), np.zeros((2, 0), bool)), numpy=lambda a, m: np.zeros(0)),
        ],
        "masked_scatter": [
            Sample((x, x > 0, grid(2, 6)), numpy=masked_scatter),
            Sample((x, MASK, grid(10)), numpy=masked_scatter),
            Sample((grid(3), booleans(2, 3), grid(6)), numpy=masked_scatter),
            Sample((z, z.real > 0, complex_grid(2, 2)), numpy=masked_scatter),
            Sample((integers(3), MASK, integers(2)), numpy=masked_scatter),
            Sample((grid(), np.array(True), grid(1)), numpy=masked_scatter),
        ],
        "masked_scatter_backward": [
            Sample((x, x > 0, (2, 6)), numpy=masked_first),
            Sample((x, np.broadcast_to(MASK, (4, 3)), (10,)), numpy=masked_first),
        ],
        "argwhere": [
            Sample((np.array([[0.0, 2.0], [1.0, 0.0]]),), numpy=np.argwhere, grad=False),
            Sample((integers(4) * 0,), numpy=np.argwhere),
            Sample((np.array(3),), numpy=np.argwhere),
        ],
        "nonzero_static": [
            Sample((integers(2, 3, low=0, high=2),), {"size": 2}),
            Sample((integers(2, 3, low=0, high=2),), {"size": 9, "fill_value": 5}),
            Sample((integers(2, 3),), {"size": 0}),
            Sample((np.array(1),), {"size": 2}),
        ],
    }


def put(a, index, values, accumulate=False):
    out = a.copy().reshape(-1)
    if accumulate:
        np.add.at(out, index, values)
    else:
        out[index.reshape(-1)] = values.reshape(-1)
    return out.reshape(a.shape)


def masked_scatter(a, mask, source):
    out = np.broadcast_to(a, np.broadcast_shapes(a.shape, mask.shape)).copy()
    mask = np.broadcast_to(mask, out.shape)
    out[mask] = source.reshape(-1)[: mask.sum()]
    return out


def masked_first(g, mask, shape):
    out = np.zeros(int(np.prod(shape)))
    out[: mask.sum()] = g[mask]
    return out.reshape(shape)


def errors():
    x, v = grid(4, 3), grid(3)

    def calls(*cases):
        return [Sample(case) for case in cases]

    return {
        "take": calls(
            (x, np.array([12])),
            (x, np.array([-13])),
            (x, np.array([1.0])),
            (x, np.array([1], np.int32)),
            (x, [1]),
            (np.zeros(0), np.array([0])),
        ),
        "put": calls(
            (x, np.array([0, 12]), grid(2), True),
            (x, np.array([0]), grid(2)),
            (x, np.array([0.0, 1]), grid(2)),
            (x, np.array([0, 1]), np.array([5, 6])),
            (x, np.array([0, 1]), 5),
        ),
        "take_along_dim": calls(
            (x, np.array([0, 1]), 0),
            (x, np.array([[0.5]]), 0),
            (x, np.array([[0]], np.int32), 0),
            (x, np.array([[0]]), 2),
            (x, np.array([[12]])),
            (grid(), np.array(0), 0),
        ),
        "masked_select": calls((x, x), (x, np.array([1, 0, 1], np.uint8)), (x, np.array([True, False])), (x, True)),
        "masked_scatter": calls(
            (x, x > -9, grid(2)),
            (x, x > 3, np.arange(12)),
            (x, x, grid(12)),
            (x, np.array([True, False]), grid(12)),
        ),
        "masked_scatter_": calls((v, x > 3, grid(12))),
        "nonzero_static": [Sample((x,), {"size": -1})],
    }
