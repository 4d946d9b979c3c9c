"""Scatter, index_add and their reductions; an index may name the same position several times."""

import math
from typing import Any

import numpy as np

import cygrad._kernels.cpu.base.loop_table as loop_table
import cygrad._kernels.cpu.indexing.add_rows as rows
from cygrad._kernels.cpu.base import chunks
from cygrad._kernels.cpu.base.arrays import dense, fill, new_array, private, zeros
from cygrad._kernels.cpu.base.half_sums import in_float32, is_half, rows_in_float32, within_float32
from cygrad._kernels.cpu.base.loop_table import LOOPS
from cygrad._kernels.cpu.base.numpy_fallback import silent
from cygrad._kernels.device.cupy_library import beside
from cygrad._kernels.device.dispatch import dispatching
from cygrad._kernels.tape.calls import noted

COMBINE, SCATTER = LOOPS.COMBINE, LOOPS.SCATTER
_COMBINING = ("sum", "prod", "amax", "amin")  # the reductions of COMBINE, in its order
_INT64 = np.dtype(np.int64)


def add_rows(out, index, values, extreme=0):
    """Add row i of `values` to row `index[i]` of `out`, a C-contiguous matrix, in order.

    `extreme` is as for `rows.add_rows`, and only for types that have loops there.

    Raises IndexError if `out` has no such row (negative ones are invalid).
    """
    if is_half(out):
        rows_in_float32(add_rows, out, index, values)
        return
    if out.dtype.kind == "c":  # as two real numbers each
        values = np.ascontiguousarray(values, out.dtype)
        out = out.view(out.real.dtype)
        values = values.view(out.dtype)
    index = dense(index.astype(np.int64, copy=False))
    if not rows.add_rows(out, index, dense(values.astype(out.dtype, copy=False)), extreme):
        index = private(index)
        if len(index) and not 0 <= index.min() <= index.max() < len(out):
            raise IndexError("index out of range in self")
        np.add.at(out, index, values)


def as_vector(index, axis, shape):
    """The indices along an axis if the index is expanded along all others, to the lengths of `shape`; else None."""
    if 0 not in index.strides or not 1 < index.ndim == len(shape) or not 0 < index.shape[axis] < index.size:
        return None
    for d, stride in enumerate(index.strides):
        if d != axis and (stride and index.shape[d] > 1 or index.shape[d] != shape[d]):
            return None
    return index[(0,) * axis + (slice(None),) + (0,) * (index.ndim - axis - 1)]


@silent
def index_add(a, axis, index, source, alpha=1):
    """A copy of `a` with `alpha` times slice i of `source` along an axis added at `index[i]`."""
    if a.ndim == 0:
        return index_add(a.reshape(1), 0, index, source.reshape(1), alpha).reshape(())
    if is_half(a):
        return in_float32(index_add, a, axis, index, source, alpha)
    if alpha != 1:
        source = source * np.asarray(alpha).astype(source.dtype)  # -1 wraps around in unsigned integers
    if axis:
        a, source = a.swapaxes(0, axis), source.swapaxes(0, axis)
    out = a.copy("C")
    index_add_to(out, index, source)
    return np.ascontiguousarray(out.swapaxes(0, axis)) if axis else out


@noted
def index_add_to(out, index, source, alpha=1, extreme=0):
    """`index_add` along the first axis of a dense array, in place. `extreme` is as for `rows.add_rows`."""
    if alpha != 1:
        source = source * np.asarray(alpha).astype(source.dtype)
    width = math.prod(out.shape[1:])
    add_rows(out.reshape(len(out), width), index, source.reshape(len(index), width), extreme)


def scatter_add(a, axis, index, source):
    """A copy of `a` with the elements of `source` added at their own positions, but at `index` along the axis.

    `index` may be smaller than `source`; the rest of `source` is ignored.
    """
    return add_at(a.copy("C"), axis, index, source)


def scattered(shape, axis, index, source):
    """`scatter_add` to zeros of that shape."""
    if is_half(source):
        return in_float32(lambda source: scattered(shape, axis, index, source), source)
    return add_at(new_array(shape, source.dtype.num), axis, index, source, True)


def add_at(out, axis, index, source, to_zeros=False):
    """`scatter_add` in place in a contiguous `out`, or with `to_zeros` to zeros that overwrite it. Return it."""
    vector = None if axis else as_vector(index, 0, out.shape)
    if vector is None and is_half(out):
        within_float32(add_at, out, axis, index, source, to_zeros)
        return out
    if vector is None and _combined(out, axis, index, source, "sum", to_zeros):
        return out
    if to_zeros:
        fill(out, 0)
    if vector is not None:
        index_add_to(out, vector, part_for(index, source))
        return out
    if out.ndim == 0:
        add_rows(out.reshape(1, 1), index.reshape(-1), source.reshape(-1)[: index.size, None])
        return out
    if index.ndim == 0:
        index, source = index.reshape(1), source.reshape(1)
    source = part_for(index, source)
    if index.size <= chunks.SIZE:
        add_rows(out.reshape(-1, 1), flat_positions(out.shape, axis, index).reshape(-1), source.reshape(-1, 1))
        return out
    width = math.prod(out.shape[1:])
    step = max(1, chunks.SIZE * len(index) // max(index.size, 1))
    for start in range(0, len(index), step):  # limits the memory for positions, which take eight bytes each
        part = slice(start, start + step)
        places = flat_positions(out.shape, axis, index[part])
        if axis:
            places = places + start * width
        add_rows(out.reshape(-1, 1), places.reshape(-1), source[part].reshape(-1, 1))
    return out


def part_for(index, source):
    """The elements of `source` that the index covers; it may have fewer."""
    return source if source.shape == index.shape else source[tuple([slice(n) for n in index.shape])]


REDUCTIONS = ("sum", "prod", "mean", "amax", "amin")
SLICE = 256  # elements per round for which operations on whole slices pay off
_EXTREMA = ("amax", "amin")
_LOOPS = {"prod": np.multiply, "amax": np.maximum, "amin": np.minimum}


def _by_loop(loop, out, axis, index, source, *how):
    """Run `scatter` or a similar loop; it requires equal lengths along the other axes.

    Return whether it failed, as it does for negative indices; None if there is no loop.
    """
    index = dense(index if index.dtype is _INT64 else index.astype(np.int64))
    source = dense(source if source.dtype is out.dtype else source.astype(out.dtype))
    failed = loop_table.along(loop, out, axis, index, source, *how)
    if failed is None and source.ndim == index.ndim and source.shape != index.shape:
        return loop_table.along(loop, out, axis, index, dense(part_for(index, source)), *how)
    return failed


def _combined(out, axis, index, source, reduce, to_zeros=False):
    """Reduce `source` into `out`, or into zeros with `to_zeros`, by a loop. Return whether there is one."""
    failed = _by_loop(COMBINE, out, axis, index, source, _COMBINING.index(reduce), to_zeros)
    if failed:
        raise IndexError("index out of range in self")
    return failed is not None


def scatter(out, axis, index, source):
    """Write the elements of `source`, or one scalar, to their own positions in `out`, but at `index` along the axis."""
    if _by_loop(SCATTER, out, axis, index, source) == 0:
        return
    if out.ndim <= 1 or index.ndim == 0:
        source = source.reshape(-1)[: index.size] if source.ndim else source
        out.reshape(out.shape or (1,))[private(index).reshape(-1)] = source
        return
    if source.ndim:
        source = part_for(index, source)
    places = list(np.indices(index.shape, sparse=True))
    places[axis] = private(index)
    out[tuple(places)] = source


def places_of(a, axis, index, source):
    """The flat positions in `a`, and the elements of `source` for them; both vectors."""
    index = private(index)
    if index.ndim == 0 or a.ndim == 0:
        return index.reshape(-1), source.reshape(-1)[: index.size]
    source = source[tuple(slice(0, n) for n in index.shape)]
    return flat_positions(a.shape, axis, index).reshape(-1), source.reshape(-1)


def scatter_reduce(a, axis, index, source, reduce, include_self):
    """A copy of `a` with the elements of `source` reduced into the positions to which `scatter` would write them."""
    if not index.size:
        return a.copy("C")
    if is_half(a):
        return in_float32(scatter_reduce, a, axis, index, source, reduce, include_self)
    vector = as_vector(index, axis, a.shape)
    if vector is not None:
        found = _reduced_slices(a, axis, vector, source[tuple([slice(n) for n in index.shape])], reduce, include_self)
        if found is not None:
            return found
    return _reduced(a, axis, index, source, reduce, include_self)


def _reduced(a, axis, index, source, reduce, include_self):
    """`scatter_reduce` element by element."""
    out = a.copy("C")
    if not include_self:
        scatter(out, axis, index, np.asarray(reduce == "prod", a.dtype) if reduce not in _EXTREMA else source)
    if reduce in ("sum", "mean"):
        add_at(out, axis, index, source)
    elif not _combined(out, axis, index, source, reduce):
        places, values = places_of(a, axis, index, source)
        with np.errstate(all="ignore"):
            _LOOPS[reduce].at(out.reshape(-1), places, values)
    if reduce == "mean":
        counts = _counts(out, out.shape, include_self)
        _divide(out, add_at(counts, axis, index, np.ones_like(index, counts.dtype)))
    return out


def _counts(out, shape, include_self):
    """The initial counts of the elements in each mean."""
    return np.full(shape, bool(include_self), np.result_type(out.real.dtype, np.float32))


@silent
def _divide(out, counts):
    """Divide sums in place by their numbers of elements."""
    divide = np.floor_divide if out.dtype.kind in "iu" else np.divide
    divide(out, np.maximum(counts, 1).astype(out.real.dtype, copy=False), out=out)


@noted
def index_reduce(a, axis, index, source, reduce, include_self):
    """Like `scatter_reduce` for slices: reduce slices of `source` into the slices `index` (a vector) along an axis."""
    if is_half(a):
        return in_float32(index_reduce, a, axis, index, source, reduce, include_self)
    found = _reduced_slices(a, axis, index, source, reduce, include_self)
    if found is not None:
        return found
    return scatter_reduce(a, axis, index_of_slices(index, axis, source.shape), source, reduce, include_self)


def _reduced_slices(a, axis, index, source, reduce, include_self):
    """`index_reduce` by operations on whole slices; None if these would be too many."""
    if type(a) is not np.ndarray or not a.ndim == source.ndim > 0 or not source.size:
        return None
    index = private(index)
    extreme = {"amax": 1, "amin": -1}.get(reduce, 0) if loop_table.has_loops(a) else 0
    ranks = _ranks(index) if reduce in _LOOPS and not extreme else None
    rounds = 0 if ranks is None else int(ranks.max()) + 1
    if rounds * SLICE > source.size:
        return None
    out = a.swapaxes(0, axis).copy("C")
    source = source.swapaxes(0, axis)
    with np.errstate(all="ignore"):
        if ranks is None:
            if not include_self:
                out[index] = source if extreme else 0
            index_add_to(out, index, source, extreme=extreme)
            if reduce == "mean":
                counts = _counts(out, (len(out), 1), include_self)
                add_rows(counts, index, np.ones((index.size, 1), counts.dtype))
                _divide(out, counts.reshape(-1, *[1] * (out.ndim - 1)))
        for rank in range(rounds):  # each position at most once per round
            rows = np.flatnonzero(ranks == rank) if rounds > 1 else slice(None)
            places, values = index[rows], source[rows]
            out[places] = values if rank == 0 and not include_self else _LOOPS[reduce](out[places], values)
    return np.ascontiguousarray(out.swapaxes(0, axis))


def _ranks(index):
    """Count the earlier occurrences of each element of a vector."""
    order = np.argsort(index, kind="stable")
    ordered = index[order]
    numbers = np.arange(len(index))
    first = np.ones(len(index), bool)
    np.not_equal(ordered[1:], ordered[:-1], out=first[1:])
    ranks = np.empty_like(numbers)
    ranks[order] = numbers - np.maximum.accumulate(numbers * first)
    return ranks


def index_of_slices(index, axis, shape):
    """The `scatter` index that selects the slices `index` along an axis, for a source of that shape."""
    if not shape:
        return index.reshape(())
    return np.broadcast_to(index.reshape((-1,) + (1,) * (len(shape) - 1 - axis)), shape)


def index_copy(out, axis, index, source):
    """Write `source`, or its slices, to the slices `index` (a vector) of `out` along an axis."""
    whole, before = out.reshape(out.shape or (1,)), (slice(None),) * axis
    if index.size <= chunks.SIZE:
        whole[before + (private(index),)] = source
        return
    for start in range(0, index.size, chunks.SIZE):  # limits the memory for private copies
        part = slice(start, start + chunks.SIZE)
        whole[(*before, private(index[part]))] = source[(*before, part)] if source.ndim else source


def flat_positions(shape, axis, index):
    """Flat positions in an array of `shape` of the elements at `index` along an axis."""
    if len(shape) == 1:
        return index
    own: Any = 0
    step = 1
    for d in range(len(shape) - 1, -1, -1):
        if d == axis:
            along = index.astype(np.int64, copy=False) * step
        else:
            own = own + (np.arange(index.shape[d]) * step).reshape((-1,) + (1,) * (len(shape) - 1 - d))
        step *= shape[d]
    along += beside(own, along)
    return along


def index_sum(values, shape, indices):
    """Zeros of `shape` with `values` added at the positions that fancy indexing with `indices` would have read.

    `indices` holds arrays of integers or booleans, and None for dimensions taken whole.
    """
    if is_half(values):
        return in_float32(index_sum, values, shape, indices)
    if len(indices) == 1 and indices[0].dtype.kind == "i":
        return _rows_sum(values, shape, indices[0])
    if len(indices) == 1 and indices[0].dtype == bool:  # no position twice
        out = np.zeros(shape, values.dtype)
        try:
            out[private(indices[0])] = values
        except ValueError:
            raise RuntimeError("the mask was changed after elements were selected by it") from None
        return out
    plain, dims = one_index_each(indices)
    if len(plain) > 1:
        plain = np.broadcast_arrays(*plain)
    places: Any = None
    for index, d in zip(plain, dims):
        index = index.astype(np.int64, copy=False)
        index = np.where(index < 0, index + shape[d], index)
        places = index if places is None else places * shape[d] + index
    lengths = tuple(shape[d] for d in dims)
    others = tuple(length for d, length in enumerate(shape) if d not in dims)
    width = math.prod(others)
    out = np.zeros((math.prod(lengths), width), values.dtype)
    if dims[-1] - dims[0] == len(dims) - 1 and dims[0] > 0:  # adjacent indices keep their place among the dimensions
        values = np.moveaxis(values, range(dims[0], dims[0] + places.ndim), range(places.ndim))
    add_rows(out, places.reshape(-1), values.reshape(places.size, width))
    out = out.reshape(lengths + others)
    return out if dims[-1] == len(dims) - 1 else np.ascontiguousarray(np.moveaxis(out, range(len(dims)), dims))


def _rows_sum(values, shape, index):
    """`index_sum` for a single index into the first dimension."""
    out = zeros(shape, values.dtype.num)
    matrix = shape[0], math.prod(shape[1:])
    flat = out if len(shape) == 2 else out.reshape(matrix)
    index = index if index.ndim == 1 else index.reshape(-1)
    values = values.reshape(index.size, matrix[1])
    try:
        add_rows(flat, index, values)
    except IndexError:  # at the first negative or out-of-range index
        out[...] = 0
        add_rows(flat, np.where(index < 0, index + shape[0], index), values)
    return out


def one_index_each(indices):
    """Return one integer index per indexed dimension, and these dimensions. Masks become positions of true elements."""
    plain, dims, d = [], [], 0
    for index in indices:
        if index is None:
            d += 1
            continue
        for part in private(index).nonzero() if index.dtype.kind == "b" else (index,):
            plain.append(part)
            dims.append(d)
            d += 1
    return plain, dims


dispatching(globals(), "add_rows index_add add_at scattered scatter_add scatter scatter_reduce index_copy index_sum")
