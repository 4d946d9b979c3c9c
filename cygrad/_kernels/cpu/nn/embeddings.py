"""Embedding and embedding-bag kernels: bag reductions, norm clipping, and gradients of the table.

The kernels of bags trust their indices, which callers have checked: those of users must be private.
"""

import numpy as np

from cygrad._kernels.cpu.base.arrays import dense, fill, new_array
from cygrad._kernels.cpu.base.half_sums import in_float32, is_half, sum_type
from cygrad._kernels.cpu.base.numpy_fallback import silent
from cygrad._kernels.cpu.base.reduce import norm
from cygrad._kernels.cpu.indexing.add_rows import add_rows as add_taken
from cygrad._kernels.cpu.indexing.scatter import add_rows
from cygrad._kernels.device.dispatch import dispatching


def rows(table, places):
    """The rows of a matrix at places within it."""
    return table.take(places, 0)


def added_rows(rows, indices, count, padding):
    """Sum the rows with equal index into a matrix of `count` rows; the row `padding`, if not negative, is 0."""
    if is_half(rows):
        return in_float32(added_rows, rows, indices, count, padding)
    out = new_array((count, rows.shape[1]), rows.dtype.num)
    fill(out, 0)
    add_rows(out, indices, rows)
    if padding >= 0:
        fill(out[padding], 0)  # rather than rows times 0, which would be NaN where a row is infinite
    return out


def frequency_scale(indices, dtype):
    """Factor for each row's gradient, 1 / frequency of its index. The indices must be private."""
    dtype = sum_type(dtype)
    scale = np.ones(len(indices), dtype)
    if len(indices):
        scale /= np.bincount(indices)[indices].astype(dtype)
    return scale


def scaled_to_norm(table, places, largest, p):
    """Return (indices of the rows with a norm above `largest`, these rows scaled down to it)."""
    rows = table[places]
    with np.errstate(all="ignore"):
        norms = norm(rows, p, (1,)).astype(np.float64)  # PyTorch too divides in float64
        longer = norms > largest
        factors = (largest / (norms[longer] + 1e-7)).astype(table.dtype)
        return places[longer], rows[longer] * factors[:, None]


def bag_of_each(starts, count):
    """The bag of each of `count` indices, given the bags' start positions."""
    return np.repeat(np.arange(len(starts)), np.append(starts[1:], count) - starts if len(starts) else 0)


def bag_sizes(bags, counted, count):
    """The number of counted indices (not padding) in each of `count` bags."""
    return np.bincount(bags[counted], minlength=count)


@silent
def sums_of_bags(table, places, bags, weights, counted, sizes, mean):
    """The sum or mean of the rows of each bag; 0 for an empty bag."""
    out = np.zeros((len(sizes), table.shape[1]), sum_type(table.dtype))
    if not counted.all():
        places, bags = places[counted], bags[counted]
        weights = None if weights is None else weights[counted]
    if len(places):
        is_alone = weights is None and table.flags.carray and not is_half(table)
        if not is_alone or not add_taken(out, bags, table, 0, dense(places)):
            taken = table.take(places, 0).astype(out.dtype, copy=False)
            add_rows(out, bags, taken if weights is None else taken * weights[:, None])
        if mean:
            out /= np.maximum(sizes, 1)[:, None].astype(out.dtype)
    return out.astype(table.dtype, copy=False)


def bag_scale(places, bags, sizes, mean, by_frequency, dtype):
    """Factor for each row's gradient; None if 1 everywhere."""
    if not mean and not by_frequency:
        return None
    dtype = sum_type(dtype)
    scale = np.ones(len(places), dtype)
    if mean:
        scale /= np.maximum(sizes, 1)[bags].astype(dtype)
    if by_frequency and len(places):
        scale /= np.bincount(places)[places].astype(dtype)
    return scale


def largest_of_bags(table, places, bags, sizes, counted):
    """Return (column-wise maximum of the rows of each bag, the rows it is from); 0 for an empty bag."""
    out = np.zeros((len(sizes), table.shape[1]), table.dtype)
    rows = np.zeros(out.shape, np.int64)
    bounds = np.searchsorted(bags, np.arange(len(sizes) + 1))
    for bag in np.flatnonzero(sizes).tolist():
        own = slice(bounds[bag], bounds[bag + 1])
        names = places[own][counted[own]]
        values = table[names]
        at = values.argmax(0)
        rows[bag] = names[at]
        out[bag] = values[at, np.arange(values.shape[1])]
    return out, rows


dispatching(
    globals(),
    "rows added_rows frequency_scale scaled_to_norm bag_of_each bag_sizes sums_of_bags bag_scale largest_of_bags",
)
