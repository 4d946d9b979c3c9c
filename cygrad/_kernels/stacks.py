"""Functions of stacks of matrices, or along one dimension, on large arrays: for one part of the stack after the other.

What such a function needs beside its results, such as LAPACK's copies, is then as large as a part.
"""

from functools import wraps

import numpy as np

from cygrad._kernels import blocks


def over_stacks(*dims):
    """A decorator of functions of arrays, of which argument i has `dims[i]` dimensions of its own, behind its stack.

    Stacks broadcast; results have their dimensions first. A number or None may stand for an array.
    """

    last = max(i for i, own in enumerate(dims) if own)  # the first and this one may be the largest

    def decorated(function):
        @wraps(function)
        def by_parts(*args):
            if isinstance(args[0], np.ndarray) and max(args[0].size, args[last].size) > blocks.SIZE:
                return _over_stacks(function, dims, args)
            return function(*args)

        return by_parts

    return decorated


def _over_stacks(function, dims, args):
    arrays = [(a, own) for a, own in zip(args, dims) if isinstance(a, np.ndarray)]
    stack = np.broadcast_shapes(*(a.shape[: a.ndim - own] for a, own in arrays))
    if max(stack, default=1) <= 1:
        return function(*args)
    axis = int(np.argmax(stack))
    size = max(a.size for a, _ in arrays)

    def compute(part):
        parts = (cut(a, part, a.ndim - own - len(stack) + axis) for a, own in arrays)
        return function(
            *(next(parts) if isinstance(a, np.ndarray) else a for a in args[: len(dims)]), *args[len(dims) :]
        )

    return _in_parts(compute, stack[axis], axis, size)


def along(function):
    """A decorator of functions of an array and the axis or axes along which they work; results have as many dimensions.

    What the other axes stand for does not depend on each other.
    """

    @wraps(function)
    def by_parts(a, axes, *args):
        if a.size <= blocks.SIZE or not isinstance(a, np.ndarray):
            return function(a, axes, *args)
        others = np.array(a.shape)
        others[np.asarray(axes, int)] = 1
        across = int(others.argmax())
        if others[across] == 1:
            return function(a, axes, *args)
        return _in_parts(lambda part: by_parts(cut(a, part, across), axes, *args), a.shape[across], across, a.size)

    return by_parts


def reducing(function):
    """The same for functions of (array, axis, keepdims), which copy an array if its axis is not the last in memory."""
    in_parts = along(function)

    @wraps(function)
    def by_parts(a, axis=None, keepdims=False):
        is_copied = isinstance(a, np.ndarray) and axis is not None and a.ndim > 1 and a.strides[axis] != a.itemsize
        if not is_copied or a.size <= blocks.SIZE:
            return function(a, axis, keepdims)
        found = in_parts(a, axis, True)
        if keepdims:
            return found
        return tuple(one.squeeze(axis) for one in found) if isinstance(found, tuple) else found.squeeze(axis)

    return by_parts


def cut(a, part, axis):
    """A part of an array along a dimension, if it has that and does not broadcast along it."""
    return a if axis < 0 or a.shape[axis] == 1 else a[(slice(None),) * axis + (part,)]


def _in_parts(compute, length, axis, size):
    """What `compute` gives for slices of that length, joined along a dimension of the results."""
    step = -(-length // min(-(-size // blocks.SIZE), length))
    outs: list[np.ndarray] = []
    for start in range(0, length, step):
        part = slice(start, start + step)
        found = compute(part)
        results = found if isinstance(found, tuple) else (found,)
        if not outs:
            outs = [np.empty_like(r, shape=(*r.shape[:axis], length, *r.shape[axis + 1 :])) for r in results]
        for out, result in zip(outs, results):
            out[(slice(None),) * axis + (part,)] = result
    return tuple(outs) if isinstance(found, tuple) else outs[0]
