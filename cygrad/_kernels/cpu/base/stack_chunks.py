"""Chunked evaluation of functions of batches of matrices, or along one axis, for large arrays.

The scratch memory of such a function, such as LAPACK's copies, is then only as large as a chunk.
"""

from functools import wraps

import numpy as np

from cygrad._kernels.cpu.base import chunks
from cygrad._kernels.cpu.base.arrays import new_array
from cygrad._kernels.cpu.base.elementary import MULTIPLY
from cygrad._kernels.cpu.base.reduce import sum as sum_of_array
from cygrad._kernels.tape.calls import noted


def over_stacks(*dims):
    """Decorator for batched functions: argument i has `dims[i]` core dimensions after its batch dimensions.

    Batch dimensions broadcast; results have them first. A number or None may replace an array.
    """

    last = max(i for i, own in enumerate(dims) if own)  # the largest is the first or this one

    def decorated(function):
        @wraps(function)
        def by_parts(*args):
            if isinstance(args[0], np.ndarray) and max(args[0].size, args[last].size) > chunks.SIZE:
                return _over_stacks(function, dims, args)
            return function(*args)

        return by_parts

    return decorated


def _over_stacks(function, dims, args):
    arrays = [(a, own) for a, own in zip(args, dims) if isinstance(a, np.ndarray)]
    stack = np.broadcast_shapes(*(a.shape[: a.ndim - own] for a, own in arrays))
    if max(stack, default=1) <= 1:
        return function(*args)
    size = max(a.size for a, _ in arrays)
    axis = chunks.axis_to_cut(stack, size // chunks.SIZE)

    def compute(part):
        parts = (cut(a, part, a.ndim - own - len(stack) + axis) for a, own in arrays)
        return function(
            *(next(parts) if isinstance(a, np.ndarray) else a for a in args[: len(dims)]), *args[len(dims) :]
        )

    return _in_parts(compute, stack[axis], axis, size)


def along(function):
    """Decorator for functions of an array and the axis or axes they work along; results keep the number of dimensions.

    Positions along the other axes must be independent of each other.
    """

    @wraps(function)
    def by_parts(a, axes, *args):
        if a.size <= chunks.SIZE or not isinstance(a, np.ndarray):
            return function(a, axes, *args)
        lengths = np.array(a.shape)
        lengths[np.asarray(axes, int)] = 1
        if lengths.max() == 1:
            return function(a, axes, *args)
        whole = [slice(None)] * a.ndim

        def shape_of(result):
            return tuple(n if m == 1 else m for n, m in zip(result.shape, lengths.tolist()))

        return _joined(
            ((index, function(a[index], axes, *args)) for index in parts_of(whole, lengths, a.size)), shape_of
        )

    return by_parts


def parts_of(index, lengths, size):
    """Yield indices of chunks of an array of that size, split along dimensions whose entry in `lengths` is above 1."""
    across = int(lengths.argmax())
    length = int(lengths[across])
    if size <= chunks.SIZE or length == 1:
        yield tuple(index)
        return
    step = -(-length // min(-(-size // chunks.SIZE), length))
    first = index[across].start or 0
    for start in range(0, length, step):
        stop = min(start + step, length)
        rest = lengths.copy()
        rest[across] = stop - start
        part = [*index[:across], slice(first + start, first + stop), *index[across + 1 :]]
        yield from parts_of(part, rest, size // length * (stop - start))


def _joined(parts, shape_of):
    """Join the results of chunks, (index, array or tuple of arrays), in arrays of the shape for the whole."""
    outs: list[np.ndarray] = []
    is_tuple = False
    for index, found in parts:
        is_tuple = isinstance(found, tuple)
        results = found if is_tuple else (found,)
        if not outs:
            outs = [_in_order_of(r, shape_of(r)) for r in results]
        for out, result in zip(outs, results):
            out[index] = result
        del found, results, result  # free them before the next ones are allocated
    return tuple(outs) if is_tuple else outs[0]


def _in_order_of(array, shape):
    """An uninitialized array of `shape` in the array's memory order, but with the array's dimensions of length 1
    outermost, since these may be longer in `shape`.

    `np.empty_like` would treat a column-major matrix in a batch of one as Fortran-ordered, and make the batch
    innermost.
    """
    order = sorted(range(array.ndim), key=lambda d: (array.shape[d] != 1, -array.strides[d]))
    return np.empty([shape[d] for d in order], array.dtype).transpose(np.argsort(order))


def reducing(function):
    """`along` for functions of (array, axis, keepdims) that copy an array unless its axis is the last in memory."""
    in_parts = along(function)

    @wraps(function)
    def by_parts(a, axis=None, keepdims=False):
        is_copied = isinstance(a, np.ndarray) and axis is not None and a.ndim > 1 and a.strides[axis] != a.itemsize
        if not is_copied or a.size <= chunks.SIZE:
            return function(a, axis, keepdims)
        found = in_parts(a, axis, True)
        if keepdims:
            return found
        return tuple(one.squeeze(axis) for one in found) if isinstance(found, tuple) else found.squeeze(axis)

    return by_parts


def reduced(function, a, axes, keepdim, join=None):
    """`function(a, axes, keepdim)`, a reduction, computed in chunks for large arrays.

    With `join`, chunks may split reduced axes, and `join(results, axes, True)` combines their results; without it, they
    do not.
    """
    if not isinstance(a, np.ndarray) or a.size <= chunks.SIZE:
        return function(a, axes, keepdim)
    axes = tuple(range(a.ndim)) if axes is None else axes
    found = _reduced(function, a, axes, join)
    return found if keepdim else np.asarray(found.squeeze(axes))


def is_of_rows(a, axes):
    """Whether each result reduces contiguous elements."""
    return a.flags.c_contiguous and (axes is None or axes == tuple(range(a.ndim - len(axes), a.ndim)))


def _reduced(function, a, axes, join):
    lengths = [1 if join is None and axis in axes else length for axis, length in enumerate(a.shape)]
    axis = int(np.argmax(lengths))
    if a.size <= chunks.SIZE or lengths[axis] == 1:
        return function(a, axes, True)
    step = max(1, lengths[axis] * chunks.SIZE // a.size)
    parts = (slice(start, start + step) for start in range(0, lengths[axis], step))
    found = np.concatenate([_reduced(function, cut(a, part, axis), axes, join) for part in parts], axis)
    return join(found, (axis,), True) if axis in axes else found


@noted
def sum_of_products(a, b, axes):
    """The sum of a * b over axes (None: all), which are kept. The product is computed in chunks."""
    axes = tuple(range(a.ndim)) if axes is None else axes
    if not isinstance(a, np.ndarray):
        return sum_of_array(a * b, axes, True)
    if a.size <= 4 * chunks.SIZE:
        return sum_of_array(MULTIPLY(a, b), axes, True)
    across = chunks.axis_to_cut(a.shape, a.size // chunks.SIZE)
    step = max(1, a.shape[across] * chunks.SIZE // a.size)
    sums, products = [], new_array((0,), a.dtype.num)
    for start in range(0, a.shape[across], step):
        x, y = (cut(array, slice(start, start + step), across) for array in (a, b))
        if products.shape != x.shape:
            products = new_array(x.shape, a.dtype.num)
        sums.append(sum_of_array(MULTIPLY(x, y, out=products), axes, True))
    found = np.concatenate(sums, across)
    return sum_of_array(found, (across,), True) if across in axes else found


def cut(a, part, axis):
    """Slice an array along an axis, unless it lacks that axis or broadcasts along it."""
    return a if axis < 0 or a.shape[axis] == 1 else a[(slice(None),) * axis + (part,)]


def _in_parts(compute, length, axis, size):
    """Apply `compute` to slices of that length, and join the results along `axis`."""
    step = -(-length // min(-(-size // chunks.SIZE), length))
    before = (slice(None),) * axis
    parts = (slice(start, start + step) for start in range(0, length, step))
    found = (((*before, part), compute(part)) for part in parts)
    return _joined(found, lambda r: (*r.shape[:axis], length, *r.shape[axis + 1 :]))
