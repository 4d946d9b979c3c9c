"""Samples of views of a whole tensor and of parts of one."""

import numpy as np
from ops.sample import Sample, complex_grid, grid, integers


def samples():
    return {**whole(), **parts()}


def whole():
    x = grid(2, 3)
    cube = grid(2, 3, 4)
    transposed = np.array(grid(3, 2), order="C").T
    return {
        "view": [
            # one dimension, or only new dimensions of length 1: strides can express it in any layout
            Sample((grid(6), 3, 2), numpy=lambda a, *shape: a.reshape(shape)),
            Sample((grid(6), (-1, 2)), numpy=np.reshape),
            Sample((x, 2, 1, 3), numpy=lambda a, *shape: a.reshape(shape)),
            Sample((grid(), (1, 1)), numpy=np.reshape),
            Sample((np.zeros((0, 3)), (3, 0)), numpy=np.reshape),
            Sample((complex_grid(4), 2, 2)),
        ],
        "reshape": [
            Sample((x, (3, 2)), numpy=np.reshape),
            Sample((cube, (4, -1)), numpy=np.reshape),
            Sample((integers(4), (2, 2)), numpy=np.reshape),
            Sample((grid(1), ()), numpy=np.reshape),
        ],
        "reshape.alias": [Sample((transposed, (2, 3, 1)), numpy=np.reshape)],
        "reshape.copy": [Sample((transposed, (6,)), numpy=np.reshape)],
        "reshape_as": [Sample((x, grid(6)), numpy=lambda a, b: a.reshape(b.shape))],
        "view_as": [Sample((grid(6), grid(3, 2)), numpy=lambda a, b: a.reshape(b.shape))],
        "flatten": [
            Sample((cube,), numpy=np.ravel),
            Sample((cube, 1), numpy=lambda a, _: a.reshape(2, 12)),
            Sample((cube, 0, 1), numpy=lambda a, *_: a.reshape(6, 4)),
            Sample((grid(),), numpy=np.ravel),
        ],
        "ravel": [Sample((x,), numpy=np.ravel), Sample((transposed,), numpy=np.ravel)],
        "unflatten": [
            Sample((grid(2, 6), 1, (3, -1)), numpy=lambda a, *_: a.reshape(2, 3, 2)),
            Sample((grid(4), 0, (2, 2)), numpy=lambda a, *_: a.reshape(2, 2)),
        ],
        "swapaxes": [
            Sample((x, 0, 1), numpy=np.swapaxes),
            Sample((x,), {"axis0": -1, "axis1": 0}, numpy=lambda a, axis0, axis1: a.T),
        ],
        "transpose": [
            Sample((x, 0, 1), numpy=np.swapaxes),
            Sample((cube, -1, 0), numpy=np.swapaxes),
            Sample((cube, 1, 1), numpy=np.swapaxes),
        ],
        "t": [Sample((x,), numpy=np.transpose), Sample((grid(3),)), Sample((grid(),))],
        "permute": [
            Sample((cube, (2, 0, 1)), numpy=np.transpose),
            Sample((cube, (-1, 1, 0)), numpy=np.transpose),
        ],
        "movedim": [
            Sample((cube, 0, -1), numpy=np.moveaxis),
            Sample((cube, (0, 2), (1, 0)), numpy=np.moveaxis),
        ],
        "moveaxis": [Sample((cube, 2, 0), numpy=np.moveaxis)],
        "squeeze": [
            Sample((grid(1, 3, 1),), numpy=np.squeeze),
            Sample((x,), numpy=np.squeeze),
            Sample((grid(),), numpy=np.squeeze),
        ],
        "squeeze.dim": [
            Sample((grid(1, 3, 1), 0), numpy=np.squeeze),
            Sample((x, 1), numpy=lambda a, _: a),
        ],
        "squeeze.dims": [Sample((grid(1, 3, 1), (0, -1)), numpy=np.squeeze)],
        "unsqueeze": [
            Sample((x, 0), numpy=np.expand_dims),
            Sample((x, -1), numpy=np.expand_dims),
            Sample((grid(), 0), numpy=np.expand_dims),
        ],
        "expand": [
            Sample((grid(1, 3), 2, -1), numpy=lambda a, *_: np.broadcast_to(a, (2, 3))),
            Sample((grid(3, 1), (2, 3, 2)), numpy=np.broadcast_to),
            Sample((grid(), (2,)), numpy=np.broadcast_to),
            Sample((grid(1, 3), (0, 3)), numpy=np.broadcast_to),
        ],
        "expand_as": [Sample((grid(1, 3), integers(2, 3)), numpy=lambda a, b: np.broadcast_to(a, b.shape))],
        "broadcast_to": [Sample((grid(3), (2, 3)), numpy=np.broadcast_to)],
        "alias": [Sample((x,), numpy=lambda a: a)],
    }


def parts():
    x = grid(4, 3)
    return {
        "select": [
            Sample((x, 0, 1), numpy=lambda a, *_: a[1]),
            Sample((x, -1, -2), numpy=lambda a, *_: a[:, -2]),
            Sample((grid(3), 0, 2), numpy=lambda a, *_: a[2]),
        ],
        "select_backward": [Sample((grid(3), (4, 3), 0, 2))],
        "slice": [Sample((x, 0, 1, 2, 1), numpy=lambda a, *_: a[1:3]), Sample((x, 1, 0, 2, 2))],
        "slice_backward": [Sample((grid(2, 3), (5, 3), 0, 1, 2))],
        "narrow": [
            Sample((x, 0, 1, 2), numpy=lambda a, *_: a[1:3]),
            Sample((x, 1, -2, 1), numpy=lambda a, *_: a[:, 1:2]),
            Sample((x, 0, 4, 0), numpy=lambda a, *_: a[4:]),
        ],
        "diagonal": [
            Sample((x,), numpy=np.diagonal),
            Sample((x, -1), numpy=np.diagonal),
            Sample((x, 7), numpy=np.diagonal),
            Sample((grid(2, 3, 4), 1, 2, 0), numpy=np.diagonal),
        ],
        "diagonal_backward": [Sample((grid(2), (4, 3), 1, 0, 1))],
        "unbind": [
            Sample((x,), numpy=tuple),
            Sample((x, 1), numpy=lambda a, _: tuple(a.T)),
            Sample((np.zeros((0, 3)),), numpy=tuple, grad=False),
        ],
        "split": [
            Sample((grid(5), 2), numpy=lambda a, _: np.split(a, [2, 4])),
            Sample((x, 2, 1), numpy=lambda a, *_: np.split(a, [2], 1)),
            Sample((np.zeros((0, 2)), 3)),
        ],
        "split_with_sizes": [
            Sample((x, [1, 3]), numpy=lambda a, _: np.split(a, [1])),
            Sample((x, (0, 1, 2), -1), numpy=lambda a, *_: np.split(a, [0, 1], 1)),
        ],
        "chunk": [
            Sample((grid(5), 3), numpy=lambda a, _: np.split(a, [2, 4])),
            Sample((x, 2, 1), numpy=lambda a, *_: np.split(a, [2], 1)),
            Sample((grid(2), 5), numpy=lambda a, _: np.split(a, 2)),
        ],
        "tensor_split": [
            Sample((grid(5), 3), numpy=np.array_split),
            Sample((x, (1, 2)), numpy=np.array_split),
            Sample((x, (-1, 9), 1), numpy=lambda a, *_: np.split(a, [2, 9], 1)),
        ],
    }


def errors():
    x, cube = grid(2, 3), grid(2, 3, 4)
    transposed = np.array(grid(3, 2), order="C").T
    return {
        "view": [
            Sample((x, 5)),
            Sample((x, -1, 4)),
            Sample((x, -1, -1)),
            Sample((x, -2, 3)),
            Sample((x, 2.0, 3)),
            Sample((x, "a")),
            Sample((x, (2, 3.0))),
            Sample((transposed, 6)),
            Sample((np.zeros((0, 3)), -1, 0)),
        ],
        "reshape": [Sample((x, (5,))), Sample((x, (2, "a"))), Sample((x, 2.5))],
        "flatten": [Sample((x, 1, 0)), Sample((x, 0, 5)), Sample((1,))],
        "unflatten": [
            Sample((x, 0, (3, 4))),
            Sample((x, 0, ())),
            Sample((x, 5, (1,))),
            Sample((grid(), 0, (1,))),
        ],
        "transpose": [Sample((x, 0, 2)), Sample((x, 0, 1.0)), Sample((x, "a", 1))],
        "t": [Sample((cube,))],
        "permute": [Sample((x, (0,))), Sample((x, (0, 0))), Sample((x, (0, 2)))],
        "movedim": [
            Sample((x, 0, 5)),
            Sample((x, (0, 1), (0,))),
            Sample((x, (0, 0), (0, 1))),
            Sample((x, (0, 1), (1, -1))),
        ],
        "squeeze": [Sample((x, 2)), Sample((x, (0, 0))), Sample((x, 1.0))],
        "unsqueeze": [Sample((x, 3)), Sample((x, -4)), Sample((x, "a"))],
        "expand": [
            Sample((x, (3,))),
            Sample((x, (3, 3))),
            Sample((x, (-1, 2, 3))),
            Sample((x, (2, -2))),
        ],
        "expand_as": [Sample((x, grid(3, 3))), Sample((x, 1))],
        "select": [
            Sample((x, 0, 2)),
            Sample((x, 2, 0)),
            Sample((grid(), 0, 0)),
            Sample((x, 0, 1.0)),
            Sample((x, 0, True)),
        ],
        "narrow": [
            Sample((x, 0, 1, 2)),
            Sample((x, 0, -3, 1)),
            Sample((x, 0, 3, 0)),
            Sample((x, 0, 0, -1)),
            Sample((grid(), 0, 0, 1)),
            Sample((x, 0, integers(1), 1)),
        ],
        "diagonal": [Sample((grid(3),)), Sample((x, 0, 0, 0)), Sample((x, 0, 0, 3))],
        "unbind": [Sample((grid(),)), Sample((x, 2))],
        "split": [
            Sample((x, 0)),
            Sample((x, -1)),
            Sample((x, [1, 2])),
            Sample((x, [3, -1])),
            Sample((x, 2, 2)),
            Sample((grid(), 1)),
        ],
        "chunk": [Sample((x, 0)), Sample((grid(), 1)), Sample((x, "a"))],
        "tensor_split": [Sample((x, 0)), Sample((grid(), 1))],
    }
