"""Embedding lookups and bags on GPUs; see `_kernels/cpu/nn/embeddings.py`. Nothing here waits for the GPU."""

import numpy as np

from cygrad._kernels.device.cupy_library import cupy
from cygrad._kernels.gpu.base import reduce
from cygrad._kernels.gpu.indexing.scatter import add_rows
from cygrad._kernels.gpu.launch.elementwise_program import elementwise
from cygrad._kernels.gpu.launch.program import wide_type
from cygrad._kernels.gpu.reduction.searching import frequencies, searchsorted


def rows(table, places):
    """The rows of a matrix at places within it."""
    return table.take(places, 0)


def added_rows(rows, indices, count, padding):
    """Return a matrix of `count` rows: the sums of `rows` with the same index, and 0 in row `padding`, if any."""
    out = cupy().zeros((count, rows.shape[1]), rows.dtype)
    add_rows(out, indices, rows)
    if padding >= 0:
        out[padding] = 0
    return out


def frequency_scale(indices, dtype):
    """Return the factor of each gathered row's gradient, 1 / frequency of its index."""
    dtype = wide_type(dtype)
    scale = cupy().ones(len(indices), dtype)
    return scale / frequencies(indices).astype(dtype) if len(indices) else scale


def scaled_to_norm(table, places, largest, p):
    """Return (places, their rows scaled down to a norm of at most `largest`)."""
    rows = table[places]
    norms = reduce.norm(rows.astype(wide_type(rows.dtype), copy=False), p, (1,), True)
    factors = cupy().where(norms > largest, largest / (norms + 1e-7), 1).astype(table.dtype)
    return places, rows * factors


def bag_of_each(starts, count):
    """Return the bag of each of `count` integers, given the starts of the bags."""
    return searchsorted(starts.astype(np.int64, copy=False), cupy().arange(count), "right") - 1


def bag_sizes(bags, counted, count):
    """Return the number of counted integers in each of `count` bags."""
    out = cupy().zeros((count, 1), np.int64)
    add_rows(out, bags, counted.astype(np.int64)[:, None])
    return out[:, 0]


def sums_of_bags(table, places, bags, weights, counted, sizes, mean):
    """Return the sum or mean of each bag's rows; 0 for an empty bag."""
    wide = wide_type(table.dtype)
    out = cupy().zeros((len(sizes), table.shape[1]), wide)
    rows = cupy().take(table, places, 0).astype(wide, copy=False)
    if weights is not None:
        rows = rows * weights[:, None]
    add_rows(out, cupy().where(counted, bags, -1), rows)
    found = out / cupy().maximum(sizes, 1).astype(wide)[:, None] if mean else out
    return found.astype(table.dtype, copy=False)


def bag_scale(places, bags, sizes, mean, by_frequency, dtype):
    """Return the factor of each row's gradient; None if all are 1."""
    if not mean and not by_frequency:
        return None
    dtype = wide_type(dtype)
    scale = cupy().ones(len(places), dtype)
    if mean:
        scale = scale / cupy().maximum(sizes, 1)[bags].astype(dtype)
    if by_frequency and len(places):
        scale = scale / frequencies(places).astype(dtype)
    return scale


_largest = elementwise(
    "largest_of_bags",
    "raw T table, raw int64 places, raw bool counted, raw int64 bounds, int64 width",
    "raw T out, raw int64 rows",
    """const long long bag = i / width, column = i % width;
    bool found = false;
    W largest = W(0);
    long long row = 0;
    for (long long k = bounds[bag]; k < bounds[bag + 1]; k++) {
        if (!counted[k]) continue;
        const W value = table[places[k] * width + column];
        if (!found || value > largest || (value != value && largest == largest)) { largest = value; row = places[k]; }
        found = true;
    }
    out[i] = T(largest);
    rows[i] = row;""",
)


def largest_of_bags(table, places, bags, sizes, counted):
    """Return (the column-wise maximum of each bag's rows, the rows it came from); 0 for an empty bag."""
    count, width = len(sizes), table.shape[1]
    out, rows = cupy().zeros((count, width), table.dtype), cupy().zeros((count, width), np.int64)
    bounds = searchsorted(bags, cupy().arange(count + 1), "left")
    if out.size and table.size:
        places = places % len(table)  # wrap indices that are out of bounds, too
        _largest(cupy().ascontiguousarray(table), places, counted, bounds, width, out, rows, size=out.size)
    return out, rows
