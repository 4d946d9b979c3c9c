"""Linear maps along array axes, each given by a table of taps: window averages and interpolation.

A table lists which input positions contribute to each result, and their weights. Its transpose, which maps results back
to inputs, is also a table.
"""

import math
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

import cygrad._kernels.cpu.base.loop_table as loop_table
from cygrad._kernels.cpu.base import chunks
from cygrad._kernels.cpu.base.arrays import dense, new_array
from cygrad._kernels.cpu.base.loop_table import LOOP_SIZES, LOOPS
from cygrad._kernels.cpu.base.numpy_fallback import silent
from cygrad._kernels.cpu.base.reduce import sum as total
from cygrad._kernels.cpu.image.window_geometry import SCRATCH

RESAMPLE, RESAMPLE_PLANES = LOOPS.RESAMPLE, LOOPS.RESAMPLE_PLANES
FEW = LOOP_SIZES.FEW_RESAMPLED  # elements; up to this, NumPy's call overhead exceeds a plain loop


class Table:
    """Tap t of result i reads input position `places[i, t]` with weight `weights[i, t]`, if `counts[i] > t`.

    Without `weights`, all are 1.
    """

    def __init__(self, size, places, counts=None, weights=None):
        self.size = size  # of the input
        self.places = np.ascontiguousarray(places, np.int64)
        self.counts = np.full(len(places), self.places.shape[1]) if counts is None else np.asarray(counts, np.int64)
        self.weights = None if weights is None else np.ascontiguousarray(weights, np.float64)

    def __len__(self):
        return len(self.places)

    @cached_property
    def transposed(self):
        """The table of the transposed map."""
        width = self.places.shape[1]
        used = np.arange(width) < self.counts[:, None]
        results, sources = np.nonzero(used)[0], self.places[used]
        order = np.argsort(sources, kind="stable")
        counts = np.bincount(sources, minlength=self.size)
        places = np.zeros((self.size, int(np.max(counts)) if len(counts) else 0), np.int64)
        number = np.arange(len(order)) - np.repeat(np.cumsum(counts) - counts, counts)
        places[sources[order], number] = results[order]
        weights = None
        if self.weights is not None:
            weights = np.zeros(places.shape)
            weights[sources[order], number] = self.weights[used][order]
        return Table(len(self), places, counts, weights)

    @cached_property
    def taps(self):
        """(results, places, weights) of each tap: slices where regular, `None` for weights of 1."""
        found = []
        for t in range(self.places.shape[1]):
            rows = np.nonzero(self.counts > t)[0]
            if len(rows):
                weights = None if self.weights is None else self.weights[rows, t]
                found.append((as_slice(rows), as_slice(self.places[rows, t]), weights))
        return found

    @cached_property
    def repeats(self):
        """How many consecutive results copy the same input position, if the table does only that; else 0."""
        plain = self.weights is None and self.places.shape[1] == 1 and self.counts.all()
        times = repeats(self.places[:, 0]) if plain else 0
        return times if times * self.size == len(self) else 0

    @cached_property
    def tiles(self):
        """How many positions each result sums, if these tile the input in order and are not very few; else 0."""
        count = self.places.shape[1]
        plain = self.weights is None and count >= 8 and count * len(self) == self.size and (self.counts == count).all()
        return count if plain and (self.places.reshape(-1) == np.arange(self.size)).all() else 0

    @cached_property
    def spans(self):
        """The slice that each result sums, if there are few results with long slices; else None."""
        if self.weights is not None or self.places.shape[1] <= 4 * len(self) + 4:
            return None
        spans = [as_slice(row[:count]) for row, count in zip(self.places, self.counts)]
        return spans if all(isinstance(span, slice) for span in spans) else None

    @cached_property
    def has_loop(self):
        """Whether each result is a sum of few elements, which the compiled loop adds one by one."""
        return not self.tiles and self.spans is None


def repeats(places):
    """How often each input position is used, if all are, in order and equally often; else 0."""
    if not len(places) or places[-1] < 0 or len(places) % (places[-1] + 1):
        return 0
    times = len(places) // (int(places[-1]) + 1)
    return times if (places == np.arange(len(places)) // times).all() else 0


def as_slice(index):
    """A slice that selects the same positions in ascending order, or the index itself."""
    if len(index) == 0:
        return slice(0, 0)
    step = int(index[1] - index[0]) if len(index) > 1 else 1
    if step <= 0 or (len(index) > 2 and (np.diff(index) != step).any()):
        return index
    return slice(int(index[0]), int(index[-1]) + 1, step)


def mapped(a, tables, divisor, back):
    """Apply the tables, then divide by `divisor`; with `back`, the transpose of this."""
    first = a.ndim - len(tables)
    if back:
        tables = tuple([None if table is None else table.transposed for table in tables])
        divisor, by = None, None if divisor is None else divisor.astype(a.dtype)
    else:
        by = None
        planes = planes_of(tables[-2:]) if a.size <= FEW and (divisor is None or divisor.size == 1) else None
        if planes and loop_table.has_loops(a):
            if len(tables) == 3 and tables[0] is not None:
                a = along(a, first, tables[0])
            return planes.mapped(a, divisor)
    out = resample(a, tables, first, by)
    if out is a:
        out = a.copy()
    if divisor is not None:
        if out.dtype.kind in "iu":  # rounded towards zero
            divisor = divisor.astype(out.dtype)
            return (np.sign(out) * np.sign(divisor) * (np.abs(out) // np.abs(divisor))).astype(out.dtype)
        out /= divisor.astype(out.dtype)
    return out


@lru_cache(256)
def passes(tables):
    """The axes whose table is not the identity, counted from the first table's axis, in the order to map them.

    Tables that shrink the array come first, rows before elements; tables that enlarge it last, elements before rows.
    """
    axes = [d for d, table in enumerate(tables) if table is not None and table.repeats != 1]
    return sorted(axes, key=lambda d: (growth(tables[d]) > 1, d if growth(tables[d]) <= 1 else -d))


class Planes:
    """Arguments of the loop over small planes with a table for both axes."""

    def __init__(self, tables, axes):
        before = shape = [table.size for table in tables]
        arrays: list[Any] = []
        numbers: list[int] = []
        for d in axes:
            table = tables[d]
            inner, outer = (shape[1], 1) if d == 0 else (1, shape[0])
            arrays += table.places, table.counts, table.weights
            numbers += len(table), table.places.shape[1], table.size, inner, outer
            shape = [*shape[:d], len(table), *shape[d + 1 :]]
        self.tables, self.shape = tuple(arrays), tuple(shape)
        self.numbers = *numbers, math.prod(before), math.prod(shape)
        self.between = math.prod((numbers[0], *numbers[3:5]))  # elements between the passes

    def mapped(self, a, divisor):
        outer = a.shape[:-2]
        out = new_array(outer + self.shape, a.dtype.num)
        count, by = math.prod(outer), 1 if divisor is None else divisor.item()
        loop_table.run(RESAMPLE_PLANES, (dense(a), out, *self.tables), self.numbers, by, count, count)
        return out


@lru_cache(256)
def planes_of(tables):
    """The `Planes` for these tables; None unless there are two that change something, or if NumPy is better."""
    axes = passes(tables)
    if len(tables) != 2 or len(axes) != 2 or not all(table.has_loop for table in tables):
        return None
    planes = Planes(tables, axes)
    return planes if planes.between <= FEW else None


divided = silent(np.divide)


def resample(a, tables, first, divisor=None):
    """Divide, then map the axes from `first` on by one table each; None leaves an axis unchanged."""
    axes = passes(tuple(tables))
    outer = math.prod(a.shape[:first])
    if a.size <= chunks.SIZE or outer < 2 or not axes or len(axes) + (divisor is not None) < 2:
        if divisor is not None:
            a = divided(a, divisor)
        for d in axes:
            a = along(a, first + d, tables[d])
        return a
    source = np.ascontiguousarray(a).reshape(outer, *a.shape[first:])
    sizes = [n if table is None else len(table) for n, table in zip(a.shape[first:], tables)]
    out = np.empty((outer, *sizes), a.dtype)
    step = max(1, chunks.SIZE * outer // a.size)
    for start in range(0, outer, step):
        part = source[start : start + step]
        if divisor is not None:
            part = divided(part, divisor)
        for d in axes[:-1]:
            part = along(part, d + 1, tables[d])
        along(part, axes[-1] + 1, tables[axes[-1]], out[start : start + step])
    return out.reshape(*a.shape[:first], *sizes)


def growth(table):
    return len(table) / max(table.size, 1)


def along(a, axis, table, result=None):
    """Map one axis, into the contiguous array `result` if given."""
    outer, inner = math.prod(a.shape[:axis]), math.prod(a.shape[axis + 1 :])
    if result is None and a.size <= FEW and table.has_loop and loop_table.has_loops(a):
        m, width = table.places.shape
        result = new_array((*a.shape[:axis], m, *a.shape[axis + 1 :]), a.dtype.num)
        arrays = dense(a), result, table.places, table.counts, table.weights
        loop_table.run(RESAMPLE, arrays, (m, width, table.size, inner), 0, outer, outer)
        return result
    return along_by_numpy(a, axis, table, result, outer, inner)


@silent
def along_by_numpy(a, axis, table, result, outer, inner):
    source = np.ascontiguousarray(a).reshape(outer, a.shape[axis], inner)
    out = np.empty((outer, len(table), inner), a.dtype) if result is None else result.reshape(outer, -1, inner)
    step = max(1, SCRATCH // 4 // max(1, len(table) * inner * a.itemsize))
    for start in range(0, outer, step):
        part = slice(start, start + step)
        if table.repeats:
            for i in range(table.repeats):
                out[part, i :: table.repeats] = source[part]
        elif table.tiles:
            out[part] = total(source[part].reshape(-1, len(table), table.tiles, inner), (2,))
        elif table.spans is not None:
            for i, span in enumerate(table.spans):
                np.add.reduce(source[part, span], axis=1, dtype=a.dtype, out=out[part, i])
        else:
            sum_taps(source[part], table.taps, out[part])
    return out.reshape(*a.shape[:axis], len(table), *a.shape[axis + 1 :])


def sum_taps(source, taps, out):
    """Write the weighted sum over all taps to `out`."""
    everything = bool(taps) and isinstance(taps[0][0], slice) and taps[0][0] == slice(0, out.shape[1], 1)
    if not everything:
        out[...] = 0
    for number, (rows, places, weights) in enumerate(taps):
        if number == 0 and everything and weights is None and not isinstance(places, slice):
            np.take(source, places, axis=1, out=out, mode="clip")  # "raise" would make a copy
            continue
        taken = source[:, places] if isinstance(places, slice) else source.take(places, axis=1)
        if weights is not None:
            weights = weights.astype(out.dtype)[:, None]
        if number == 0 and everything:
            if weights is None:
                out[...] = taken
            else:
                np.multiply(taken, weights, out=out)
        else:
            if weights is not None:
                taken = taken * weights
            if isinstance(rows, slice):
                view = out[:, rows]
                view += taken
            else:
                out[:, rows] += taken
