"""Binary search, membership and unique values on GPUs; see `_kernels/cpu/reduction/searching.py`."""

import numpy as np

from cygrad._kernels.device.cupy_library import cupy
from cygrad._kernels.device.gpu_forms import half_as_float32
from cygrad._kernels.gpu.base.elementwise import to_sort
from cygrad._kernels.gpu.launch.elementwise_program import elementwise

# NaN sorts after all numbers.
_search = elementwise(
    "searchsorted",
    "T value, raw T sequence, int64 width, int64 length, bool after_equals",
    "int64 place",
    """W v = value;
    long long start = width ? i / width * length : 0, low = 0, high = length;
    while (low < high) {
        long long middle = (low + high) >> 1;
        W s = sequence[start + middle];
        bool less = s < v || (v != v && s == s), equal = s == v || (s != s && v != v);
        if (less || (after_equals && equal)) low = middle + 1; else high = middle;
    }
    place = low;""",
)


@half_as_float32
def searchsorted(sequence, values, side):
    """Return the insertion index of each value along the last axis; other axes match, or `sequence` is a vector."""
    kind = np.result_type(sequence.dtype, values.dtype)
    sequence = cupy().ascontiguousarray(sequence, kind)
    values = values.astype(kind, copy=False)
    width = 0 if sequence.ndim == 1 else values.shape[-1]
    return _search(values, sequence, width, sequence.shape[-1], side == "right")


@half_as_float32
def isin(elements, tests, unique, invert):
    """Whether each element is among `tests`, or is not if `invert`."""
    if not tests.size:
        return cupy().full(elements.shape, bool(invert))
    kind = np.result_type(elements.dtype, tests.dtype)
    ordered = cupy().sort(to_sort(tests.reshape(-1).astype(kind, copy=False)))
    elements = elements.astype(kind, copy=False)
    places = cupy().minimum(searchsorted(ordered, elements, "left"), len(ordered) - 1)
    found = ordered[places]
    return found != elements if invert else found == elements


def frequencies(numbers):
    """Return how often each number of a vector occurs in it."""
    ordered = cupy().sort(numbers)
    return searchsorted(ordered, numbers, "right") - searchsorted(ordered, numbers, "left")


@half_as_float32
def distinct(array, with_inverse, with_counts):
    """Return (sorted distinct values, inverse indices, counts) of all elements; each NaN is distinct.

    The second and third are None unless requested. Waits for the GPU, which determines the number of values.
    """
    flat = array.reshape(-1)
    order = cupy().argsort(to_sort(flat))
    ordered = flat[order]
    first = cupy().ones(flat.size, bool)
    first[1:] = ordered[1:] != ordered[:-1]
    starts, inverse, counts = cupy().flatnonzero(first), None, None
    if with_inverse:
        inverse = cupy().empty(flat.size, np.int64)
        inverse[order] = cupy().cumsum(first) - 1
        inverse = inverse.reshape(array.shape)
    if with_counts:
        counts = cupy().concatenate([starts[1:], cupy().full(min(len(starts), 1), flat.size, np.int64)]) - starts
    return ordered[starts], inverse, counts
