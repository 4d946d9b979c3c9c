"""Indexing, masking and in-place index writes on GPUs; takes the arguments of `_kernels/cpu/indexing/indexing.py`.

Out-of-bounds indices wrap around modulo the length, because checking them would have to wait for the GPU.
"""

import numpy as np

from cygrad._kernels.device.cupy_library import as_number, cupy, is_array
from cygrad._kernels.gpu.base.elementwise import choose
from cygrad._kernels.gpu.indexing.scatter import index_shape, index_sum, joined_indices, write_at


def index(array, indices):
    """Fancy indexing; `indices` contains integer or boolean arrays, and None for dimensions taken whole."""
    plain, dims = joined_indices(indices, array.device.id)
    if len(plain) == 1:
        return cupy().take(array, plain[0], dims[0])
    return cupy().ascontiguousarray(array[_spread(plain, dims)])


def _spread(plain, dims):
    found = [slice(None)] * (dims[-1] + 1)
    for index, d in zip(plain, dims):
        found[d] = index
    return tuple(found)


def index_put(array, indices, values, accumulate=False):
    """Write into `array` where `index` would read, or accumulate there, counting duplicates."""
    values = as_number(values)
    if not accumulate and _is_mask_alone(array, indices) and (not is_array(values) or values.ndim == 0):
        mask = indices[0].reshape(indices[0].shape + (1,) * (array.ndim - indices[0].ndim))
        # does not need the number of selected elements
        cupy().copyto(array, element_of(values, array.dtype), where=mask)
        return array
    plain, dims = joined_indices(indices, array.device.id)
    if not accumulate:
        if plain[0].size:
            write_at(array, _spread(plain, dims), values)
        return array
    if not is_array(values):
        values = cupy().full((), values)
    spread = cupy().broadcast_to(values.astype(array.dtype, copy=False), index_shape(array.shape, plain, dims))
    added = [None] * (dims[-1] + 1)
    for index, d in zip(plain, dims):
        added[d] = index
    array += index_sum(spread, array.shape, added)
    return array


def _is_mask_alone(array, indices):
    return len(indices) == 1 and is_array(indices[0]) and indices[0].dtype.kind == "b"


def index_select(array, axis, index):
    """Return the slices `index` along an axis."""
    return array.copy() if array.ndim == 0 else cupy().take(array, index, axis)


def gather(array, axis, index):
    """Gather elements at their own position, except for `index` along the axis."""
    if index.size == 0:
        return cupy().empty(index.shape, array.dtype)
    if array.ndim == 0:
        return cupy().broadcast_to(array, index.shape).copy()
    if index.ndim == 0:
        return cupy().take(array, index)
    part = array[tuple(slice(None) if d == axis else slice(0, n) for d, n in enumerate(index.shape))]
    return cupy().take_along_axis(part, index, axis)


def masked_fill(array, value, mask):
    """Return a copy, broadcast with the mask, with `value` where the mask holds."""
    return (
        cupy()
        .ascontiguousarray(choose(mask, element_of(value, array.dtype), array))
        .reshape(cupy().broadcast_shapes(array.shape, mask.shape))
    )


def element_of(value, dtype):
    """Return a scalar of that type, in host memory or on the GPU."""
    if is_array(value):
        return value.astype(dtype, copy=False)
    element = np.empty((), dtype)
    np.copyto(element, value, casting="unsafe")
    return element[()]


def fill_where(array, value, mask):
    """Write `value` into `array` where the mask holds."""
    cupy().copyto(array, element_of(value, array.dtype), where=mask)


def take(array, numbers):
    """Return elements by their number in the flattened array; negative numbers count from the end."""
    if not array.size:
        return cupy().empty(numbers.shape, array.dtype)
    return cupy().take(array.reshape(-1), numbers)


def put(array, numbers, values, accumulate):
    """Return a copy with `values` written, or added, at these numbers of the flattened array."""
    out = array.copy("C")
    numbers, values = numbers.reshape(-1), values.reshape(-1)
    if numbers.size:
        index_put(out.reshape(-1), [numbers], values, accumulate)
    return out


def masked_select(array, mask):
    """Return the elements where the mask holds, as a vector; both broadcast. Waits for the GPU, for their number."""
    if array.shape != mask.shape:
        array, mask = cupy().broadcast_arrays(array, mask)
    return array[mask]


def _spread_mask(array, mask):
    """Return (a copy of the array broadcast with the mask, the broadcast mask, each element's index in the source)."""
    out = cupy().array(cupy().broadcast_to(array, cupy().broadcast_shapes(array.shape, mask.shape)), order="C")
    mask = cupy().broadcast_to(mask, out.shape)
    return out, mask, cupy().cumsum(mask.reshape(-1), dtype=np.int64).reshape(out.shape) - 1


def masked_scatter(array, mask, source):
    """Return a copy, broadcast with the mask, with the elements of `source` where the mask holds.

    The size of `source` is not checked: indices wrap around.
    """
    out, mask, numbers = _spread_mask(array, mask)
    if source.size and out.size:
        out = choose(mask, cupy().take(source.reshape(-1), numbers), out)
    return out


def masked_first(array, mask, size):
    """Return `size` elements: those where the mask holds, then zeros."""
    array, mask, numbers = _spread_mask(array, mask)
    found = cupy().zeros(size + 1, array.dtype)  # the last one collects elements that are not selected
    if array.size:
        places = cupy().where(mask & (numbers < size), numbers, np.int64(size))
        found[places.reshape(-1)] = array.reshape(-1)
    return found[:size]
