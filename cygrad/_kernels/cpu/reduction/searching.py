"""searchsorted, isin, unique and unique_consecutive."""

import math

import numpy as np

import cygrad._kernels.cpu.base.loop_table as loop_table
from cygrad._kernels.cpu.base import arrays as cpu
from cygrad._kernels.cpu.base import chunks
from cygrad._kernels.cpu.base.arrays import new_array, private
from cygrad._kernels.cpu.base.loop_table import LOOPS
from cygrad._kernels.cpu.indexing.indexing import select_into
from cygrad._kernels.cpu.reduction.sorting import sorted_along
from cygrad._kernels.device.cupy_library import as_array, dense
from cygrad._kernels.device.dispatch import dispatching

SEARCH = LOOPS.SEARCH
PIECE = 1 << 11  # values per chunk
MANY = 32  # elements of a sequence converted per value, at most
FLOAT64, INT64 = np.dtype(np.float64).num, np.dtype(np.int64).num
FEW = 1 << 14  # comparisons made at once
BLOCK = 1 << 15  # elements processed at a time when looking for runs of equals, or for values

# -- places in a sorted order --


def searchsorted(sequence, values, side):
    """The insertion index of each value along the last axis; the other axes agree, or `sequence` has none."""
    if values.size * MANY >= sequence.size and _are_doubles(sequence) and _are_doubles(values):
        return _searched(sequence, values, side == "right")
    if sequence.ndim == 1:
        return as_array(sequence.searchsorted(values, side))
    found = np.empty(values.shape, np.int64)
    count, width = math.prod(sequence.shape[:-1]), values.shape[-1]
    rows = zip(found.reshape(count, width), sequence.reshape(count, sequence.shape[-1]), values.reshape(count, width))
    for row, own, wanted in rows:
        row[...] = np.searchsorted(own, wanted, side)
    return found


def _are_doubles(array):
    """Whether the array is not empty, is exact in double precision, and has a loop."""
    is_exact = array.dtype.kind == "f" or array.dtype.kind in "iu" and array.dtype.itemsize < 8
    return is_exact and array.size > 0 and loop_table.has_loops(np.empty(0))


def _searched(sequence, values, past_equal):
    """Search by the loop, converting to double in chunks; all chunks search a single row if there is only one."""
    found = new_array(values.shape, INT64)
    rows, flat = cpu.dense(sequence).reshape(-1, sequence.shape[-1]), cpu.dense(values).reshape(-1)
    width, length = flat.size // len(rows), rows.shape[1]
    together = max(1, BLOCK // max(width, length))
    step = together * width if len(rows) > 1 else BLOCK
    for begin in range(0, flat.size, step):
        part = slice(begin, begin + step)
        if begin == 0 or len(rows) > 1:
            some = cpu.cast(rows[begin // width : begin // width + together], FLOAT64)
        arrays = some, cpu.cast(flat[part], FLOAT64), found.reshape(-1)[part]
        loop_table.run(SEARCH, arrays, (length, width, past_equal), 0, arrays[1].size, PIECE)
    return found


def isin(elements, tests, unique, invert):
    """Whether each element is among `tests`; in C order."""
    if elements.ndim == 0:  # NumPy's shortcuts sort
        return as_array((elements == tests).any() != invert)
    elements = dense(elements)
    if elements.size * tests.size <= FEW and isinstance(elements, np.ndarray):
        found = np.logical_or.reduce(elements[..., None] == tests.reshape(-1), -1)
        return np.logical_not(found, out=found) if invert else found
    return np.isin(elements, tests, assume_unique=unique, invert=invert)


# -- distinct values --


def distinct(array, inverse, counts):
    """Return (values, index of each element among them, counts) of all elements, sorted; every NaN is distinct.

    The second and the third are None unless requested.
    """
    if not inverse:
        values, _, lengths = runs(np.sort(array, None), False, counts)
        return values, None, lengths
    values, order = sorted_along(array.reshape(-1), 0)
    values, numbers, lengths = runs(values, True, counts)
    where = np.empty(array.shape, np.int64)
    where.reshape(-1)[order] = numbers
    return values, where, lengths


def distinct_slices(array, axis):
    """`distinct` for the slices along an axis, sorted lexicographically."""
    slices = np.moveaxis(array, axis, 0)
    columns = _blocks_of_columns(slices)
    keys = slices.astype(np.float32) if slices.dtype.name == "bfloat16" else slices  # CuPy does not sort it
    if isinstance(slices, np.ndarray) and 0 < slices.size <= FEW:
        order = np.lexsort(private(_columns(keys, None)).T[::-1])
    else:
        order = np.arange(len(slices), like=slices)
        for some in reversed(columns):
            for column in reversed(_columns(keys, some).T):  # np.lexsort keeps an iterator for each column
                order = order[np.argsort(column[order], kind="stable")]
    first = np.zeros(len(slices), bool, like=slices)
    first[:1] = True
    for some in columns:
        first |= _starts(_columns(keys, some)[order])
    inverse = np.empty(len(slices), np.int64, like=slices)
    inverse[order] = np.cumsum(first) - 1
    return _chosen(slices, order[first], axis), inverse, _lengths(first)


def _blocks_of_columns(slices):
    """Column ranges to process together when slices are viewed as rows; [None] for all at once."""
    width = math.prod(slices.shape[1:])
    if slices.size <= chunks.SIZE or slices.ndim == 1 or not isinstance(slices, np.ndarray):
        return [None]
    step = max(1, chunks.SIZE // len(slices))
    return [range(start, min(start + step, width)) for start in range(0, width, step)]


def _columns(slices, numbers):
    if numbers is None:
        return slices.reshape(len(slices), math.prod(slices.shape[1:]))
    return slices[(slice(None), *np.unravel_index(np.asarray(numbers), slices.shape[1:]))]


def runs(array, inverse, counts):
    """The first element of each run of equals, and if requested the run of each element and the lengths of the runs."""
    flat = array.reshape(-1)
    if type(flat) is np.ndarray and flat.size > FEW:
        return _runs(flat, inverse, counts, array.shape)
    first = _starts(flat[:, None])
    return flat[first], _numbers(first).reshape(array.shape) if inverse else None, _lengths(first, counts)


def runs_of_slices(array, axis, inverse, counts):
    """`runs` for equal slices along an axis."""
    slices = np.moveaxis(array, axis, 0)
    first = _starts(slices.reshape(len(slices), math.prod(slices.shape[1:])))
    return _chosen(slices, first, axis), _numbers(first) if inverse else None, _lengths(first, counts)


def _numbers(first):
    """The run that each element belongs to."""
    return np.cumsum(first) - 1


def _chosen(slices, which, axis):
    return np.moveaxis(dense(slices[which]), 0, axis)


def _starts(rows):
    """Whether each row differs from the previous one."""
    first = np.empty(len(rows), bool, like=rows)
    first[:1] = True
    if rows.shape[1] == 1:
        np.not_equal(rows[1:, 0], rows[:-1, 0], out=first[1:])
    else:
        np.any(rows[1:] != rows[:-1], axis=1, out=first[1:])
    return first


def _lengths(first, wanted=True):
    """The distance from each start to the next."""
    return np.diff(np.append(np.flatnonzero(first), len(first))) if wanted else None


def _runs(flat, inverse, counts, shape):
    """`runs` of a vector in memory, chunk by chunk."""
    kept = list(_starts_in_blocks(flat)) if flat.size <= chunks.SIZE else None  # for more, they are found twice
    count = sum(int(np.count_nonzero(first)) for _, first in kept or _starts_in_blocks(flat))
    values = new_array((count,), flat.dtype.num)
    numbers = new_array(flat.shape, INT64) if inverse else None
    lengths = new_array((count,), INT64) if counts else None
    done = 0
    for begin, first in kept or _starts_in_blocks(flat):
        part = slice(done, done + int(np.count_nonzero(first)))
        select_into(values[part], flat[begin : begin + BLOCK], first)
        if lengths is not None:
            np.add(np.flatnonzero(first), begin, out=lengths[part])
        if numbers is not None:
            found = np.cumsum(first, out=numbers[begin : begin + BLOCK])
            found += done - 1
        done = part.stop
    if lengths is not None and count:
        for begin in range(0, count - 1, BLOCK):
            part, behind = slice(begin, min(begin + BLOCK, count - 1)), slice(begin + 1, begin + BLOCK + 1)
            lengths[part] = lengths[behind] - lengths[part]
        lengths[-1] = flat.size - lengths[-1]
    return values, None if numbers is None else numbers.reshape(shape), lengths


def _starts_in_blocks(flat):
    """Yield (start, whether each element differs from the one before it) for each chunk."""
    for begin in range(0, flat.size, BLOCK):
        before = max(begin - 1, 0)
        first = _starts(flat[before : begin + BLOCK, None])
        yield begin, first[begin - before :]


dispatching(globals(), "searchsorted isin distinct")
