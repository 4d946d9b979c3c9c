"""The memory that tensors share, as byte ranges of what owns it: how files keep shared memory shared.

Ranges of one owner can overlap, as those of `x` and `x[2:4].detach()` do.
"""

from typing import Any, NamedTuple

import numpy as np

from cygrad._core.graph.internals import holding_memory, own_array, shows_opposite, tensor_of
from cygrad._core.tensor.predicates import address, memory_of
from cygrad._kernels.device.cupy_library import is_array, is_meta
from cygrad._kernels.device.unresolved import opposite
from cygrad._library import later

arrays = later("cygrad._kernels.gpu.base.arrays")  # needed only for arrays on GPUs


class MemoryRange(NamedTuple):
    """Bytes in memory, from the address `first` up to `end`."""

    owner: Any  # the array, or the block of a GPU's memory, that the bytes belong to
    first: int
    end: int
    array: Any  # an array in the memory of the owner


def memory_range(tensor):
    """Return the range of a tensor's memory, which is that of its base; None if it cannot be used as it is.

    That is the case where the base has gaps, or strides that PyTorch's tensors cannot have.
    """
    own, base = holding_memory(tensor), memory_of(tensor)
    if is_meta(own) or _flat(base) is None:
        return None
    owner = base.data.mem if is_array(base) else _owner(base)
    if not is_array(base) and _flat(owner) is None:
        return None
    first, size = address(base), own.dtype.itemsize
    places = (address(own) - first, *own.strides)
    if own.size and any(place < 0 or place % size for place in places):
        return None
    return MemoryRange(owner, first, first + base.nbytes, base if is_array(base) else owner)


def offset_in(tensor, wanted):
    """Return how many elements of a tensor's size come before its first one in a range."""
    place = address(holding_memory(tensor))
    return (place - wanted.first) // tensor.itemsize if wanted.first <= place <= wanted.end else 0


def bytes_in(wanted):
    """Return the bytes of a range: a vector that shares the memory, or a copy of memory on a GPU."""
    if is_array(wanted.array):
        return arrays.move(arrays.bytes_of_memory(wanted.array, wanted.first, wanted.end), None)
    begin = address(wanted.array)
    return _flat(wanted.array).view(np.uint8)[wanted.first - begin : wanted.end - begin]


def shows_other_sign(tensor):
    """Whether a tensor shows the conjugates, or of real numbers the negatives, of the elements in memory."""
    return shows_opposite(tensor)


def negative_view(tensor):
    """Return a tensor on the same memory that shows the negatives of its elements."""
    return tensor_of(opposite(own_array(tensor)))


def _owner(array):
    while isinstance(array.base, np.ndarray):
        array = array.base
    return array


def _flat(array):
    """Return a vector of the elements in the order of memory; None if there are gaps between them or some overlap."""
    strides = array.strides
    order = sorted(range(array.ndim), key=lambda dim: (-strides[dim], array.shape[dim] == 1))
    array = array.transpose(order)
    return array.reshape(-1) if array.flags.c_contiguous else None
