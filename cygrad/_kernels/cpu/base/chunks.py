"""Chunked evaluation of elementwise functions that make several NumPy calls, for large arrays.

The scratch memory of such a function is then the size of a chunk (named "block" here) instead of the array, and stays
in the processor's cache.
"""

import math
from collections.abc import Sequence
from functools import partial

import numpy as np

from cygrad._kernels.cpu.base.reduce import sum as sum_of_array
from cygrad._kernels.device.cupy_library import is_array
from cygrad._kernels.device.unresolved import is_deferred, resolved
from cygrad._library import later

basics = later("cygrad._kernels.gpu.base.arrays")  # needed only for GPU arrays

SIZE = 1 << 17  # elements per chunk: 512 KB in single precision
FEW = 1 << 12  # elements; for fewer, a copy costs less than checking whether it can be avoided


def in_blocks(function, arrays, spare=None, size=None):
    """Compute `function(*arrays)`, an array or a tuple of arrays of the broadcast shape of the arrays, chunk by chunk.

    `arrays` may contain scalars. Each element of a result must depend only on the elements at the same position. The
    last result is written to `spare`, one of the arrays or None, if it has the same type. Chunks have `size` elements,
    or `SIZE`.
    """
    if any(map(is_array, arrays)):
        return function(*arrays)
    plan = _planned(arrays, size)
    if plan is None:
        return function(*arrays)  # which raises the appropriate error
    shape, parts, flat_shape, blocks = plan
    pattern = next((a for a in arrays if isinstance(a, np.ndarray) and a.shape == shape), None)
    outs: list[np.ndarray] = []
    for block in blocks:
        found = function(*(_part(a, block, flat_shape) for a in parts))
        results = found if isinstance(found, tuple) else (found,)
        if not outs:
            outs = [_like(pattern, shape, result.dtype) for result in results[:-1]]
            fits = spare is not None and spare.dtype == results[-1].dtype
            outs.append(spare if fits else _like(pattern, shape, results[-1].dtype))
        for out, result in zip(outs, results):
            place = out.reshape(flat_shape)[block]
            if not _is_same(place, result):
                place[...] = result
    return tuple(outs) if isinstance(found, tuple) else outs[0]


def can_write(arrays, target):
    """Whether chunks may be written to `target` while operands are still being read: none partially overlaps it."""
    if not isinstance(target, np.ndarray) or not target.flags.c_contiguous:
        return False
    if target.dtype.kind not in "fc":  # integer operations may raise halfway (e.g. division)
        return False
    shape, are_alike = target.shape, True
    for a in arrays:
        if a is not target and isinstance(a, np.ndarray):
            are_alike = are_alike and a.shape == shape
            if not _is_apart(a, target):
                return False
    return are_alike or _joined(arrays) == shape


def _is_apart(a, target):
    return a is target or not np.may_share_memory(a, target) or _is_same(a, target)


def _is_same(a, b):
    return a.ctypes.data == b.ctypes.data and a.shape == b.shape and a.strides == b.strides


def pending(function, arrays):
    """`in_blocks` with only the first chunk computed: a `Pending` with one result."""
    return Pending(function, *_planned(arrays))


def result_for(target, function, *arrays):
    """Compute `function(*arrays)`, as a `Pending` if the result is large and `target` (may be None) can take it."""
    if target is None or target.size <= SIZE or not can_write(arrays, target):
        return function(*arrays)
    return pending(function, arrays)


def result_into(target, function, *arrays):
    """Defer `function(*arrays, out=target)` to `write`; None if the result should, or must, be computed separately.

    The function writes its result, of the type of the arrays, to `out`: one of them, or an array that overlaps none.
    """
    if target is None or target.size <= FEW or not can_write(arrays, target) or target.itemsize <= 2:
        return None
    for a in arrays:
        if a is not target and isinstance(a, np.ndarray) and a.dtype != target.dtype:
            return None
    return InPlace(target, partial(_put, function, arrays))


def _put(function, arrays, out):
    found = function(*arrays, out=out)
    if found is not out:
        np.copyto(out, found)


class Pending:
    """A result whose first chunk is already computed; the others are computed when it is written."""

    def __init__(self, function, shape, parts, flat_shape, blocks):
        self.shape, self._flat_shape, self._blocks = shape, flat_shape, blocks
        self._compute = lambda block: function(*(_part(a, block, flat_shape) for a in parts))
        self._first = self._compute(blocks[0])
        self.dtype = self._first.dtype

    def write(self, target):
        """Write to an array of the result's shape, which may be an operand."""
        out = target.reshape(self._flat_shape)
        np.copyto(out[self._blocks[0]], self._first, casting="unsafe")
        for block in self._blocks[1:]:
            np.copyto(out[block], self._compute(block), casting="unsafe")


class InPlace:
    """A result that is computed when it is written, by modifying an array in place: `change(array)`."""

    def __init__(self, array, change):
        self.shape, self.dtype, self.write = array.shape, array.dtype, change


def write(result, target):
    """Write a result to an array; the result is an array, a `Pending`, or an `InPlace` for that array."""
    if is_deferred(target):
        elements = resolved(target)
        write(result, elements)
        target[...] = elements
    elif isinstance(result, (Pending, InPlace)):
        result.write(target)
    elif is_array(target) or is_array(result):
        basics.copy_into(target, result)
    else:
        np.copyto(target, result, casting="unsafe")


def sum_in_blocks(function, arrays):
    """Return the sum of all elements of `function(*arrays)`, in its type, and their number."""
    if any(map(is_array, arrays)):
        whole = function(*arrays)
        return sum_of_array(whole), whole.size
    plan = _planned(arrays)
    if plan is None:
        return function(*arrays)
    shape, parts, flat_shape, blocks = plan
    sums = [sum_of_array(function(*(_part(a, block, flat_shape) for a in parts))) for block in blocks]
    return sum_of_array(np.stack(sums)), math.prod(shape)


def _planned(arrays, size=None):
    """(shape of the result, operands, shape that the chunks index, chunks); None if the operands do not broadcast."""
    shape = _joined(arrays)
    if shape is None:
        return None
    if all(_is_one_run(a, shape) for a in arrays):
        flat_shape = (math.prod(shape),)
        return shape, [_flat(a) for a in arrays], flat_shape, _blocks(flat_shape, 0, size or SIZE)
    size = size or SIZE
    return shape, arrays, shape, _blocks(shape, axis_to_cut(shape, math.prod(shape) // size), size)


def axis_to_cut(shape, count):
    """The first axis long enough for `count` chunks, which are then mostly contiguous; else the longest axis."""
    return next((axis for axis, length in enumerate(shape) if length > 4 * count), int(np.argmax(shape)))


def _joined(arrays):
    """The shape to which the arrays broadcast, or None."""
    shapes = {a.shape for a in arrays if isinstance(a, np.ndarray)}
    try:
        return np.broadcast_shapes(*shapes) if len(shapes) > 1 else shapes.pop()
    except ValueError:
        return None


def _is_one_run(a, shape):
    """Whether the array is contiguous and of that shape, or has only one element."""
    return not isinstance(a, np.ndarray) or a.size == 1 or (a.shape == shape and a.flags.c_contiguous)


def _flat(a):
    return a.reshape(() if a.size == 1 else -1) if isinstance(a, np.ndarray) else a


def _like(pattern, shape, dtype):
    """An uninitialized array for results, in the memory order of `pattern`."""
    return np.empty(shape, dtype) if pattern is None else np.empty_like(pattern, dtype)


def _blocks(shape, axis, size):
    length = shape[axis]
    count = min(-(-math.prod(shape) // size), length)
    step = -(-length // count)
    return _Blocks((slice(None),) * axis, range(0, length, step))


class _Blocks(Sequence):
    """The chunks as indices. They are made one by one: there may be more of them than fit into memory."""

    def __init__(self, before, starts):
        self._before, self._starts = before, starts

    def __len__(self):
        return len(self._starts)

    def __getitem__(self, i):
        if isinstance(i, slice):
            return _Blocks(self._before, self._starts[i])
        start = self._starts[i]
        return *self._before, slice(start, start + self._starts.step)


def _part(a, block, shape):
    """The chunk `block` of an array that broadcasts to `shape`."""
    if not isinstance(a, np.ndarray):
        return a
    axis = len(block) - 1 - (len(shape) - a.ndim)
    if axis < 0 or a.shape[axis] == 1:
        return a
    return a[(slice(None),) * axis + (block[-1],)]
