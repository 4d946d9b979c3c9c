"""Sorting, top-k, median and mode along an axis. NaN sorts last, and equal elements keep their order.

Large arrays are processed in chunks, because indices take eight bytes each and NumPy copies the data it sorts.
"""

import math

import numpy as np

import cygrad._kernels.cpu.base.loop_table as loop_table
from cygrad._kernels.cpu.base import chunks
from cygrad._kernels.cpu.base.arrays import dense, new_array, private
from cygrad._kernels.cpu.base.loop_table import LOOP_SIZES, LOOPS
from cygrad._kernels.cpu.base.reduce import amax
from cygrad._kernels.cpu.base.stack_chunks import along, cut
from cygrad._kernels.cpu.indexing.indexing import gather
from cygrad._kernels.device.dispatch import dispatching
from cygrad._kernels.tape.calls import noted

FIRSTS = LOOPS.FIRSTS
MOST_FIRSTS = LOOP_SIZES.MOST_FIRSTS  # of the loop that inserts each element among those found so far
_PICKS = ("", "kth_along", "median_along", "middle_along", "most_frequent")  # in the order of gather.h
FEW = 1 << 16  # elements times row length, up to which that loop sorts rows this short
PIECE = 1 << 15  # elements per chunk
_INT64 = np.dtype(np.int64).num


def one(a, axis):
    """The array's shape with length 1 along the axis."""
    return a.shape[:axis] + (1,) + a.shape[axis + 1 :]


# -- of all elements --


@along
def sorted_along(a, axis, descending=False):
    """Return (elements sorted along an axis, their indices)."""
    if _is_few(a, axis):
        return _by_loop(a, axis, a.shape[axis], descending)
    return _sorted(a, axis, descending)


@along
def order_along(a, axis, descending=False):
    """The indices that sort an axis."""
    keys = None if _is_few(a, axis) or type(a) is not np.ndarray else _keys(a, axis, descending)
    if keys is None:
        return sorted_along(a, axis, descending)[1]
    keys[0].sort(axis)
    return _order_of_keys(*keys)


def _is_few(a, axis):
    n = a.shape[axis]
    return 0 < n <= MOST_FIRSTS and a.size * n <= FEW and type(a) is np.ndarray and _has_firsts(a)


def _has_firsts(a):
    """Whether gather.h has sorting loops for the type of the array."""
    return loop_table.has_loops(a) or (a.dtype.num == _INT64 and loop_table.can_move(a))


def _sorted(a, axis, descending):
    keys = _keys(a, axis, descending)
    if keys is not None:
        keys[0].sort(axis)
        return _of_keys(a, axis, descending, *keys)
    if descending:
        values, order = _sorted(np.flip(a, axis), axis, False)
        np.subtract(a.shape[axis] - 1, order, out=order)
        return np.ascontiguousarray(np.flip(values, axis)), np.ascontiguousarray(np.flip(order, axis))
    a = private(a)
    if a.itemsize == 8:
        # NumPy's vectorized sort is several times faster but not stable; equal elements are rare and fixed afterwards.
        order = np.argsort(a, axis)
        values = np.take_along_axis(a, order, axis)
        _order_equals(*[np.moveaxis(array, axis, -1) for array in (a, values, order)])
        return values, order
    order = np.argsort(a, axis, kind="stable")
    return np.take_along_axis(a, order, axis), order


def _keys(a, axis, descending):
    """Pack elements and their indices into integers that sort like the elements, with ties by index.

    Returns (one key per element, number of low bits that hold the index, minimum subtracted from the elements), or None
    if keys do not fit into 64 bits. NumPy's vectorized sort of such keys is several times faster than its argsort.
    """
    n = a.shape[axis]
    bits = max(n - 1, 0).bit_length()
    least: int = 0
    if not a.size or a.dtype.kind not in "biuf" or bits > 31 or (a.dtype.kind == "f" and a.itemsize > 4):
        return None
    if a.dtype.kind in "iu" and a.itemsize == 8:
        least = int(a.min())
        if (int(a.max()) - least).bit_length() + bits > 63:
            return None
    width = 4 if a.dtype.kind == "f" else a.itemsize
    kind = np.int32 if width * 8 + bits < 32 else np.int64
    if a.dtype.kind == "f":
        keys = np.empty_like(a, kind)
        if a.size > chunks.SIZE:
            chunks.pending(_ranks, [a]).write(keys)
        else:
            keys[...] = _ranks(a)
    elif least:
        keys = np.subtract(a, a.dtype.type(least)).astype(kind, copy=False)
    else:
        keys = a.astype(kind)
    if descending:
        np.invert(keys, out=keys)
    np.left_shift(keys, bits, out=keys)
    behind = (1,) * (a.ndim - 1 - axis)
    if n <= PIECE:
        np.bitwise_or(keys, np.arange(n, dtype=keys.dtype).reshape((n, *behind)), out=keys)
        return keys, bits, least
    for here, places in _places(n, keys.dtype):  # an array of all n indices would be as large as the keys of one row
        part = keys[(slice(None),) * axis + (here,)]
        np.bitwise_or(part, places.reshape((-1, *behind)), out=part)
    return keys, bits, least


def _ranks(a):
    """Map floats to integers in the same order; -0 maps to 0, and NaN to the largest."""
    ordered = (a + np.float32(0)).view(np.int32)
    signs = ordered >> 31
    signs &= 0x7FFFFFFF
    ordered ^= signs
    np.copyto(ordered, 0x7FFFFFFF, where=np.isnan(a))
    return ordered


def _order_of_keys(keys, bits, least):
    """Extract the indices from keys; in place if keys have 8 bytes."""
    mask = (1 << bits) - 1
    return np.bitwise_and(keys, mask, out=keys) if keys.itemsize == 8 else (keys & mask).astype(np.int64)


def _of_keys(a, axis, descending, keys, bits, least):
    """Return (elements, their indices) from keys, which are overwritten."""
    if a.dtype.kind == "f":
        order = _order_of_keys(keys, bits, least)
        return gather(a, axis, order) if order.shape == a.shape else np.take_along_axis(a, order, axis), order
    order = (keys & (1 << bits) - 1).astype(np.int64, copy=False)
    np.right_shift(keys, bits, out=keys)
    if descending:
        np.invert(keys, out=keys)
    values = keys.astype(a.dtype, copy=False)
    return (values + a.dtype.type(least) if least else values), order


def _order_equals(a, values, order):
    """Sort the indices of equal elements, row by row; NaNs count as equal."""
    later, before = values[..., 1:], values[..., :-1]
    begins = np.ones(values.shape, bool)  # start of each run of equals, mostly of one element
    np.not_equal(later, before, out=begins[..., 1:])
    begins[..., 1:] &= (later == later) | (before == before)
    if begins.all():
        return
    among = ~begins
    among[..., :-1] |= ~begins[..., 1:]
    keys = np.cumsum(begins[among])
    keys *= a.shape[-1]
    keys += order[among]
    keys.sort()
    order[among] = np.remainder(keys, a.shape[-1], out=keys)
    values[...] = np.take_along_axis(a, order, -1)  # equal elements may differ, such as 0 and -0


# -- of some --


def first_along(a, axis, k, largest):
    """Return (the k largest or smallest elements along an axis, in order; their indices)."""
    if 0 < k <= MOST_FIRSTS and (k < a.shape[axis] // 8 or _is_few(a, axis)):
        if type(a) is np.ndarray and _has_firsts(a):
            return _by_loop(a, axis, k, largest)
    return _first_along(a, axis, k, largest)


@noted
def _by_loop(a, axis, k, largest, what=0, rank=0):
    is_last = axis == a.ndim - 1
    rows = dense(a if is_last else a.swapaxes(axis, -1))
    n = rows.shape[-1]
    shape = (*rows.shape[:-1], 1 if what else k)
    values, order = new_array(shape, a.dtype.num), new_array(shape, _INT64)
    numbers = n, k, largest, what, rank, a.dtype.kind == "i"
    loop_table.run(FIRSTS, (rows, values, order), numbers, 0, a.size // n, PIECE // n)
    return (values, order) if is_last else (dense(values.swapaxes(axis, -1)), dense(order.swapaxes(axis, -1)))


def one_of_few(name, a, axis, k=0):
    """Run the gather.h equivalent of the function `name` on short axes: (element, its index); None for long ones."""
    return _by_loop(a, axis, a.shape[axis], False, _PICKS.index(name), k + 1) if _is_few(a, axis) else None


@along
def _first_along(a, axis, k, largest):
    n = a.shape[axis]
    if not 0 < k < n // 8:
        return tuple(np.take(found, range(k), axis) for found in _sorted(a, axis, largest))
    keys = _keys(a, axis, largest)
    if keys is not None:
        few = cut(np.partition(keys[0], k - 1, axis), slice(0, k), axis).copy()
        few.sort(axis)
        return _of_keys(a, axis, largest, few, *keys[1:])
    a = private(a)
    part = np.argpartition(a, n - k if largest else k - 1, axis)  # far fewer than all: no need to sort the rest
    part = np.sort(np.take(part, range(n - k, n) if largest else range(k), axis), axis)
    values, order = _sorted(np.take_along_axis(a, part, axis), axis, largest)
    return values, np.take_along_axis(part, order, axis)


@along
def kth_along(a, axis, k):
    """The index of the k-th smallest element along an axis, counted from 0; 0 if there are no elements."""
    if not a.size:
        return np.zeros(one(a, axis), np.int64)
    if a.size <= chunks.FEW:
        return np.argpartition(private(a), k, axis).take([k], axis)
    value = np.partition(a, k, axis).take([k], axis)  # moves less memory than argpartition
    found = a == value
    if a.dtype.kind == "f" and np.isnan(value).any():
        found |= np.isnan(a) & np.isnan(value)
    return found.argmax(axis, keepdims=True)


def _has_nan(a):
    if a.dtype.kind != "f" or not a.size:
        return False
    return math.isnan(amax(a)) if type(a) is np.ndarray else bool(np.isnan(a).any())


@along
def median_along(a, axis):
    """The index of the lower median along an axis; of the first NaN if there is one."""
    if not _has_nan(a):
        return middle_of_numbers(a, axis)
    is_nan, order = np.isnan(a), middle_along(a, axis)
    return np.where(is_nan.any(axis, keepdims=True), np.argmax(is_nan, axis, keepdims=True), order)


def middle_of_numbers(a, axis):
    return kth_along(a, axis, max(a.shape[axis] - 1, 0) // 2)


@along
def middle_along(a, axis):
    """The index of the lower median along an axis, ignoring NaN; 0 for an axis of length 0."""
    if not _has_nan(a):
        return middle_of_numbers(a, axis)
    places = np.maximum(a.shape[axis] - np.isnan(a).sum(axis, keepdims=True) - 1, 0) // 2
    return np.take_along_axis(np.argsort(private(a), axis, kind="stable"), places, axis)


@along
def most_frequent(a, axis):
    """The last index of the most frequent element along an axis; of several, of the smallest."""
    if not a.size:
        return np.zeros(one(a, axis), np.int64)
    ordered = np.sort(a, axis)
    rows = np.moveaxis(ordered, axis, -1)
    n = rows.shape[-1]
    lengths = np.empty(rows.shape, np.int32 if n < 1 << 31 else np.int64)
    begins = np.ones(rows.shape, bool)
    np.not_equal(rows[..., 1:], rows[..., :-1], out=begins[..., 1:])
    for here, places in _places(n, lengths.dtype):
        np.multiply(places, begins[..., here], out=lengths[..., here])
    del begins
    np.maximum.accumulate(lengths, -1, out=lengths)  # start of each run of equals
    for here, places in _places(n, lengths.dtype):
        np.subtract(places, lengths[..., here], out=lengths[..., here])
    most = np.take_along_axis(rows, np.argmax(lengths, -1, keepdims=True), -1)
    del lengths, ordered, rows
    is_most = np.moveaxis(a, axis, -1) == most
    last = n - 1 - np.argmax(is_most[..., ::-1], -1, keepdims=True)
    last[np.isnan(most)] = 0  # NaN equals nothing
    return np.moveaxis(last, -1, axis)


def _places(n, dtype):
    """Yield slices of n positions, and their indices."""
    for start in range(0, n, PIECE // 4):
        stop = min(start + PIECE // 4, n)
        yield slice(start, stop), np.arange(start, stop, dtype=dtype)


def median_of_all(a):
    """The lower median of all elements; if any is NaN or there are none, `of_no_numbers`."""
    return _middle_of_all(a.reshape(-1), False)


def nanmedian_of_all(a):
    """The lower median of all elements, ignoring NaN; NaN if there are none."""
    return _middle_of_all(a.reshape(-1), True)


def of_no_numbers(dtype):
    """PyTorch's median of no numbers: NaN, converted as processors do for integers."""
    if dtype.kind not in "iu":
        return np.nan
    return np.iinfo(dtype).min if dtype.itemsize >= 4 else 0


def _middle_of_all(flat, ignore_nan):
    if 0 < flat.size <= chunks.FEW:
        flat = np.sort(flat)
        if flat[-1] == flat[-1]:
            return np.asarray(flat[(flat.size - 1) // 2])
    count = count_of_numbers(flat) if _has_nan(flat) else flat.size
    if not count or (count < flat.size and not ignore_nan):
        return np.asarray(of_no_numbers(flat.dtype), flat.dtype)
    place = (count - 1) // 2
    if flat.size > 16 * chunks.SIZE:
        return np.asarray(value_of_rank(flat, place, count))
    flat = flat.copy()
    flat.partition(place)  # NaNs are last
    return np.asarray(flat[place])


# -- by rank, without sorting everything; the scratch memory is a few chunks, whatever the number of elements --


@noted
def places_of_ranks(rows, ranks):
    """Indices of the elements of given ranks in each row: (m, n) and (m, r) give (m, r). Ties keep their order."""
    out = np.empty(ranks.shape, np.int64)
    n = rows.shape[1]
    if n > chunks.SIZE:
        for row, of_row, places in zip(rows, ranks.tolist(), out):
            count = count_of_numbers(row)
            for j, rank in enumerate(of_row):
                again = j and of_row[j - 1] == rank
                places[j] = places[j - 1] if again else _place(row, value_of_rank(row, rank, count), rank)
        return out
    step = max(1, chunks.SIZE // n)
    for start in range(0, len(rows), step):
        part = slice(start, start + step)
        out[part] = np.take_along_axis(order_along(rows[part], 1), ranks[part], 1)
    return out


def count_of_numbers(vector):
    """Count the elements that are not NaN."""
    return sum(int(np.count_nonzero(part == part)) for part in _parts(vector))


def _parts(vector):
    return (vector[start : start + chunks.SIZE] for start in range(0, vector.size, chunks.SIZE))


def value_of_rank(vector, rank, count):
    """The element of that rank, where `count` elements are not NaN."""
    if rank >= count:
        return vector.dtype.type(np.nan)
    found = _by_sample(vector, rank, count)
    return np.partition(vector, rank)[rank] if found is None else found


def _by_sample(vector, rank, count):
    """`value_of_rank` from a sample; None if the sample does not bracket the element closely enough.

    Picks two sampled values that likely enclose the element, with few others in between, and partitions only those.
    """
    sample = np.sort(vector[:: vector.size // (chunks.SIZE // 8) | 1])
    size = int(np.count_nonzero(sample == sample))
    if not size:
        return None
    near, margin = rank * size // count, 2 * int(size**0.5) + 1
    low, high = sample[max(near - margin, 0)], sample[min(near + margin, size - 1)]
    before, between, room = 0, [], vector.size // 8
    for part in _parts(vector):
        is_after = part > low
        before += part.size - int(np.count_nonzero(is_after))
        between.append(part[is_after & (part < high)])
        room -= between[-1].size
        if room < 0:
            return None
    before -= vector.size - count  # NaNs are not after `low`, either
    found = np.concatenate(between)
    if before <= rank < before + found.size:
        return np.partition(found, rank - before)[rank - before]
    edge = low if rank < before else high
    first = sum(int(np.count_nonzero(part < edge)) for part in _parts(vector))
    behind = sum(int(np.count_nonzero(part <= edge)) for part in _parts(vector))
    return edge if first <= rank < behind else None


def _place(vector, value, rank):
    """The index of the element with that value and rank."""
    is_nan = value != value
    for part in _parts(vector):
        rank -= int(np.count_nonzero(part == part if is_nan else part < value))
    start = 0
    for part in _parts(vector):
        is_equal = part != part if is_nan else part == value
        equals = int(np.count_nonzero(is_equal))
        if rank < equals:
            return start + int(np.flatnonzero(is_equal)[rank])
        rank -= equals
        start += part.size
    raise IndexError("no element has this rank")


dispatching(globals(), "sorted_along first_along kth_along median_along middle_along most_frequent")
