"""Work along axes that is no reduction: running sums, shifts, picking by index."""

import math

import numpy as np

import cygrad._kernels.cpu.base.loop_table as loop_table
from cygrad._kernels.cpu.base import chunks
from cygrad._kernels.cpu.base.arrays import dense, new_array
from cygrad._kernels.cpu.base.numpy_fallback import silent
from cygrad._kernels.device.cupy_library import as_array
from cygrad._kernels.device.dispatch import dispatching

RUNNING_SUMS, NONZERO, COUNT_NONZERO = 16, 31, 32  # as in native.h
FEWEST = 64  # elements among which NumPy has looked before our loop has begun
COUNTED = 1 << 15  # elements whose number one thread finds
_DOUBLES = np.zeros(1)
_INT64 = np.dtype(np.int64)
_UNSIGNED = {size: np.dtype(f"u{size}") for size in (1, 4, 8)}  # by the bytes of an element
PIECE = 1 << 14  # elements that one thread works on
TOGETHER = 256  # lines side by side that are added together: as in scans.h


def cumsum(a, axis, reverse=False):
    """The running sum along an axis, from the end if `reverse`. Single precision is added up in double precision."""
    if a.ndim == 0:
        return a.copy()
    if a.size and has_scans(a):
        found, out = _with_result(a)
        return _running_sums(found, out, axis, reverse)
    return _cumsum_by_numpy(a, axis, reverse, np.empty(a.shape, a.dtype))


def has_scans(a):
    """Whether there are running sums and extrema of scans.h for the type of the array."""
    return loop_table.has_loops(a) or (a.dtype.num == _INT64.num and loop_table.can_move(a))


def cumsum_within(a, axis, reverse=False):
    """The running sum, or that from the end, written into the array itself."""
    if a.size and has_scans(a) and _is_dense(a):
        _running_sums(a, a, axis, reverse)
    else:
        _cumsum_by_numpy(a, axis, reverse, a)


def _is_dense(a):
    return a.flags.carray and a.dtype.isnative


def _with_result(a):
    """The array, dense, and one for a result, which are one if it is a copy."""
    found = dense(a)
    return found, new_array(a.shape, a.dtype.num) if found is a else found


def _running_sums(a, out, axis, reverse, are_products=False):
    n, inner, items, piece = lines(a, axis)
    loop_table.run(RUNNING_SUMS, (a, out), (n, inner, reverse, are_products, a.dtype.kind == "i"), 0, items, piece)
    return out


def lines(a, axis):
    """How the loops of scans.h see an array: elements of a line, lines side by side, items of work, and in a piece."""
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
    """The running product, written into the array itself."""
    if a.size and loop_table.has_loops(a) and _is_dense(a):
        _running_sums(a, a, axis, False, True)
        return
    np.cumprod(a, axis, out=a)


def cumprod(a, axis):
    """The running product along an axis; of single precision it is made in double precision."""
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
    """The running product by NumPy, in C order."""
    return np.multiply.accumulate(a, axis, out=np.empty(a.shape, a.dtype))


@silent
def put_powers(a, out):
    """The powers of each element, from the first on, along the last axis of `out`: twice as many at each step."""
    step = max(1, len(out) * chunks.SIZE // max(out.size, 1))
    if out.ndim > 1 and step < len(out):  # NumPy copies what it does not see to be apart
        for start in range(0, len(out), step):
            put_powers(a[start : start + step], out[start : start + step])
        return
    out[..., 0] = a
    count, known = out.shape[-1], 1
    while known < count:
        more = min(known, count - known)
        np.multiply(out[..., :more], out[..., known - 1 : known], out=out[..., known : known + more])
        known += more


def unravelled(numbers, lengths):
    """The positions along each axis, in int64, of the elements of these numbers in a flat array of that shape."""
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
    """`a` moved along an axis by `steps` places (backwards if negative), with `fill` in the places left free."""
    out = np.full_like(a, fill)
    length = a.shape[axis]
    source = [slice(None)] * a.ndim
    target = list(source)
    source[axis] = slice(max(-steps, 0), max(length - steps, 0))
    target[axis] = slice(max(steps, 0), max(length + steps, 0))
    out[tuple(target)] = a[tuple(source)]
    return out


def select_along(a, index, axis, keepdim):
    """The elements of `a` at the positions `index` along an axis, one for each place of the others."""
    if a.ndim == 0:
        return a.copy()
    index = index if keepdim else np.expand_dims(index, axis)
    values = np.take_along_axis(a, index, axis)
    return values if keepdim else as_array(values.squeeze(axis))


def place_along(values, index, shape, axis, keepdim):
    """Zeros of that shape with `values` at the positions `index` along an axis: undoes `select_along`."""
    if not shape:
        return values.copy()
    out = np.zeros(shape, values.dtype)
    if not keepdim:
        values, index = np.expand_dims(values, axis), np.expand_dims(index, axis)
    np.put_along_axis(out, index, values, axis)
    return out


def nonzero(a):
    """The indices of what is not zero: (how many, dimensions), int64; those of a dimension lie side by side."""
    if a.ndim == 0:
        return np.empty((int(bool(a)), 0), np.int64)
    if a.size <= FEWEST:
        return np.array(a.nonzero(), np.int64).T
    count = count_nonzero(a)
    return _places(a, count) if _is_listed(a, count) else first_nonzero(a, count)


def count_nonzero(a):
    """How many elements are not zero."""
    a = np.asarray(a)
    if not _has_places(a) or a.itemsize == 1 or a.size <= COUNTED:
        return int(np.count_nonzero(a))
    counts = np.empty(-(-a.size // COUNTED), np.int64)
    arrays = _DOUBLES, dense(a).view(_UNSIGNED[a.itemsize]), counts
    loop_table.run(COUNT_NONZERO, arrays, (COUNTED, a.size, a.itemsize, a.dtype.kind == "f"), 0, counts.size, 2)
    return int(counts.sum())


def _has_places(a):
    """Whether there are loops for what is not zero in such an array."""
    is_known = a.dtype.kind == "b" or (a.dtype.kind in "fiu" and a.itemsize in (4, 8))
    return is_known and loop_table.has_loops(_DOUBLES) and a.dtype.isnative


def _is_listed(a, count):
    """Whether `_places` has a loop for such an array and so many."""
    return 0 < a.ndim <= 2 and count > 0 and a.size > 0 and type(a) is np.ndarray and _has_places(a)


def _places(a, count):
    """`first_nonzero` of a vector or a matrix with just so many."""
    out = np.empty((a.ndim, count), np.int64)
    arrays = _DOUBLES, dense(a).view(_UNSIGNED[a.itemsize]), *([None] * (2 - a.ndim)), *out
    numbers = a.size // max(a.shape[-1], 1), a.shape[-1], a.itemsize, a.dtype.kind == "f", count
    loop_table.run(NONZERO, arrays, numbers, 0, 1, 1)
    return out.T


def first_nonzero(a, count):
    """The first `count` rows of the same, or all if there are fewer, of an array that has dimensions."""
    if _is_listed(a, count):
        return _places(a, min(count, count_nonzero(a)))
    out = np.empty((a.ndim, count), np.int64)
    done = 0
    for at, part in _pieces(a):
        if done == count:
            break
        found = np.nonzero(part)
        new = slice(done, min(done + len(found[0]), count))
        done = new.stop
        depth = len(at) - 1
        out[:depth, new] = np.array(at[:-1], np.int64)[:, None]
        for row, index in zip(out[depth:], found):
            row[new] = index[: new.stop - new.start]
        out[depth, new] += at[-1]
    return out[:, :done].T


def _pieces(a, at=()):
    """(where it starts, the piece) for all of an array, each of a block at most."""
    inner = math.prod(a.shape[1:])
    if a.ndim > 1 and inner > chunks.SIZE:
        for i in range(len(a)):
            yield from _pieces(a[i], (*at, i))
        return
    step = max(1, chunks.SIZE // max(inner, 1))
    for start in range(0, len(a), step):
        yield (*at, start), a[start : start + step]


dispatching(globals(), "cumsum cumsum_within cumprod cumprod_within place_along nonzero")
