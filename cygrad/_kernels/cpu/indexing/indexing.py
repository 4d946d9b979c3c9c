"""Indexing: gather, take, masked select and their counterparts that write.

Negative indices work where NumPy allows them.
"""

import math

import numpy as np

import cygrad._kernels.cpu.base.loop_table as loop_table
from cygrad._kernels.cpu.base import chunks
from cygrad._kernels.cpu.base.arrays import dense, new_array, private
from cygrad._kernels.cpu.base.chunks import FEW, SIZE
from cygrad._kernels.cpu.base.copying import copy_into
from cygrad._kernels.cpu.base.elementwise import where
from cygrad._kernels.cpu.base.half_sums import in_float32, is_half, within_float32
from cygrad._kernels.cpu.base.loop_table import LOOPS
from cygrad._kernels.cpu.indexing.add_rows import joined, selected
from cygrad._kernels.cpu.indexing.scatter import as_vector, index_add_to
from cygrad._kernels.device.cupy_library import as_array
from cygrad._kernels.device.dispatch import dispatching
from cygrad._kernels.tape.calls import noted

GATHER, TAKE, COMPRESS = LOOPS.GATHER, LOOPS.TAKE, LOOPS.COMPRESS
_FEW = 1 << 14  # elements; NumPy takes fewer before our loop would have begun
PIECE = 1 << 13  # elements per chunk
_INT64 = np.dtype(np.int64)


def index(array, indices):
    """Fancy indexing; `indices` holds arrays of integers or booleans, and None for dimensions taken whole."""
    given = [i for i, index in enumerate(indices) if index is not None] if len(indices) > 1 else (0,)
    if len(given) == 1 and indices[given[0]].dtype.kind != "b":
        return _take(array, indices[given[0]], given[0])
    if len(indices) == 1 and indices[0].shape == array.shape:
        return masked_select(array, indices[0])
    rows = _rows(array, indices)
    if rows is not None:
        return as_array(rows[0].take(rows[1], 0))
    return np.asarray(array[fancy(indices)], order="C")


def _rows(array, indices):
    """Return (the array with its first axes joined, where the indices select along them), if these are simple."""
    if type(array) is not np.ndarray or not array.flags.c_contiguous or not array.size:
        return None
    places = joined(indices, array.shape)
    if places is None:
        return None
    return array.reshape(-1, *array.shape[len(indices) :]), places


def fancy(indices):
    """Convert the index to NumPy's form, with private copies of the arrays."""
    return tuple(slice(None) if index is None else private(index) for index in indices)


def index_put(array, indices, values, accumulate=False):
    """Write to the elements of `array` that `index` would read; or accumulate there, including repeated ones."""
    rows = None if accumulate or len(indices) == 1 else _rows(array, indices)
    if rows is not None:
        rows[0][rows[1]] = values
        return array
    where = (private(indices[0]),) if len(indices) == 1 else fancy(indices)
    if accumulate and _adds_rows(array, where):
        index = np.where(where[0] < 0, where[0] + len(array), where[0])
        values = np.broadcast_to(values, index.shape + array.shape[1:])
        index_add_to(array, index.reshape(-1), values.reshape(index.size, *array.shape[1:]))
    elif accumulate and is_half(array):
        within_float32(index_put, array, indices, values, True)
    elif accumulate:
        with np.errstate(all="ignore"):
            np.add.at(array, where, values.astype(array.dtype, copy=False))
    else:
        array[where] = values
    return array


def _adds_rows(array, indices):
    """Whether a single index into the first dimension selects valid rows of a dense array."""
    if type(array) is not np.ndarray or len(indices) != 1 or not array.flags.carray or not indices[0].size:
        return False
    index = indices[0]
    return (
        index.dtype.kind == "i" and array.dtype.kind in "fc" and -len(array) <= index.min() <= index.max() < len(array)
    )


def index_select(array, axis, index):
    """Select the slices `index` along an axis."""
    if array.ndim == 0:
        return array.copy()
    return _take(array, index, axis)


def _take(array, index, axis):
    """`np.take`; for many elements by a loop that threads share."""
    if type(array) is np.ndarray and index.ndim and index.size * array.size <= _FEW * array.shape[axis]:
        return array.take(index, axis)
    shape = array.shape[:axis] + index.shape + array.shape[axis + 1 :]
    if type(array) is np.ndarray and loop_table.can_move(array):
        out = new_array(shape, array.dtype.num)
        inner = math.prod(shape[axis + index.ndim :])
        index = index.astype(np.int64, copy=False)
        arrays, numbers = (dense(array), dense(index), out), (array.shape[axis], index.size, inner * array.itemsize)
        if not loop_table.run(TAKE, arrays, numbers, 0, out.size // inner, max(1, PIECE // inner)):
            return out
    return as_array(np.take(array, index, axis))  # which raises the appropriate error


def gather(array, axis, index):
    """Gather elements along an axis: each position of the result reads its own position, but `index` along the axis."""
    if array.ndim == 0 or index.size == 0:
        return np.full(index.shape, array if array.ndim == 0 else 0, array.dtype)
    if index.ndim == 0:
        return as_array(array[private(index)])
    found = gather_by_loop(array, axis, index)
    if found is not None:
        return found
    index = private(index)
    others = np.indices(index.shape, sparse=True)
    return array[tuple(index if d == axis else own for d, own in enumerate(others))]


@noted
def gather_by_loop(array, axis, index):
    """`gather` by a loop; None for negative indices, or if the shapes differ along other axes.

    The index need not have been checked.
    """
    if not (type(array) is type(index) is np.ndarray and index.ndim == array.ndim > 0 and loop_table.can_move(array)):
        return None
    vector = as_vector(index, axis, array.shape)
    if vector is not None:
        return None if vector.min() < 0 or vector.max() >= array.shape[axis] else _take(array, vector, axis)
    shape = index.shape
    if not array.flags.c_contiguous and (*shape[:axis], array.shape[axis], *shape[axis + 1 :]) != array.shape:
        return None
    out = new_array(shape, array.dtype.num)
    places = dense(index if index.dtype is _INT64 else index.astype(np.int64))
    return out if loop_table.along(GATHER, dense(array), axis, places, out) == 0 else None


def masked_fill(array, value, mask):
    """A copy, broadcast with the mask, with `value` where the mask is true."""
    return np.asarray(where(mask, element_of(value, array.dtype), array), order="C")


def element_of(value, dtype):
    """Convert a scalar or 0-dim array to a 0-dim array of that type."""
    if type(value) is np.ndarray and value.dtype == dtype:
        return value
    element = np.empty((), dtype)
    copy_into(element, value)
    return element


def fill_where(array, value, mask):
    """Write `value` to `array` where the mask is true."""
    element = element_of(value, array.dtype)
    if array.size <= FEW or not array.flags.c_contiguous or mask.shape != array.shape:
        np.copyto(array, element, where=mask)
        return
    flat, chosen = array.reshape(-1), mask.reshape(-1)
    for start in range(0, flat.size, SIZE):
        part = slice(start, start + SIZE)
        flat[part] = where(chosen[part], element, flat[part])


def take(array, numbers):
    """The elements at these flat indices. Negative ones count from the end."""
    return as_array(np.take(array.reshape(-1), numbers)) if array.size else np.empty(numbers.shape, array.dtype)


def put(array, numbers, values, accumulate):
    """A copy with `values` written to, or accumulated at, these flat indices."""
    if accumulate and is_half(array):
        return in_float32(put, array, numbers, values, True)
    out = array.copy("C")
    flat, numbers, values = out.reshape(-1), private(numbers).reshape(-1), values.reshape(-1)
    if accumulate:
        with np.errstate(all="ignore"):
            np.add.at(flat, numbers, values)
    else:
        flat[numbers] = values
    return out


def masked_select(array, mask):
    """The elements where the mask is true, as a vector; both broadcast."""
    if array.shape != mask.shape:
        array, mask = np.broadcast_arrays(array, mask)
    if array.size <= FEW or not loop_table.can_move(array):
        found = selected(array, mask) if array.size <= FEW and type(array) is np.ndarray else None
        return array[private(mask)] if found is None else found
    found = new_array((int(np.count_nonzero(mask)),), array.dtype.num)
    select_into(found, array, mask)
    return found


def select_into(out, array, mask):
    """Write the elements where the mask is true to a vector of exactly that length and the array's type.

    Raises RuntimeError if another thread changes the mask so that it has fewer.
    """
    if loop_table.can_move(array):
        failed = loop_table.run(COMPRESS, (dense(array), dense(mask), out), (array.size, out.size), 0, 1, 1)
    else:
        chosen = array[private(mask)]
        failed = chosen.size != out.size
        if not failed:
            out[...] = chosen
    if failed:
        raise RuntimeError("the mask was changed while elements were selected by it")


def masked_scatter(array, mask, source):
    """A copy, broadcast with the mask, with the elements of `source` where the mask is true; None if there are too
    few.
    """
    if array.shape == mask.shape:
        out = np.array(array, order="C")
    else:
        out = np.array(np.broadcast_to(array, np.broadcast_shapes(array.shape, mask.shape)), order="C")
        mask = np.broadcast_to(mask, out.shape)
    mask = private(mask)
    count = np.count_nonzero(mask)
    if count > source.size:
        return None
    out[mask] = source.reshape(-1)[:count]
    return out


def masked_first(array, mask, size):
    """The elements where the mask is true, padded with zeros to `size` elements."""
    if array.shape != mask.shape:
        array, mask = np.broadcast_arrays(array, mask)
    array, mask = np.atleast_1d(array), np.atleast_1d(mask)
    out, done = np.zeros(size, array.dtype), 0
    step = max(1, len(array) * chunks.SIZE // max(array.size, 1))
    for start in range(0, len(array), step):
        part = slice(start, start + step)
        chosen = array[part][private(mask[part])]
        done += chosen.size
        if done > size:
            raise RuntimeError("the mask was changed after elements were selected by it")
        out[done - chosen.size : done] = chosen
    return out


dispatching(
    globals(),
    "index index_put index_select gather masked_fill fill_where take put masked_select masked_scatter masked_first",
)
