"""Samples of joining, repeating and moving elements, and of copies."""

import numpy as np
from ops.sample import Sample, booleans, complex_grid, grid, integers


def samples():
    return {**joined(), **repeated(), **moved(), **copied()}


def joined():
    a, b, v = grid(2, 3), grid(2, 3) + 1, grid(3)
    return {
        "cat": [
            Sample(([a, b],), numpy=np.concatenate),
            Sample(([a, grid(2, 1), b], 1), numpy=np.concatenate),
            Sample(([a, b], -1), numpy=np.concatenate),
            Sample(([v, np.zeros(0), v],), numpy=np.concatenate),
            Sample(([v],), numpy=np.concatenate),
            Sample(([v, integers(2)],), numpy=np.concatenate),
            Sample(([np.zeros((0, 3)), a],), numpy=np.concatenate),
            Sample(([complex_grid(2), v],), numpy=np.concatenate),
        ],
        "stack": [
            Sample(([a, b],), numpy=np.stack),
            Sample(([a, b, a], 1), numpy=np.stack),
            Sample(([a, b], -1), numpy=np.stack),
            Sample(([grid(), grid()],), numpy=np.stack),
            Sample(([v, integers(3)],), numpy=np.stack),
        ],
        "hstack": [
            Sample(([a, grid(2, 1)],), numpy=np.hstack),
            Sample(([v, v],), numpy=np.hstack),
            Sample(([grid(), grid()],), numpy=np.hstack),
        ],
        "vstack": [Sample(([v, v + 1],), numpy=np.vstack), Sample(([a, b],), numpy=np.vstack)],
        "row_stack": [Sample(([v, v + 1],), numpy=np.vstack)],
        "dstack": [Sample(([v, v],), numpy=np.dstack), Sample(([a, b],), numpy=np.dstack)],
        "column_stack": [
            Sample(([v, grid(3, 2)],), numpy=np.column_stack),
            Sample(([v, v + 1],), numpy=np.column_stack),
        ],
        "atleast_1d": [Sample((grid(),), numpy=np.atleast_1d), Sample((a,), numpy=np.atleast_1d)],
        "atleast_2d": [Sample((v,), numpy=np.atleast_2d), Sample((grid(),), numpy=np.atleast_2d)],
        "atleast_3d": [
            Sample((v,), numpy=np.atleast_3d),
            Sample((a,), numpy=np.atleast_3d),
            Sample((grid(), v), numpy=np.atleast_3d),
        ],
        "broadcast_tensors": [Sample((grid(2, 1), v), numpy=np.broadcast_arrays)],
    }


def repeated():
    a, v = grid(2, 3), grid(3)
    return {
        "repeat": [
            Sample((v, 2), numpy=np.tile),
            Sample((a, (2, 1, 3)), numpy=np.tile),
            Sample((a, (0, 1)), numpy=np.tile),
            Sample((grid(), (2,)), numpy=np.tile),
        ],
        "repeat_backward": [Sample((grid(4, 6), (2, 2), (2, 3))), Sample((grid(2, 6), (2, 2), (3,)))],
        "tile": [Sample((a, (2,)), numpy=np.tile), Sample((v, (2, 2)), numpy=np.tile)],
        "repeat_interleave": [
            Sample((v, 2), numpy=np.repeat),
            Sample((a, 3, 1), numpy=np.repeat),
            Sample((a, 2), numpy=np.repeat),
            Sample((v, np.array([1, 0, 2])), numpy=np.repeat),
            Sample((a, np.array([2, 1]), 0), numpy=np.repeat),
        ],
    }


def moved():
    a, v = grid(2, 3), grid(3)
    return {
        "flip": [
            Sample((a, (0,)), numpy=np.flip),
            Sample((a, (0, -1)), numpy=np.flip),
            Sample((grid(), ())),
        ],
        "fliplr": [Sample((a,), numpy=np.fliplr)],
        "flipud": [Sample((a,), numpy=np.flipud), Sample((v,), numpy=np.flipud)],
        "roll": [
            Sample((a, 1), numpy=np.roll),
            Sample((a, 4, 1), numpy=np.roll),
            Sample((a, (1, -1), (0, 1)), numpy=np.roll),
            Sample((a, (1, 1), (0, 0)), numpy=np.roll),
            Sample((grid(), 1), numpy=np.roll),
        ],
        "tril": [
            Sample((grid(3, 3),), numpy=np.tril),
            Sample((a, -1), numpy=np.tril),
            Sample((grid(2, 3, 3), 1), numpy=np.tril),
        ],
        "triu": [
            Sample((grid(3, 3),), numpy=np.triu),
            Sample((a, 1), numpy=np.triu),
            Sample((grid(2, 3, 3), -1), numpy=np.triu),
        ],
    }


def copied():
    a = grid(2, 3)
    return {
        "clone": [Sample((a,), numpy=np.copy), Sample((grid(),)), Sample((complex_grid(2),))],
        "contiguous": [Sample((a,), numpy=np.copy), Sample((np.array(a.T, order="C").T,))],
        "to": [Sample((a,), {"copy": True}, numpy=lambda a, copy: a)],
        "type_as": [
            Sample((a, grid(1)), numpy=lambda a, _: a),
            Sample((a, integers(1)), numpy=lambda a, _: a.astype(int)),
        ],
        "cpu": [Sample((a,), numpy=lambda a: a)],
        "copy": [
            Sample((a, grid(3)), numpy=lambda a, b: np.broadcast_to(b, a.shape)),
            Sample((a, grid(2, 3) + 1), numpy=lambda a, b: b),
            Sample((a, integers(2, 3)), numpy=lambda a, b: b),
            Sample((integers(3), grid(3)), numpy=lambda a, b: b.astype(int), grad=False),
        ],
        "fill": [
            Sample((a, 2.5), numpy=np.full_like),
            Sample((integers(3), 2), numpy=np.full_like),
            Sample((booleans(3), 1), numpy=np.full_like),
        ],
        "fill.Tensor": [Sample((a, grid()), numpy=np.full_like)],
        "zero": [Sample((a,), numpy=np.zeros_like)],
    }


def errors():
    a, v = grid(2, 3), grid(3)
    return {
        "cat": [
            Sample(([],)),
            Sample(([a, grid(3, 4)],)),
            Sample(([a, v],)),
            Sample(([a, np.zeros((0, 4))],)),
            Sample(([a, a], 2)),
            Sample(([grid(), grid()],)),
            Sample((a,)),
            Sample(((v, 2),)),
            Sample((None,)),
        ],
        "stack": [
            Sample(([],)),
            Sample(([v, grid(2)],)),
            Sample(([v, v], 3)),
            Sample((a,)),
            Sample(([v, 1],)),
        ],
        "hstack": [Sample(([a, grid(3, 3)],)), Sample(([],))],
        "vstack": [Sample(([grid(2), v],))],
        "broadcast_tensors": [Sample((grid(2, 2), v))],
        "repeat": [Sample((a, 2)), Sample((a, (-1, 2)))],
        "tile": [Sample((a, (-1,)))],
        "repeat_interleave": [
            Sample((a, np.array([1, 2, 3]))),
            Sample((a, np.array([1, 2]), 1)),
            Sample((a, -1)),
            Sample((a, np.array([1, -2]), 0)),
            Sample((a, np.array([1.0, 2.0]), 0)),
            Sample((a, np.array([[1, 2]]), 0)),
            Sample((a, 2, 3)),
            Sample((a, 2.5)),
        ],
        "flip": [Sample((a, (2,))), Sample((a, (0, 0)))],
        "roll": [
            Sample((a, (1, 2), 0)),
            Sample((a, (1, 2))),
            Sample((a, 1, 2)),
            Sample((grid(), 1, 0)),
        ],
        "tril": [Sample((v,))],
        "triu": [Sample((v,))],
    }
