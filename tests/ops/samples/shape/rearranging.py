"""Samples of diagonals, blocks, windows, rot90, and tensors of all combinations of elements."""

import itertools

import numpy as np
from ops.sample import Sample, complex_grid, grid, integers


def samples():
    x, c, v, z = grid(4, 3), grid(2, 3, 4), grid(3), complex_grid(2, 2)

    def each(*calls, numpy=None):
        return [Sample(call, numpy=numpy) for call in calls]

    return {
        "unfold": each(
            (grid(7), 0, 3, 1),
            (grid(7), 0, 3, 2),
            (x, 0, 2, 3),
            (x, 1, 3, 1),
            (x, -1, 2, 1),
            (c, 1, 2, 1),
            numpy=windows,
        )
        + each((grid(7), 0, 5, 1), (z, 1, 2, 1), (integers(4), 0, 2, 2), (x, 1, 1, 5), numpy=windows)
        + each((grid(), 0, 1, 1), (grid(), 0, 0, 1), (x, 1, 0, 1)),
        "unfold_backward": each((grid(3, 3), (5,), 0, 3, 1), (grid(2, 3, 2), (3, 3), 0, 2, 1)),
        "diag": each((x,), (x, 1), (x, -2), (x, 9), (v,), (v, 2), (v, -1), (integers(3),), numpy=np.diag)
        + each((z,), numpy=np.diag),
        "diag_embed": each((v,), (v, 1), (v, -2), (x,), (x, 1), (z,), (integers(3),), numpy=diag_embed)
        + each((x, 0, 0, 1), (x, 1, 0, 2), (c, -1, -1, 1), (np.zeros((2, 0)),)),
        "diagflat": each((x,), (x, 2), (v, -1), (grid(),), (grid(), 1), numpy=np.diagflat),
        "block_diag": each((v, x, grid()), (x,), (v, integers(2)), (z, v), (np.zeros((0, 2)), v), numpy=block_diag)
        + each(()),
        "tril_indices": each((3, 4), (3, 4, 1), (4, 2, -1), (0, 4), (3, 3, -5), numpy=tril_indices)
        + [Sample((3, 4), {"offset": -1})],
        "triu_indices": each((3, 4), (3, 4, 1), (4, 2, -1), (3, 0), (3, 3, 5), numpy=triu_indices),
        "rot90": each((x,), (x, 2), (x, -1), (x, 0), (x, 7), (c, 1, (0, 2)), (c, 1, (-1, 0)), (z,), numpy=np.rot90),
        "hsplit": each((x, 3), (v, 3), (x, [1, 2]), (c, (1,)), numpy=np.hsplit),
        "vsplit": each((x, 2), (x, [1, 2]), numpy=np.vsplit),
        "dsplit": each((c, 2), (c, [1, 2]), numpy=np.dsplit),
        "unsafe_split": each((x, 3), (x, 2, 1), (integers(4), 2)),
        "unsafe_split_with_sizes": each((x, (1, 3)), (x, [1, 0, 2], 1)),
        "unsafe_chunk": each((x, 3), (x, 2, 1)),
        "combinations": each((v,), (v, 1), (v, 3), (integers(4), 2), numpy=combinations)
        + [Sample((v, 2, True), numpy=combinations)]
        + each((v, 0), (v, 4), (np.zeros(0),)),
        "stacked_grids": [
            Sample(([a, 2 * a],), numpy=lambda grids: np.stack(grids, -1).reshape(-1, 2)) for a in (x, z)
        ],
        "cartesian_prod": each((v, grid(2)), (v, grid(2), grid(1)), (z[0], z[1]), (v, np.zeros(0)), numpy=product)
        + each((v,)),
        "broadcast_shapes": each(((2, 1), (3,)), ((2, 1), 3), (), ((0, 1), (1, 4))),
        "unravel_index": each((np.array([5, 7]), (3, 4)), (np.array(11), (2, 3, 2)), numpy=np.unravel_index)
        + each((np.array([[5]]), 7), (np.array([5, 17, -1]), (3, 4)), (np.array([3]), ())),
    }


def windows(a, axis, size, step):
    shown = np.lib.stride_tricks.sliding_window_view(a, size, axis)
    return np.moveaxis(np.moveaxis(shown, axis, 0)[::step], 0, axis)


def diag_embed(a, offset=0):
    return np.apply_along_axis(np.diag, -1, a, offset) if a.ndim == 1 else np.stack([np.diag(row, offset) for row in a])


def block_diag(*arrays):
    blocks = [np.atleast_2d(a) for a in arrays]
    return np.block(
        [
            [b if i == j else np.zeros((b.shape[0], other.shape[1])) for j, other in enumerate(blocks)]
            for i, b in enumerate(blocks)
        ]
    )


def tril_indices(rows, columns, offset=0):
    return np.stack(np.tril_indices(rows, offset, columns))


def triu_indices(rows, columns, offset=0):
    return np.stack(np.triu_indices(rows, offset, columns))


def combinations(a, r=2, with_replacement=False):
    choose = itertools.combinations_with_replacement if with_replacement else itertools.combinations
    return np.array(list(choose(a, r)))


def product(*arrays):
    return np.array(list(itertools.product(*arrays))).reshape(-1, len(arrays))


def errors():
    x, c, v = grid(4, 3), grid(2, 3, 4), grid(3)

    def calls(*cases):
        return [Sample(case) for case in cases]

    return {
        "unfold": calls((x, 1, 4, 1), (x, 1, -1, 1), (x, 1, 2, 0), (x, 2, 1, 1), (grid(), 0, 2, 1), (x, 0, 1.5, 1)),
        "diag": calls((c,), (grid(),), (x, 0.5)),
        "diag_embed": calls((x, 0, 0, 0), (x, 0, 0, 5), (grid(),)),
        "block_diag": calls((c,), (v, [1])),
        "tril_indices": calls((-1, 4), (3, -4)),
        "triu_indices": calls((-1, 4), (3, 1.5)),
        "rot90": calls((x, 1, [0]), (x, 1, [0, 0]), (x, 1, [0, 5]), (v,), (x, 1, [0, -2])),
        "hsplit": calls((x, 2), (grid(), 1), (x, 0)),
        "vsplit": calls((x, 3), (v, 1)),
        "dsplit": calls((c, 3), (x, 1)),
        "combinations": calls((v, -1), (x,)),
        "cartesian_prod": calls((x,), (), (v, integers(3)), ([v, v],)),
        "broadcast_shapes": calls(((2, 2), (3,))),
        "unravel_index": calls((v, (3, 4)), (integers(2), (3, -4))),
    }
