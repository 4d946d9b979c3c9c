"""Rows of a matrix that integers name, alone and in bags."""

import numpy as np

from cygrad._kernels.cpu.base.arrays import dense, fill, new_array
from cygrad._kernels.cpu.base.numpy_fallback import silent
from cygrad._kernels.cpu.indexing.add_rows import add_rows as add_taken
from cygrad._kernels.cpu.indexing.scatter import add_rows
from cygrad._kernels.device.dispatch import dispatching


def added_rows(rows, indices, count):
    """A matrix of `count` rows: the sums of the rows with the same index."""
    out = new_array((count, rows.shape[1]), rows.dtype.num)
    fill(out, 0)
    add_rows(out, indices, rows)
    return out


def index_scale(indices, padding, by_frequency, dtype):
    """What the gradient of each taken row is multiplied by: 0 for padding, 1 / frequency; None if 1 everywhere."""
    if not by_frequency and padding < 0:
        return None
    scale = np.ones(len(indices), dtype)
    if by_frequency and len(indices):
        scale /= np.bincount(indices)[indices].astype(dtype)
    if padding >= 0:
        scale[indices == padding] = 0
    return scale


def scaled_to_norm(table, places, largest, p):
    """(the places whose rows have a norm above `largest`, these rows scaled to it)."""
    rows = table[places]
    with np.errstate(all="ignore"):
        norms = np.linalg.norm(rows, p, 1)
        longer = norms > largest
        factors = (largest / (norms[longer] + 1e-7)).astype(table.dtype)
        return places[longer], rows[longer] * factors[:, None]


def bag_of_each(starts, count):
    """Which bag each of `count` integers is in, of bags that start at these places."""
    return np.repeat(np.arange(len(starts)), np.append(starts[1:], count) - starts if len(starts) else 0)


def bag_sizes(bags, counted, count):
    """How many integers that count each of `count` bags holds."""
    return np.bincount(bags[counted], minlength=count)


@silent
def sums_of_bags(table, places, bags, weights, counted, sizes, mean):
    """For each bag the sum of its rows, or their mean; 0 for an empty one."""
    out = np.zeros((len(sizes), table.shape[1]), table.dtype)
    if not counted.all():
        places, bags = places[counted], bags[counted]
        weights = None if weights is None else weights[counted]
    if len(places):
        if weights is not None or not table.flags.carray or not add_taken(out, bags, table, 0, dense(places)):
            taken = table.take(places, 0)
            add_rows(out, bags, taken if weights is None else taken * weights[:, None])
        if mean:
            out /= np.maximum(sizes, 1)[:, None].astype(table.dtype)
    return out


def bag_scale(places, bags, counted, sizes, mean, by_frequency, dtype):
    """(0 for padding and else 1, what the gradient of each row is multiplied by); None if 1 everywhere."""
    if not mean and not by_frequency and counted.all():
        return None
    kept = counted.astype(dtype)
    scale = kept.copy()
    if mean:
        scale /= np.maximum(sizes, 1)[bags].astype(dtype)
    if by_frequency and len(places):
        scale /= np.bincount(places)[places].astype(dtype)
    return kept, scale


def largest_of_bags(table, places, bags, sizes, counted):
    """(for each bag the largest of its rows in each column, which rows these are); 0 for an empty bag."""
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
    globals(), "added_rows index_scale scaled_to_norm bag_of_each bag_sizes sums_of_bags bag_scale largest_of_bags"
)
