"""Elementwise functions made of several NumPy calls, on large arrays: block by block.

What such a function needs beside its result is then as large as a block and not as the array, and stays in the
processor's cache.
"""

import math
from functools import partial

import numpy as np

from cygrad._kernels.cpu.base.reduce import sum as sum_of_array
from cygrad._kernels.device.cupy_library import is_array
from cygrad._kernels.gpu.base.arrays import copy_into

SIZE = 1 << 17  # elements of a block: 512 KB of single precision
FEW = 1 << 12  # elements for which a copy costs less than to ask whether it can be spared


def in_blocks(function, arrays, spare=None, size=None):
    """`function(*arrays)`, an array or a tuple of arrays of the shape to which the arrays broadcast.

    Among `arrays` may be numbers. Each element of a result depends on the elements at its place only. The last result
    takes the place of `spare`, which is one of the arrays or None, if it is of its type. Blocks have `size` elements,
    or `SIZE`.
    """
    if any(map(is_array, arrays)):
        return function(*arrays)
    plan = _planned(arrays, size)
    if plan is None:
        return function(*arrays)  # it says in its own words what is wrong
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
    """Whether blocks may be written into `target` while operands are still read: these are it, or lie elsewhere."""
    if not isinstance(target, np.ndarray) or not target.flags.c_contiguous:
        return False
    if target.dtype.kind not in "fc":  # what fails because of a value, such as a division, is of integers
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
    """`in_blocks`, of which the first block alone is computed: a `Pending` with one result."""
    return Pending(function, *_planned(arrays))


def result_for(target, function, *arrays):
    """`function(*arrays)`, of which large blocks are left for `write` if `target`, an array or None, can take them."""
    if target is None or target.size <= SIZE or not can_write(arrays, target):
        return function(*arrays)
    return pending(function, arrays)


def result_into(target, function, *arrays):
    """`function(*arrays, out=target)`, left for `write`; None if it is better computed elsewhere, or must be.

    The function puts its result, of the type of the arrays, into `out`: one of them, or an array that lies elsewhere.
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
    """A result of which the first block is computed, and the others when it is written."""

    def __init__(self, function, shape, parts, flat_shape, blocks):
        self.shape, self._flat_shape, self._blocks = shape, flat_shape, blocks
        self._compute = lambda block: function(*(_part(a, block, flat_shape) for a in parts))
        self._first = self._compute(blocks[0])
        self.dtype = self._first.dtype

    def write(self, target):
        """Into an array of the shape, which may be an operand."""
        out = target.reshape(self._flat_shape)
        np.copyto(out[self._blocks[0]], self._first, casting="unsafe")
        for block in self._blocks[1:]:
            np.copyto(out[block], self._compute(block), casting="unsafe")


class InPlace:
    """A result for which an array of its shape and type is changed when it is written: `change(array)`."""

    def __init__(self, array, change):
        self.shape, self.dtype, self.write = array.shape, array.dtype, change


def write(result, target):
    """Into an array; the result is an array, a `Pending`, or an `InPlace` for the array."""
    if isinstance(result, (Pending, InPlace)):
        result.write(target)
    else:
        copy_into(target, result)


def sum_in_blocks(function, arrays):
    """The sum of all elements of `function(*arrays)`, of its type, and their number."""
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
    """(shape of the result, operands, shape as the blocks see it, blocks); None if the operands do not broadcast."""
    shape = _joined(arrays)
    if shape is None:
        return None
    if all(_is_one_run(a, shape) for a in arrays):
        flat_shape = (math.prod(shape),)
        return shape, [_flat(a) for a in arrays], flat_shape, _blocks(flat_shape, 0, size or SIZE)
    size = size or SIZE
    return shape, arrays, shape, _blocks(shape, axis_to_cut(shape, math.prod(shape) // size), size)


def axis_to_cut(shape, count):
    """The first axis long enough for so many parts, which then lie in one piece in most arrays; or the longest."""
    return next((axis for axis, length in enumerate(shape) if length > 4 * count), int(np.argmax(shape)))


def _joined(arrays):
    """The shape to which the arrays broadcast, or None."""
    shapes = {a.shape for a in arrays if isinstance(a, np.ndarray)}
    try:
        return np.broadcast_shapes(*shapes) if len(shapes) > 1 else shapes.pop()
    except ValueError:
        return None


def _is_one_run(a, shape):
    """Whether the elements lie one after another in memory, or there is but one."""
    return not isinstance(a, np.ndarray) or a.size == 1 or (a.shape == shape and a.flags.c_contiguous)


def _flat(a):
    return a.reshape(() if a.size == 1 else -1) if isinstance(a, np.ndarray) else a


def _like(pattern, shape, dtype):
    """An array for results, with its dimensions in the order in which `pattern` has them in memory."""
    return np.empty(shape, dtype) if pattern is None else np.empty_like(pattern, dtype)


def _blocks(shape, axis, size):
    length = shape[axis]
    count = min(-(-math.prod(shape) // size), length)
    step = -(-length // count)
    before = (slice(None),) * axis
    return [(*before, slice(start, start + step)) for start in range(0, length, step)]


def _part(a, block, shape):
    """What lies in a block of an array that broadcasts to `shape`."""
    if not isinstance(a, np.ndarray):
        return a
    axis = len(block) - 1 - (len(shape) - a.ndim)
    if axis < 0 or a.shape[axis] == 1:
        return a
    return a[(slice(None),) * axis + (block[-1],)]
