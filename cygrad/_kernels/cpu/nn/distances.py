"""Pairwise distances of rows, cross products, and renormalization of slices."""

from typing import Any

import numpy as np

import cygrad._kernels.cpu.base.loop_table as loop_table
from cygrad._kernels.cpu.base import chunks
from cygrad._kernels.cpu.base.arrays import dense as dense_in_memory
from cygrad._kernels.cpu.base.arrays import new_array
from cygrad._kernels.cpu.base.elementary import MULTIPLY
from cygrad._kernels.cpu.base.elementwise import power
from cygrad._kernels.cpu.base.loop_table import LOOP_SIZES, LOOPS
from cygrad._kernels.cpu.base.numpy_fallback import silent
from cygrad._kernels.cpu.base.reduce import norm
from cygrad._kernels.cpu.base.stack_chunks import reduced, sum_of_products
from cygrad._kernels.device.cupy_library import dense
from cygrad._kernels.tape.calls import noted

DISTANCES, FINISHED_DISTANCES, PAIRS_GRADIENT = LOOPS.DISTANCES, LOOPS.FINISHED_DISTANCES, LOOPS.PAIRS_GRADIENT
PULLED_TOGETHER = LOOP_SIZES.PULLED_TOGETHER  # columns per work item of PAIRS_GRADIENT
PIECE = 1 << 15  # differences per chunk
COPIED = 1 << 16  # elements of columns copied at a time
_KINDS = {2: 0, 1: 1, np.inf: 2}  # as in distances.h
BLOCK = 1 << 15  # differences computed at a time in `pdist` and its gradient
DIFFERENCES = 1 << 17  # the same in `cdist`
FEWEST_COLUMNS = 32  # for up to so many, sums of squares are faster than products of matrices, and more accurate
CANCELLED = 0.25  # as in distances.h
TINY = 1e-7  # added to the norm by which a slice is divided


@silent
def cdist(x, y, p, by_product):
    """p-norm distances between the rows of `x` and the rows of `y`, along the last two axes."""
    batch = x.shape[:-2]
    if y.shape[:-2] != batch:
        batch = np.broadcast_shapes(batch, y.shape[:-2])
        x, y = (np.broadcast_to(a, (*batch, *a.shape[-2:])) for a in (x, y))
    out = np.empty((*batch, x.shape[-2], y.shape[-2]), x.dtype)
    by_product = p == 2 and by_product and x.shape[-1] > 0
    if p in _KINDS and loop_table.has_loops(x) and x.dtype == y.dtype and x.size and y.size:
        by_product = by_product and x.shape[-1] > FEWEST_COLUMNS
        return _in_parts(_by_loop_of_products if by_product else _by_loop, out, x, y, p)
    _write_distances(out, x, y, p, by_product)
    return out


def _write_distances(out, x, y, p, by_product):
    """Compute `cdist` recursively for some matrices, or some rows of one, as many at a time as fit in a chunk."""
    size = out.size * (1 if by_product else x.shape[-1])
    if size <= DIFFERENCES or out.ndim == 2 and len(out) == 1:
        out[...] = distances_by_product(x, y) if by_product else _by_difference(x, y, p)
    elif len(out) == 1:
        _write_distances(out[0], x[0], y[0], p, by_product)
    else:
        step = max(1, len(out) * DIFFERENCES // size)
        for start in range(0, len(out), step):
            part = slice(start, start + step)
            _write_distances(out[part], x[part], y[part] if out.ndim > 2 else y, p, by_product)


def distances_by_product(x, y):
    """2-norm distances from the matrix product, those of near points from differences."""
    products, (own, others) = centred_products(x, y)
    both = own[..., :, None] + others[..., None, :]
    apart = np.subtract(both, 2 * products, out=products)
    is_lost = ~((apart >= both * CANCELLED) & _are_accurate(apart, x.shape[-1]))
    *batch, i, j = np.nonzero(is_lost)
    found = np.sqrt(apart, out=apart)
    step = max(1, DIFFERENCES // x.shape[-1])
    for start in range(0, len(i), step):
        part = slice(start, start + step)
        at = tuple(b[part] for b in batch)
        found[(*at, i[part], j[part])] = norm(x[(*at, i[part])] - y[(*at, j[part])], 2, (1,))
    return found


def centred_products(x, y):
    """Return (the products of the rows of `x` and `y` about a center, the squares of the rows of each about it).

    Without a center, points that are far from 0 and near each other would lose all digits.
    """
    center = x.mean(-2, keepdims=True) if x.shape[-2] else x.dtype.type(0)
    a, b = x - center, y - center
    return np.matmul(a, b.swapaxes(-1, -2)), [np.square(each).sum(-1) for each in (a, b)]


def _are_accurate(sums, count):
    """Whether each sum of so many powers is one that lost no digits by underflow, and is finite."""
    info = np.finfo(sums.dtype)
    return (sums >= count * info.tiny) & (sums <= info.max)


def _by_difference(x, y, p):
    """Distances from all differences, a few columns at a time."""
    pairs = max(1, x.size // max(x.shape[-1], 1) * y.shape[-2])
    step = max(1, DIFFERENCES // pairs)
    found = _powers(x[..., :step], y[..., :step], p)
    for start in range(step, x.shape[-1], step):
        here = slice(start, start + step)
        (np.maximum if p == np.inf else np.add)(found, _powers(x[..., here], y[..., here], p), out=found)
    if p in (0, 1, np.inf):
        return found
    if not _are_accurate(found, x.shape[-1]).all():
        return _rescaled(x, y, p, step)
    return np.sqrt(found) if p == 2 else found ** (1 / p)


def _rescaled(x, y, p, step):
    """The same where powers leave the range: the norm of norms of a few columns each."""
    norms = [
        norm(x[..., :, None, first : first + step] - y[..., None, :, first : first + step], p, (x.ndim,), True)
        for first in range(0, x.shape[-1], step)
    ]
    return norm(np.concatenate(norms, -1), p, (x.ndim,))


def _powers(x, y, p):
    """Sums of the powers of the differences, or the largest difference."""
    difference = x[..., :, None, :] - y[..., None, :, :]
    if p == 2:
        return np.einsum("...i,...i->...", difference, difference)
    if p == 0:
        return (difference != 0).sum(-1)
    size = np.abs(difference, out=difference)
    if p == np.inf:
        return size.max(-1, initial=0)
    return size.sum(-1) if p == 1 else np.power(size, p, out=size).sum(-1)


def _in_parts(function, out, x, y, p):
    """Run `function` on a few matrices of a large batch at a time, so that only these are copied."""
    size = max(x.size, y.size)
    if out.ndim == 2 or size <= chunks.SIZE:
        function(out, x, y, p)
    elif len(out) == 1:
        _in_parts(function, out[0], x[0], y[0], p)
    else:
        step = max(1, len(out) * chunks.SIZE // size)
        for start in range(0, len(out), step):
            part = slice(start, start + step)
            _in_parts(function, out[part], x[part], y[part], p)
    return out


def _by_loop_of_products(out, x, y, p):
    """Overwrite `out` with the 2-norm distances between rows of `x` and of `y`, from the matrix product."""
    out[...], squares = centred_products(x, y)
    arrays = out, None, out, *map(dense_in_memory, (x, y, *squares))
    k, rows, m = x.shape[-1], x.shape[-2], y.shape[-2]
    loop_table.run(FINISHED_DISTANCES, arrays, (k, rows, m, 0, 0), 0, x.size // k, max(1, PIECE // m))


def _by_loop(out, x, y, p, are_pairs=False):
    """Overwrite `out` with the distances between rows of `x` and of `y`; with `are_pairs` only to later rows."""
    rows, k = x.shape[-2:]
    m = y.shape[-2]
    items = x.size // k - are_pairs
    step = max(1, COPIED // (max(x.size, y.size) // k))
    for first in range(0, k, step):  # columns are made contiguous
        xs = dense_in_memory(x[..., first : first + step].swapaxes(-1, -2))
        ys = xs if x is y else dense_in_memory(y[..., first : first + step].swapaxes(-1, -2))
        numbers = xs.shape[-2], rows, m, _KINDS[p], are_pairs, first > 0, k
        is_last = p == 2 and first + step >= k
        by_rows = (dense_in_memory(x), dense_in_memory(y)) if is_last else (None, None)
        arrays = xs, ys, out, *by_rows, None, None
        loop_table.run(DISTANCES, arrays, numbers, 0, items, max(1, PIECE // (xs.shape[-2] * m)))
    return out


def pdist(x, p):
    """p-norm distances of each row from the rows after it, concatenated."""
    n = len(x)
    out = np.empty(n * (n - 1) // 2, x.dtype)
    if p in _KINDS and loop_table.has_loops(x) and out.size and x.size:
        return _by_loop(out, x, x, p, True)
    start = 0
    step = max(1, BLOCK // max(x.size, 1))  # rows at a time; distances from earlier rows are discarded
    for first in range(0, n - 1, step):
        last = min(first + step, n - 1)
        found = cdist(x[first:last], x[first + 1 :], p, False)
        after = np.arange(n - 1 - first) >= np.arange(last - first)[:, None]
        stop = start + int(np.count_nonzero(after))
        out[start:stop] = found[after]
        start = stop
    return out


@noted
@silent
def pdist_gradient(g, x, distance, p):
    """Gradient of `pdist` for p > 0. Without a loop, by NumPy, a chunk of rows and columns at a time."""
    n = len(x)
    if p in _KINDS and loop_table.has_loops(x) and x.dtype == g.dtype == distance.dtype:
        x, out = dense_in_memory(x), new_array(x.shape, x.dtype.num)
        pairs = [loop_table.of_size(array, x, n * (n - 1) // 2) for array in (g, distance)]
        loop_table.run(PAIRS_GRADIENT, (x, *pairs, out), (*x.shape, _KINDS[p]), 0, -(-x.shape[1] // PULLED_TOGETHER), 1)
        return out
    out = np.zeros_like(x)
    own = np.arange(n)
    step = max(1, BLOCK // max(n, 1))
    for first in range(0, n if n > 1 else 0, step):
        rows = own[first : first + step]
        low, high = np.minimum(rows[:, None], own), np.maximum(rows[:, None], own)
        places = low * (2 * n - 1 - low) // 2 + high - low - 1  # of each pair
        places[rows - first, rows] = 0
        weight, far = g[places], distance[places]
        together = max(1, BLOCK // weight.size)
        for begin in range(0, x.shape[1], together):
            part = np.ascontiguousarray(x[:, begin : begin + together].T)
            pull = part[:, rows, None] - part[:, None]
            pull[:, rows - first, rows] = 0  # also for infinite elements
            if p == np.inf:
                pull = np.sign(pull) * (np.abs(pull) == far)
            else:
                size = np.abs(pull) / far
                pull = np.where(pull == 0, 0, np.sign(pull) * size ** (p - 1)).astype(x.dtype, copy=False)
            pull *= weight
            out[first : first + step, begin : begin + together] = pull.sum(-1).T
    return out


@silent
def cross(a, b, axis):
    """Cross products of vectors along an axis."""
    if a.shape != b.shape:
        a, b = np.broadcast_arrays(a, b)
    out = np.empty(a.shape, a.dtype, like=a)
    a, b, parts = a.swapaxes(axis, 0), b.swapaxes(axis, 0), out.swapaxes(axis, 0)
    for i, j, k in ((0, 1, 2), (1, 2, 0), (2, 0, 1)):
        part = parts[i, ...]
        np.multiply(a[j], b[k], out=part)
        part -= a[k] * b[j]
    return out


_vecdot: Any = np.vecdot  # NumPy's type stubs lack `axis`


@silent
def vecdot(a, b, axis):
    """Inner products of vectors along an axis, conjugating the first."""
    return _vecdot(a, b, axis=axis)


@silent
def renorm(a, p, axis, largest):
    """Scale down each slice along the axis whose p-norm exceeds `largest` to that norm."""
    others = tuple([d for d in range(a.ndim) if d != axis])
    if p == 2 and type(a) is np.ndarray and a.dtype.char in "fd":
        norms = norm(a, 2, others, True)
        return MULTIPLY(a, np.where(norms > largest, largest / (norms + TINY), 1).astype(a.dtype, copy=False))
    norms = norm(a, p, others, True) if a.size else np.abs(a).sum(others, keepdims=True)
    return dense(a * np.where(norms > largest, largest / (norms + TINY), 1).astype(norms.dtype))


def has_renorm_gradient(x, p):
    """Whether `renorm_gradient` supports the norm and the type."""
    return p != np.inf and isinstance(x, np.ndarray) and x.dtype.char in "fd"


@silent
def renorm_gradient(g, x, p, axis, largest):
    """Gradient of `renorm` for real numbers, chunk by chunk."""
    others = tuple(d for d in range(x.ndim) if d != axis)

    def norms_of(a, axes, keepdims):
        return norm(a, p, axes, keepdims)

    norms = reduced(norms_of, x, others, True, norms_of)
    is_long = norms > largest
    if not is_long.any():
        return g
    safe = np.where(is_long, norms, 1).astype(x.dtype)
    factor = np.where(is_long, largest / (safe + TINY), 1).astype(x.dtype)
    along = sum_of_products(g, x, others)
    shrink = np.where(is_long, along / (safe + TINY) * factor, 0).astype(x.dtype)

    def slopes(g, x, factor, shrink, safe):
        slope = x / safe
        if p != 2:
            slope = np.copysign(power(np.abs(slope, out=slope), p - 1), x)
        if p <= 1:
            slope[x == 0] = 0
        slope *= shrink
        return np.subtract(g * factor, slope, out=slope)

    return chunks.in_blocks(slopes, [g, x, factor, shrink, safe])
