"""Diagonals and triangles of matrices along two axes of an array."""

from functools import lru_cache

import numpy as np

import cygrad._kernels.cpu.base.loop_table as loop_table
from cygrad._kernels.cpu.base.arrays import dense as dense_in_memory
from cygrad._kernels.cpu.base.arrays import new_array
from cygrad._kernels.cpu.base.loop_table import LOOPS
from cygrad._kernels.cpu.base.view_geometry import restride
from cygrad._kernels.device.cupy_library import dense
from cygrad._kernels.platform.thresholds import PIECE

TRIANGLE, TRIANGLE_PLACES = LOOPS.TRIANGLE, LOOPS.TRIANGLE_PLACES
_INT64 = np.dtype(np.int64).num


def diagonal(array, offset, axis1, axis2):
    """A view whose last axis is the diagonal `offset` above the main one."""
    return restride(array, *layout(array.shape, array.strides, offset, axis1, axis2))


@lru_cache(256)
def layout(shape, strides, offset, axis1, axis2):
    """Return (shape, strides, byte offset) of the diagonals."""
    shape, strides = list(shape), list(strides)
    rows, columns, down, right = shape[axis1], shape[axis2], strides[axis1], strides[axis2]
    length = min(rows, columns - offset) if offset >= 0 else min(rows + offset, columns)
    start = offset * right if offset >= 0 else -offset * down
    for axis in (axis1, axis2) if axis1 > axis2 else (axis2, axis1):
        del shape[axis], strides[axis]
    shape.append(max(length, 0))
    strides.append(down + right)
    return tuple(shape), tuple(strides), start if length > 0 else 0


def on_diagonal(values, shape, offset, axis1, axis2):
    """Zeros of `shape` with the given values on the diagonals."""
    array = np.zeros(tuple(shape), values.dtype, like=values)
    np.copyto(diagonal(array, offset, axis1, axis2), values)
    return array


def embed(values, offset, axis1, axis2):
    """Zeros with the last axis of `values` on a diagonal of two new axes."""
    length = values.shape[-1] + abs(offset)
    shape = list(values.shape[:-1])
    for axis in sorted((axis1, axis2)):
        shape.insert(axis, length)
    return on_diagonal(values, shape, offset, axis1, axis2)


def block_diag(arrays, dtype):
    """Block-diagonal matrix of arrays with up to two axes."""
    blocks = [np.atleast_2d(array) for array in arrays]
    out = np.zeros(tuple(map(sum, zip(*(block.shape for block in blocks)))), dtype, like=blocks[0])
    row = column = 0
    for block in blocks:
        height, width = block.shape
        out[row : row + height, column : column + width] = block
        row, column = row + height, column + width
    return out


def tril(array, offset):
    """Zero the elements above a diagonal of the last two axes."""
    found = _triangle(array, offset, False)
    return dense(np.tril(array, offset)) if found is None else found


def triu(array, offset):
    """Zero the elements below a diagonal of the last two axes."""
    found = _triangle(array, offset, True)
    return dense(np.triu(array, offset)) if found is None else found


def _triangle(array, offset, is_upper):
    """Compute `tril` or `triu` by a compiled loop; None if there is none for the type."""
    if type(array) is not np.ndarray or array.ndim < 2 or not loop_table.can_move(array):
        return None
    rows, columns = array.shape[-2:]
    out = new_array(array.shape, array.dtype.num)
    if not -rows <= offset <= columns:
        offset = columns if offset > 0 else -rows
    numbers, items = (rows, columns, offset, is_upper), out.size // max(columns, 1)
    loop_table.run(TRIANGLE, (dense_in_memory(array), out), numbers, 0, items, 1 + PIECE // max(columns, 1))
    return out


def tril_within(array, offset):
    """`tril` in place."""
    np.copyto(array, False, where=~np.tri(array.shape[-2], array.shape[-1], offset, np.bool_, like=array))


def triu_within(array, offset):
    """`triu` in place."""
    np.copyto(array, False, where=np.tri(array.shape[-2], array.shape[-1], offset - 1, np.bool_, like=array))


def tril_indices(rows, columns, offset):
    """Indices of the elements that `tril` keeps, as two rows."""
    return _places(rows, columns, offset, False)


def triu_indices(rows, columns, offset):
    """Indices of the elements that `triu` keeps, as two rows."""
    return _places(rows, columns, offset - 1, True)


def _places(rows, columns, offset, is_upper):
    """Indices where `np.tri` is 1; with `is_upper`, where it is 0."""
    offset = min(max(offset, -rows), columns)
    count = _below(rows, columns, offset)
    out = new_array((2, rows * columns - count if is_upper else count), _INT64)
    if loop_table.can_move(out):
        numbers = rows, columns, offset + is_upper, is_upper, out.shape[1]
        loop_table.run(TRIANGLE_PLACES, (out,), numbers, 0, 1, 1)
    else:
        first = 0 if is_upper else max(-offset, 0)  # skip rows and columns that have none
        last = min(rows, max(columns - offset - 1, 0)) if is_upper else rows
        width = columns if is_upper else min(columns, rows + offset)
        out[...] = np.nonzero(np.tri(last - first, width, offset + first, np.bool_) != is_upper)
        out[0] += first
    return out


@lru_cache(256)
def _below(rows, columns, offset):
    """Count the ones in `np.tri`: each row has one more than the previous, from none up to all columns."""
    first = max(offset + 1, 0)  # in the first nonempty row
    left = max(rows - max(-offset - 1, 0), 0)
    growing = min(left, max(columns - first, 0))
    return growing * first + growing * (growing - 1) // 2 + (left - growing) * columns
