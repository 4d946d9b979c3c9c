"""Samples of products of groups of matrices."""

import numpy as np
from ops.sample import Sample, grid


def product(a, b, offs=None):
    """The products one by one; `offs` are the ends of the groups, and what is behind the last is 0."""
    if offs is None:
        return a @ b
    spans = list(zip([0, *offs[:-1]], offs))
    if a.ndim == b.ndim:
        return np.stack([a[:, first:end] @ b[first:end] for first, end in spans])
    if a.ndim == 2:
        found = np.zeros((a.shape[0], b.shape[-1]), a.dtype)
        for matrix, (first, end) in zip(b, spans):
            found[first:end] = a[first:end] @ matrix
        return found
    found = np.zeros((a.shape[1], b.shape[-1]), a.dtype)
    for matrix, (first, end) in zip(a, spans):
        found[:, first:end] = matrix @ b[:, first:end]
    return found


def samples():
    def single(*shape):
        return grid(*shape).astype(np.float32)

    rows, columns, whole = (np.array(ends, np.int32) for ends in ([2, 6], [3, 8], [1, 4, 8]))
    calls = [
        (single(2, 3, 4), single(2, 4, 8)),
        (single(6, 4), single(2, 4, 8), rows),
        (single(2, 3, 4), single(4, 8), columns),
        (single(3, 8), single(8, 4), whole),
        (single(4, 4), single(2, 4, 4), np.array([0, 4], np.int32)),
    ]  # PyTorch wants float32 or less, which is too coarse for finite differences, and rows of a multiple of 16 bytes;
    # what lies behind the last group is random there
    return {
        "_grouped_mm": [Sample(call, numpy=product, smooth=False, any_layout=False) for call in calls],
        "_grouped_mm.ends": [Sample((*calls[1],), numpy=product, smooth=False, any_layout=False)],
    }
