"""Selection of elements by rank without sorting everything. NaN sorts last.

The scratch memory is a few chunks, whatever the number of elements.
"""

import numpy as np

from cygrad._kernels.cpu.base import chunks
from cygrad._kernels.cpu.reduction.sorting import order_along


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
