"""Samples of scattering a tensor into a slice of another, of copies of views, and of padding."""

import numpy as np
from ops.sample import Sample, complex_grid, grid, integers


def samples():
    x, c, v, z = grid(4, 3), grid(2, 3, 4), grid(3), complex_grid(2, 2)
    boxes = {1: [grid(2, 4), grid(2, 2, 5)], 2: [grid(1, 3, 4), grid(1, 2, 3, 4)], 3: [grid(1, 2, 3, 3)]}
    counts = {1: [(1, 1), (2, 1), (-1, 1), (0, -1)], 2: [(1, 1, 1, 2), (2, 1, -1, 0)], 3: [(1, 2, 1, 1, 1, 0)]}

    def each(*calls, numpy=None):
        return [Sample(call, numpy=numpy) for call in calls]

    def complex_too(*calls, numpy=None):
        return [Sample(call, numpy=numpy, grad=False) for call in calls]  # not differentiable in PyTorch

    def strided(*calls):
        return [Sample(call, any_layout=False) for call in calls]

    def padded(mode, *dims):
        return [Sample((a, p, mode), numpy=pad) for d in dims for a in boxes[d] for p in counts[d]]

    return {
        "select_scatter": each((x, v, 0, 1), (x, grid(4), -1, -2), numpy=select_scatter)
        + complex_too((z, z[0], 1, 0), numpy=select_scatter)
        + each((x, integers(3), 0, 0), (integers(4), integers(), 0, 1)),
        "slice_scatter": each(
            (x, grid(2, 3), 0, 1, 3),
            (x, grid(4, 2), 1, None, None, 2),
            (x, x + 1),
            (x, grid(1, 3), 0, -1),
            numpy=slice_scatter,
        )
        + complex_too((z, z, 1), numpy=slice_scatter)
        + each((x, np.zeros((0, 3)), 0, 3, 1), (x, integers(2, 3), 0, 2, 99)),
        "diagonal_scatter": each((x, v), (x, grid(2), 1), (x, grid(2), -2), numpy=diagonal_scatter)
        + complex_too((z, z[0]), numpy=diagonal_scatter)
        + each((c, grid(4, 2), 0, 0, 1), (c, grid(2, 2), 1, -1, 1)),
        # PyTorch's gradient has zeros in the wrong positions
        "as_strided_scatter": [
            Sample(call, oracle_grad=False, any_layout=False)
            for call in (
                (x, grid(2, 2), (2, 2), (1, 2)),
                (x, grid(3), (3,), (4,), 1),
                (x, grid(), (), (), 5),
                (x, np.zeros((0, 2)), (0, 2), (1, 1)),
            )
        ],
        "alias_copy": each((x,), (z,), numpy=np.copy),
        "as_strided_copy": strided((x, (2, 2), (1, 2)), (x, (2, 2), (1, 1), 3), (x, (3, 2), (0, 1))),
        "detach_copy": [Sample((x,), numpy=np.copy, grad=False)],
        "diagonal_copy": each((x,), (x, 1), (c, 0, 2, 1), numpy=np.diagonal),
        "expand_copy": each((v, (2, 3)), (grid(2, 1), (3, -1, 4))),
        "narrow_copy": each((x, 0, 1, 2), (x, 1, -2, 1), (integers(3), 0, 1, 2)),
        "permute_copy": each((c, (2, 0, 1)), (x, (1, 0)), numpy=np.transpose),
        "select_copy": each((x, 0, 1), (c, -1, -2)),
        "slice_copy": each((x,), (x, 1, 1), (x, 0, -3, None, 2), (x, 1, 0, 0)),
        "split_copy": each((x, 3), (x, 2, 1)),
        "split_with_sizes_copy": each((x, (1, 3)), (x, [1, 0, 2], 1)),
        "squeeze_copy": each((grid(1, 3, 1),), (grid(1, 3, 1), 0), (grid(1, 3, 1), (0, 2))),
        "t_copy": each((x,), (v,), numpy=np.transpose),
        "transpose_copy": each((c, 0, 2), (x, 0, 1), numpy=np.swapaxes),
        "unbind_copy": each((x,), (x, 1)),
        "unfold_copy": each((x, 0, 2, 1), (x, 1, 2, 2)),
        "unsqueeze_copy": each((x, 1), (grid(), 0), numpy=np.expand_dims),
        "view_copy": each((x, (3, -1)), (x, (12,)), (x[:, :0], (0, 5)), numpy=np.reshape),
        "view_as_complex_copy": [Sample((grid(3, 2),), grad=False, any_layout=False)],
        "view_as_real_copy": each((z,)),
        "constant_pad_nd": each(
            (v, (1, 2)),
            (v, (1, 2), 7),
            (x, (1, 0, 2, 1), -0.5),
            (x, (0, 1), 2),
            (c, (1, 1, 1, 1, 1, 1)),
            (z, (1, 1)),
            numpy=constant,
        )
        + each((v, (-1, 1)), (v, (-2, -1), 3), (x, (2, -1, -3, 2), 4), (v, ()), (integers(3), (1, 1), 2.7))
        + each((np.zeros((0, 3)), (1, 1)), (np.zeros((3, 0)), (1, 1)), (grid(), ())),
        "pad": each((v, (1, 2)), (x, (1, 0, 2, 1), "constant", 3), (x, (1, 1), "reflect", 0)),
        "pad.reflect1": padded("reflect", 1) + each((integers(2, 3), (1, 1), "reflect"), (z, (1, 1), "reflect")),
        "pad.reflect2": padded("reflect", 2) + each((np.zeros((0, 1, 2, 2)), (1, 1, 1, 1), "reflect")),
        "pad.reflect3": padded("reflect", 3),
        "pad.replicate1": padded("replicate", 1) + each((v[None], (4, 5), "replicate")),
        "pad.replicate2": padded("replicate", 2) + each((grid(1, 4, 6), (-3, -3, 1, 1), "replicate")),
        "pad.replicate3": padded("replicate", 3),
        "pad.circular": padded("circular", 1, 2, 3)
        + each((v[None], (3, 3), "circular"), (v[None], (-2, -1), "circular")),
        "pad_backward": each(
            (grid(2, 6), "reflect", (1, 2), (2, 3)),
            (grid(2, 6), "replicate", (1, 2), (2, 3)),
            (grid(2, 6), "circular", (1, 2), (2, 3)),
        ),
    }


def select_scatter(a, part, dim, index):
    out = a.copy()
    np.moveaxis(out, dim, 0)[index] = part
    return out


def slice_scatter(a, part, dim=0, start=None, end=None, step=1):
    out = a.copy()
    out[(slice(None),) * dim + (slice(start, end, step),)] = part
    return out


def diagonal_scatter(a, part, offset=0):
    out = a.copy()
    rows = np.arange(len(part)) + max(-offset, 0)
    out[rows, rows + offset] = part
    return out


def constant(a, counts, value=0):
    pairs = [(0, 0)] * a.ndim
    for i in range(len(counts) // 2):
        pairs[-1 - i] = counts[2 * i : 2 * i + 2]
    return np.pad(a, pairs, constant_values=value)


def pad(a, counts, mode):
    name = {"reflect": "reflect", "replicate": "edge", "circular": "wrap"}[mode]
    pairs, cut = [(0, 0)] * a.ndim, [slice(None)] * a.ndim
    for i in range(len(counts) // 2):
        before, after = counts[2 * i : 2 * i + 2]
        pairs[-1 - i] = max(before, 0), max(after, 0)
        cut[-1 - i] = slice(max(-before, 0), min(after, 0) or None)
    return np.pad(a[tuple(cut)], pairs, name) if mode == "circular" else np.pad(a, pairs, name)[tuple(cut)]


def errors():
    x, c, v, q = grid(4, 3), grid(2, 3, 4), grid(3), grid(1, 2, 4, 6)

    def calls(*cases):
        return [Sample(case) for case in cases]

    return {
        "select_scatter": calls(
            (x, v, 0, 9), (x, grid(4), 0, 1), (x, grid(4), 7, -1), (x, [1], 0, 1), (grid(), grid(), 0, 0)
        ),
        "slice_scatter": calls((x, grid(4, 2)), (x, x, 0, 0, 9, 0), (x, x, 5), (x, grid(1, 3), 0, 1, 3)),
        "diagonal_scatter": calls((x, v, 1), (x, v, 0, 0, 0), (x, v, 0, 0, 2)),
        "as_strided_scatter": calls(
            (x, grid(2, 3), (2, 2), (1, 2), 3), (x, grid(2, 2), (2, 2), (1, 20), 3), (x, grid(2, 2), (2, 2), (0, 1))
        ),
        "select_copy": calls((x, 0, 9)),
        "view_copy": calls((x, (7,))),
        "slice_copy": calls((x, 1, 0, 2, 0), (x, 4)),
        "pad": calls(
            (v, (-2, -2)), (v, (-4, 5)), (v, (1,)), (v, (1, 1, 1, 1)), (v, (1, 1), "reflect"), (v, (1, 1), "foo"),
            (x, (3, 1), "reflect"), (x, (4, 1), "circular"), (x, (-2, -2), "replicate"), (x, (-2, -1), "reflect"),
            (x, (-2, -2), "circular"), (c, (1,) * 6, "reflect"), (q, (1, 1), "reflect"), (q, (1, 1, 4, 1), "reflect"),
            (q, (6, 1, 1, 1), "reflect"), (q, (1, 1, 5, 1), "circular"), (x, (1, 1), "reflect", 3), ([1], (1, 1)),
            (v, 1), (v, (1.5, 1)), (grid(), (1, 1)), (np.zeros((0, 3)), (1, 1), "reflect"),
            (np.zeros((2, 0, 3)), (1, 1), "replicate"), (q, (-3, -4, -3, -4), "replicate"), (v, (1, 1), "constant", 2j),
            (grid(1, 2, 2, 4, 3), (1, 1, 1, 1, 3, 1), "reflect"), (q, (-3, -4, 1, 1), "replicate"), (x, (1, 1), "foo"),
        ),
        "constant_pad_nd": calls((v, (1,)), (v, (1, 1, 1, 1)), (v, (-4, 1)), (v, "a")),
    }  # fmt: skip
