"""Operations along an axis other than reductions: running sums and products, shift, gather, and nonzero."""

import math

import numpy as np

import cygrad._kernels.cpu.base.loop_table as loop_table
from cygrad._kernels.cpu.base import chunks
from cygrad._kernels.cpu.base.arrays import dense, new_array, private
from cygrad._kernels.cpu.base.half_sums import in_float32, is_half, within_float32
from cygrad._kernels.cpu.base.loop_table import LOOP_SIZES, LOOPS
from cygrad._kernels.cpu.base.numpy_fallback import silent
from cygrad._kernels.cpu.base.stack_chunks import parts_of
from cygrad._kernels.device.cupy_library import as_array
from cygrad._kernels.device.dispatch import dispatching
from cygrad._kernels.platform.thresholds import PIECE
from cygrad._kernels.tape.calls import noted

RUNNING_SUMS, NONZERO, COUNT_NONZERO = LOOPS.RUNNING_SUMS, LOOPS.NONZERO, LOOPS.COUNT_NONZERO
FEWEST = 64  # elements; NumPy searches fewer before our loop would have begun
COUNTED = 1 << 15  # elements that a thread counts at a time
_DOUBLES = np.zeros(1)
_INT64 = np.dtype(np.int64)
_UNSIGNED = {size: np.dtype(f"u{size}") for size in (1, 4, 8)}  # by itemsize
TOGETHER = LOOP_SIZES.SUMS_TOGETHER  # adjacent lines that are added together


def cumsum(a, axis, reverse=False):
    """Cumulative sum along an axis, from the end if `reverse`.

    Single and half precision are accumulated in double precision, and rounded once.
    """
    if a.ndim == 0:
        return a.copy()
    if a.size and has_scans(a):
        found, out = _with_result(a)
        return _running_sums(found, out, axis, reverse)
    if is_half(a):
        return in_float32(cumsum, a, axis, reverse)
    return _cumsum_by_numpy(a, axis, reverse, np.empty(a.shape, a.dtype))


def has_scans(a):
    """Whether scans.h has cumulative sums and extrema for the type of the array."""
    return loop_table.has_loops(a) or (a.dtype.num == _INT64.num and loop_table.can_move(a))


def cumsum_within(a, axis, reverse=False):
    """Cumulative sum along an axis, from the end if `reverse`, in place."""
    if a.size and has_scans(a) and _is_dense(a):
        _running_sums(a, a, axis, reverse)
    elif is_half(a):
        within_float32(cumsum_within, a, axis, reverse)
    else:
        _cumsum_by_numpy(a, axis, reverse, a)


def _is_dense(a):
    return a.flags.carray and a.dtype.isnative


def _with_result(a):
    """Return the array, made dense, and an array for the result: the same one if `dense` made a copy."""
    found = dense(a)
    return found, new_array(a.shape, a.dtype.num) if found is a else found


def _running_sums(a, out, axis, reverse, are_products=False):
    n, inner, items, piece = lines(a, axis)
    loop_table.run(RUNNING_SUMS, (a, out), (n, inner, reverse, are_products, a.dtype.kind == "i"), 0, items, piece)
    return out


def lines(a, axis):
    """Shape parameters for the loops of scans.h: elements per line, adjacent lines, work items, and items per chunk."""
    n, inner = a.shape[axis], math.prod(a.shape[axis + 1 :])
    items = a.size // (n * inner) * -(-inner // TOGETHER)
    return n, inner, items, max(4, PIECE // (n * min(inner, TOGETHER)))


@silent
def _cumsum_by_numpy(a, axis, reverse, out):
    if a.dtype == np.float32:
        out[...] = _cumsum_by_numpy(a.astype(np.float64), axis, reverse, np.empty(a.shape))
    elif reverse:
        _cumsum_by_numpy(np.flip(a, axis), axis, False, np.flip(out, axis))
    else:
        np.cumsum(a, axis, a.dtype, out)
    return out


@silent
def cumprod_within(a, axis):
    """Cumulative product along an axis, in place."""
    if a.size and loop_table.has_loops(a) and _is_dense(a):
        _running_sums(a, a, axis, False, True)
        return
    if is_half(a):
        within_float32(cumprod_within, a, axis)
        return
    np.cumprod(a, axis, out=a)


def cumprod(a, axis):
    """Cumulative product along an axis; single precision is accumulated in double precision."""
    if a.ndim == 0:
        return a.copy()
    if a.shape[axis] > 1 and a.strides[axis] == 0:
        out = np.empty(a.shape, a.dtype)
        put_powers(np.moveaxis(a, axis, -1)[..., 0], np.moveaxis(out, axis, -1))
        return out
    if a.size and loop_table.has_loops(a):
        found, out = _with_result(a)
        return _running_sums(found, out, axis, False, True)
    return products(a, axis)


@silent
def products(a, axis):
    """Cumulative product by NumPy, in C order."""
    return np.multiply.accumulate(a, axis, out=np.empty(a.shape, a.dtype))


@noted
@silent
def products_of_others(a, axis):
    """For each element, the product of all other elements along an axis: of those before it and those behind it.

    Single and half precision are multiplied in double precision: products of some elements may leave the range where
    those of all others do not.
    """
    if is_half(a):
        return in_float32(products_of_others, a, axis)
    out = np.empty_like(a)
    _put_products_of_others(np.moveaxis(a, axis, -1), np.moveaxis(out, axis, -1))
    return out


def _put_products_of_others(a, out):
    """Write them along the last axis of `out`, a part at a time, which limits the memory for intermediate products."""
    if a.ndim > 1 and a.size > chunks.SIZE:
        step = max(1, len(a) * chunks.SIZE // a.size)
        for start in range(0, len(a), step):
            part = slice(start, start + step) if len(a) > 1 else 0
            _put_products_of_others(a[part], out[part])
        return
    wide = np.float64 if a.dtype == np.float32 else a.dtype
    starts = range(0, a.shape[-1], chunks.SIZE)
    before = [np.ones((*a.shape[:-1], 1), wide)]
    for start in starts:
        before.append(before[-1] * a[..., start : start + chunks.SIZE].prod(-1, wide, keepdims=True))
    behind = before[0]
    for start, own in zip(reversed(starts), before[-2::-1]):
        part = slice(start, start + chunks.SIZE)
        rising = np.multiply.accumulate(np.concatenate([own, a[..., part]], -1), -1)
        falling = np.multiply.accumulate(np.concatenate([behind, a[..., part][..., ::-1]], -1), -1)
        np.multiply(rising[..., :-1], falling[..., -2::-1], out=out[..., part], casting="same_kind")
        behind = falling[..., -1:]


@noted
@silent
def put_powers(a, out):
    """Write increasing powers of each element along the last axis of `out`, doubling the count at each step."""
    step = max(1, len(out) * chunks.SIZE // max(out.size, 1))
    if out.ndim > 1 and step < len(out):  # avoids NumPy's copy of operands that it cannot tell apart
        for start in range(0, len(out), step):
            put_powers(a[start : start + step], out[start : start + step])
        return
    out[..., 0] = a
    count, known = out.shape[-1], 1
    while known < count:
        more = min(known, count - known)
        np.multiply(out[..., :more], out[..., known - 1 : known], out=out[..., known : known + more])
        known += more


@noted
def unravelled(numbers, lengths):
    """Convert flat indices into an array of shape `lengths` to int64 indices along each axis."""
    if numbers.size > chunks.SIZE and lengths:
        return chunks.in_blocks(lambda block: _unravelled(block, lengths), [numbers])
    return _unravelled(numbers, lengths)


def _unravelled(numbers, lengths):
    numbers, found = numbers.astype(np.int64), []
    for length in reversed(lengths):
        found.append(as_array(numbers % max(length, 1)))
        numbers //= max(length, 1)
    return tuple(reversed(found))


def shift(a, axis, steps, fill):
    """Shift `a` by `steps` positions along an axis (backwards if negative); vacated positions are set to `fill`."""
    out = np.full_like(a, fill)
    length = a.shape[axis]
    source = [slice(None)] * a.ndim
    target = list(source)
    source[axis] = slice(max(-steps, 0), max(length - steps, 0))
    target[axis] = slice(max(steps, 0), max(length + steps, 0))
    out[tuple(target)] = a[tuple(source)]
    return out


@noted
def select_along(a, index, axis, keepdim):
    """Gather one element of `a` along an axis, at position `index`, for each position of the other axes."""
    if a.ndim == 0:
        return a.copy()
    index = private(index)
    index = index if keepdim else np.expand_dims(index, axis)
    values = np.take_along_axis(a, index, axis)
    return values if keepdim else as_array(values.squeeze(axis))


def place_along(values, index, shape, axis, keepdim):
    """Scatter `values` into zeros of that shape at the positions `index` along an axis: inverts `select_along`."""
    if not shape:
        return values.copy()
    out = np.zeros(shape, values.dtype)
    if not keepdim:
        values, index = np.expand_dims(values, axis), np.expand_dims(index, axis)
    if out.size <= chunks.SIZE:
        np.put_along_axis(out, private(index), values, axis)
        return out
    lengths = np.array(shape)
    lengths[axis] = 1
    for part in parts_of([slice(None)] * out.ndim, lengths, out.size):  # limits the memory for private copies
        np.put_along_axis(out[part], private(index[part]), values[part], axis)
    return out


def nonzero(a):
    """Indices of the nonzero elements as int64 (count, dimensions), stored column-major."""
    if a.ndim == 0:
        return np.empty((int(bool(a)), 0), np.int64)
    if a.size <= FEWEST:
        return np.array(private(a).nonzero(), np.int64).T
    count = count_nonzero(a)
    return _places(a, count) if _is_listed(a, count) else first_nonzero(a, count)


def count_nonzero(a):
    """Count the nonzero elements."""
    a = np.asarray(a)
    if not _has_places(a) or a.itemsize == 1 or a.size <= COUNTED:
        return int(np.count_nonzero(a))
    counts = np.empty(-(-a.size // COUNTED), np.int64)
    arrays = _DOUBLES, dense(a).view(_UNSIGNED[a.itemsize]), counts
    loop_table.run(COUNT_NONZERO, arrays, (COUNTED, a.size, a.itemsize, a.dtype.kind == "f"), 0, counts.size, 2)
    return int(counts.sum())


def _has_places(a):
    """Whether there are loops that find nonzero elements in such an array."""
    is_known = a.dtype.kind == "b" or (a.dtype.kind in "fiu" and a.itemsize in (4, 8))
    return is_known and loop_table.has_loops(_DOUBLES) and a.dtype.isnative


def _is_listed(a, count):
    """Whether `_places` has a loop for such an array and count."""
    return 0 < a.ndim <= 2 and count > 0 and a.size > 0 and type(a) is np.ndarray and _has_places(a)


def _places(a, count):
    """`first_nonzero` for a vector or a matrix with at least `count` nonzero elements.

    Raises RuntimeError if another thread changes elements so that there are fewer.
    """
    out = np.empty((a.ndim, count), np.int64)
    arrays = _DOUBLES, dense(a).view(_UNSIGNED[a.itemsize]), *([None] * (2 - a.ndim)), *out
    numbers = a.size // max(a.shape[-1], 1), a.shape[-1], a.itemsize, a.dtype.kind == "f", count
    if loop_table.run(NONZERO, arrays, numbers, 0, 1, 1):
        raise RuntimeError("the number of nonzero elements changed while they were listed")
    return out.T


def first_nonzero(a, count):
    """The first `count` rows of `nonzero(a)`, or all if there are fewer. `a` must have at least one dimension."""
    if _is_listed(a, count):
        return _places(a, min(count, count_nonzero(a)))
    out = np.empty((a.ndim, count), np.int64)
    done = 0
    for at, part in _pieces(a):
        if done == count:
            break
        found = np.nonzero(private(part))
        new = slice(done, min(done + len(found[0]), count))
        done = new.stop
        depth = len(at) - 1
        out[:depth, new] = np.array(at[:-1], np.int64)[:, None]
        for row, index in zip(out[depth:], found):
            row[new] = index[: new.stop - new.start]
        out[depth, new] += at[-1]
    return out[:, :done].T


def _pieces(a, at=()):
    """Yield (start index, chunk) for all of an array, with at most `blocks.SIZE` elements per chunk."""
    inner = math.prod(a.shape[1:])
    if a.ndim > 1 and inner > chunks.SIZE:
        for i in range(len(a)):
            yield from _pieces(a[i], (*at, i))
        return
    step = max(1, chunks.SIZE // max(inner, 1))
    for start in range(0, len(a), step):
        yield (*at, start), a[start : start + step]


dispatching(globals(), "cumsum cumsum_within cumprod cumprod_within place_along nonzero")
