"""Arrays on GPUs: made, converted, copied, joined."""

import numpy as np

from cygrad._kernels.device.cupy_library import PINNED, cupy, explained, is_array, on_device
from cygrad._kernels.device.gpu_forms import different_devices, extent
from cygrad._kernels.gpu.runtime import pinned_memory


def cast(a, dtype):
    """`a` as an array of another type, in the same memory order; `a` itself if it has that type."""
    return a.astype(dtype, copy=False)


def zeros(beside, shape, dtype):
    """Zeros on the GPU where `beside` is."""
    with on_device(beside.device.id):
        return cupy().zeros(shape, dtype)


def empty_beside(beside, shape, dtype):
    """Uninitialised memory on the GPU where `beside` is."""
    with on_device(beside.device.id):
        return cupy().empty(shape, dtype)


def copy_into(target, values):
    """Write `values`, broadcast and converted as C does, into `target`, from whatever device to whatever device."""
    if not is_array(target):
        np.copyto(target, in_memory(values), casting="unsafe")
        return
    with on_device(target.device.id):
        target[...] = moved(values, target.device.id)


def move(a, index, may_run_on=False):
    """A copy of an array on the GPU with this number, in the CPU's memory for None, or in locked memory for PINNED.

    `may_run_on`: the CPU is not to wait where its memory is locked, and gets such memory.
    """
    if index is None:
        try:
            return pinned_memory.fetched(a) if may_run_on else a.get()
        except RuntimeError as error:
            raise explained(error) from None
    if index == PINNED:
        return pinned_memory.pinned(a)
    if may_run_on and pinned_memory.is_pinned(a):
        return pinned_memory.sent(a, index)
    with on_device(index):
        return cupy().array(a)


def in_memory(a):
    """An array of the CPU's memory as it is, and a copy there of one on a GPU."""
    return move(a, None) if is_array(a) else a


def moved(a, index):
    """An array on the GPU with this number: `a` itself if it is there. In locked memory for PINNED."""
    if index == PINNED:
        return pinned_memory.pinned(a)
    if is_array(a) and a.device.id == index:
        return a
    with on_device(index):
        return cupy().array(a)


def may_overlap(a, b):
    """Whether the extents in memory of two arrays intersect; on different devices they do not."""
    if not (is_array(a) and is_array(b)):
        return isinstance(a, np.ndarray) and isinstance(b, np.ndarray) and np.may_share_memory(a, b)
    if a.device.id != b.device.id:
        return False
    low_a, high_a = extent(a)
    low_b, high_b = extent(b)
    return low_a < high_b and low_b < high_a


def concatenate(*given):
    """Arrays one after the other along an axis: `(*arrays, axis, dtype)`."""
    *arrays, axis, dtype = given
    return cupy().concatenate([cast(a, dtype) for a in arrays], axis)


def stack(*given):
    """Arrays side by side along a new axis: `(*arrays, axis, dtype)`."""
    *arrays, axis, dtype = given
    here = next(a for a in arrays if is_array(a))
    if not all(map(is_array, arrays)):  # without dimensions
        raise different_devices(f"cuda:{here.device.id}", "cpu")
    return cupy().stack([cast(a, dtype) for a in arrays], axis)


def empty_like(a, dtype, order):
    """Uninitialised memory of the shape of `a`."""
    with on_device(a.device.id):
        return cupy().empty_like(a, dtype, order)


def filled(index, shape, value, dtype):
    """An array on the GPU with this number or PINNED, all of one value; uninitialised for None."""
    if index == PINNED:
        return pinned_memory.filled(shape, value, dtype)
    with on_device(index):
        return cupy().empty(shape, dtype) if value is None else cupy().full(shape, value, dtype)


def on_memory_of(a, pattern):
    """An array with the shape and strides of `pattern` on the memory of `a`; None if that is too short."""
    block = a.data.mem  # not that of `a.base`: views that `gpu.view` makes have none
    low, high = extent(pattern)
    start = a.data.ptr - (pattern.data.ptr - low)
    if start < block.ptr or start + high - low > block.ptr + block.size:
        return None
    return cupy().ndarray(pattern.shape, a.dtype, a.data, pattern.strides)


def copy_of_memory(a):
    """The bytes of the block of memory in which an array lies, copied."""
    start = a.data - (a.data.ptr - a.data.mem.ptr)
    with on_device(a.device.id):
        return cupy().ndarray((a.data.mem.size,), np.uint8, start).copy()


def on_copied_memory(a, copied):
    """The array that lies in such a copy as `a` lies in the original."""
    return cupy().ndarray(a.shape, a.dtype, copied.data + (a.data.ptr - a.data.mem.ptr), a.strides)
