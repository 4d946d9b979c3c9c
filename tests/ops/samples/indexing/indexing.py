"""Samples of indexed reads and writes, and of filling by mask."""

import numpy as np
from ops.sample import Sample, booleans, grid, integers

ROWS = np.array([2, 0, 2])
MASK = np.array([True, False, True, True])
PLACES = np.array([[0, 2, 1], [1, 1, 0]])


def samples():
    x = grid(4, 3)
    return {
        "index": [
            Sample((x, (ROWS,)), numpy=lambda a, i: a[i]),
            Sample((x, (np.array([-1, -4]),)), numpy=lambda a, i: a[i]),
            Sample((x, (None, np.array([[0, 2], [1, 1]]))), numpy=lambda a, i: a[:, i[1]]),
            Sample((x, (ROWS, np.array([0, 1, 0]))), numpy=lambda a, i: a[i]),
            Sample((x, (ROWS[:, None], np.array([0, 2]))), numpy=lambda a, i: a[i]),
            Sample((x, (MASK,)), numpy=lambda a, i: a[i]),
            Sample((x, (x > 0,)), numpy=lambda a, i: a[i]),
            Sample((x, (MASK, np.array([0, 1, 2]))), numpy=lambda a, i: a[i]),
            Sample((grid(2, 3, 4), (PLACES[:, 0], None, PLACES[:, 1])), numpy=separated),
            Sample((grid(2, 3, 4), (None, PLACES, PLACES)), numpy=lambda a, i: a[:, i[1], i[2]]),
            Sample((x, (np.zeros(0, int),)), numpy=lambda a, i: a[i]),
        ],
        "index_backward": [
            Sample((grid(3, 3), (4, 3), (ROWS,)), numpy=summed),
            Sample((grid(3), (4, 3), (ROWS, np.array([0, 1, 0]))), numpy=summed),
            Sample((grid(4, 3), (4, 3), (None, np.array([2, 2, 0])))),
            Sample((grid(3, 3), (4, 3), (MASK,)), numpy=summed),
            Sample((grid(2, 3), (2, 3, 4), (PLACES[:, 0], None, PLACES[:, 1]))),
        ],
        "index_put": [
            Sample((x, (np.array([2, 0]),), grid(2, 3)), numpy=put),
            Sample((x, (np.array([2, 0]),), grid(3)), numpy=put),
            Sample((x, (MASK,), grid()), numpy=put),
            Sample((x, (x > 0,), grid()), numpy=put),
            Sample((x, (ROWS, np.array([0, 1, 2])), grid(3)), numpy=put),
            Sample((x, (ROWS,), grid(3, 3), True), numpy=put),
            Sample((integers(4), (ROWS,), integers(3), True), numpy=put),
        ],
        "index_select": [
            Sample((x, 0, ROWS), numpy=lambda a, d, i: np.take(a, i, d)),
            Sample((x, 1, np.array([1, 1])), numpy=lambda a, d, i: np.take(a, i, d)),
            Sample((x, 0, np.array(3)), numpy=lambda a, d, i: a[3:]),
            Sample((grid(), 0, np.array([0])), numpy=lambda a, *_: a),
            Sample((x, 0, np.zeros(0, int)), numpy=lambda a, d, i: np.take(a, i, d)),
        ],
        "index_add": [
            Sample((x, 0, ROWS, grid(3, 3)), numpy=index_add),
            Sample((x, 1, np.array([1, 1]), grid(4, 2)), numpy=index_add),
            Sample((x, 0, ROWS, grid(3, 3)), {"alpha": -2}, numpy=index_add),
            Sample((grid(), 0, np.array(0), grid())),
        ],
        "put_back": [
            Sample((grid(*PLACES.shape), 1, PLACES, (2, 3)), numpy=put_back),
            Sample((grid(3), 0, np.array([2, 0, 2]), (4,)), numpy=put_back),
        ],
        "gather": [
            Sample((x, 0, PLACES), numpy=lambda a, d, i: np.take_along_axis(a, i, d)),
            Sample((grid(2, 3), 1, PLACES), numpy=lambda a, d, i: np.take_along_axis(a, i, d)),
            Sample((x, 0, PLACES[:, :2]), numpy=lambda a, d, i: a[i, np.arange(2)]),
            Sample((grid(3), 0, np.array([2, 2])), numpy=lambda a, d, i: a[i]),
            Sample((grid(3), 0, np.array(1)), numpy=lambda a, d, i: a[1]),
            Sample((grid(), 0, np.array([0, 0])), numpy=lambda a, *_: np.full(2, a)),
            Sample((x, 0, np.zeros((0, 3), int)), numpy=lambda a, d, i: np.zeros((0, 3))),
        ],
        "scatter_add": [
            Sample((x, 0, PLACES, grid(2, 3)), numpy=scatter_add),
            Sample((x, 1, PLACES, grid(2, 3)), numpy=scatter_add),
            # PyTorch has no gradient if the source is larger than the index
            Sample((x, 0, PLACES[:, :2], grid(4, 3)), numpy=scatter_add, oracle_grad=False),
            Sample((grid(), 0, np.array(0), grid())),
        ],
        "masked_fill": [
            Sample((x, x > 0, 0.5), numpy=fill),
            Sample((x, np.array([True, False, True]), 2), numpy=fill),
            Sample((grid(3), booleans(2, 3), 1.5), numpy=fill),
            Sample((integers(4), MASK, 7), numpy=fill),
            Sample((grid(), np.array(True), 1.0), numpy=fill),
        ],
        "masked_fill.Tensor": [
            Sample((x, x > 0, grid()), numpy=fill),
            Sample((x, np.array([True, False, True]), np.array(2.0)), numpy=fill),
        ],
    }


def separated(a, index):
    return a[index[0], :, index[2]]


def summed(g, shape, index):
    out = np.zeros(shape)
    np.add.at(out, index, g)
    return out


def put(a, index, values, accumulate=False):
    out = a.copy()
    if accumulate:
        np.add.at(out, index, values)
    else:
        out[index] = values
    return out


def index_add(a, dim, index, source, alpha=1):
    out = a.copy()
    np.add.at(out, (slice(None),) * dim + (index,), alpha * source)
    return out


def scatter_add(a, dim, index, source):
    out = a.copy()
    places = list(np.indices(index.shape))
    places[dim] = index
    np.add.at(out, tuple(places), source[tuple(map(slice, index.shape))])
    return out


def put_back(g, dim, index, shape):
    return scatter_add(np.zeros(shape), dim, index, g)


def fill(a, mask, value):
    return np.where(mask, np.asarray(value, a.dtype), a)


def errors():
    x, v = grid(2, 3), grid(3)
    return {
        "index_put": [
            Sample((v, (np.array([3]),), grid(1))),
            Sample((v, (np.array([0]),), integers(1))),
            Sample((v, (np.array([0, 1]),), grid(1, 2))),
            Sample((v, (np.array([0]), np.array([0])), grid(1))),
            Sample((x, (np.array([0, 1]), np.array([0, 1, 2])), grid())),
            Sample((x, (np.array([True, False, True]),), grid())),
            Sample((v, (np.array([0.5]),), grid(1))),
        ],
        "index_select": [
            Sample((v, 0, np.array([3]))),
            Sample((v, 0, np.array([-1]))),
            Sample((v, 0, np.array([[1]]))),
            Sample((v, 0, np.array([1.0]))),
            Sample((v, 1, np.array(1))),
            Sample((v, 0, np.array([1], np.int16))),
            Sample((v, 0, 1)),
        ],
        "index_add": [
            Sample((v, 0, np.array([3]), grid(1))),
            Sample((v, 0, np.array([2, 1]), grid(1))),
            Sample((x, 1, np.array([0]), grid(1))),
        ],
        "gather": [
            Sample((v, 0, np.array([3]))),
            Sample((v, 0, np.array([-1]))),
            Sample((v, 0, np.array([[1]]))),
            Sample((v, 0, np.array([1.0]))),
            Sample((x, 0, np.array([[1, 0, 1, 0]]))),
            Sample((x, 2, np.array([[1, 0]]))),
        ],
        "scatter_add": [
            Sample((v, 0, np.array([3]), grid(1))),
            Sample((v, 0, np.array([2, 1]), grid(1))),
            Sample((v, 0, np.array([2]), grid(1).astype(np.float32))),
        ],
        "masked_fill": [
            Sample((v, np.array([1, 0, 1]), 0.0)),
            Sample((v, np.array([True, False]), 0.0)),
            Sample((v, np.array([True, False, True]), v)),
            Sample((v, True, 1.5)),
            Sample((v, np.array([True, False, True]), "a")),
        ],
    }
