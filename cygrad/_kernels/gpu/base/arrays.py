"""Creation, conversion, copies, and joins of GPU arrays and of meta arrays."""

import numpy as np

from cygrad._kernels.device.cupy_library import (
    META,
    PINNED,
    current_device,
    dense,
    explained,
    is_array,
    is_meta,
    is_sparse,
    library_at,
    on_device,
    switches,
)
from cygrad._kernels.device.gpu_forms import captures, different_devices, extent
from cygrad._kernels.gpu.base import joining
from cygrad._kernels.gpu.launch.conversion import converted
from cygrad._kernels.gpu.runtime import pinned_memory
from cygrad._kernels.gpu.runtime.graph_capture import keep, settle, used


def cast(a, dtype):
    """Return `a` converted to `dtype` in the same memory order; `a` itself if it has that type."""
    if a.dtype == dtype:
        return a
    if is_meta(a) or is_sparse(a):
        with on_device(a.device.id):
            return a.astype(dtype, copy=False)
    used(a)
    index = a.data.device_id
    if index == current_device():
        return converted(a, dtype)
    with on_device(index):
        return converted(a, dtype)


def zeros(beside, shape, dtype):
    """Return zeros on the GPU of `beside`."""
    with on_device(beside.device.id):
        return library_at(beside.device.id).zeros(shape, dtype)


def empty_beside(beside, shape, dtype):
    """Return an uninitialized array on the GPU of `beside`."""
    with on_device(beside.device.id):
        return library_at(beside.device.id).empty(shape, dtype)


def copy_into(target, values):
    """Write `values` into `target`, broadcast and converted as in C, between any two devices."""
    if not is_array(target):
        np.copyto(target, in_memory(values), casting="unsafe")
        return
    used(target, values)
    with on_device(target.device.id):
        target[...] = moved(values, target.device.id)


def copied(a, order):
    """Return a copy in a memory order of CuPy's."""
    if captures:
        keep(a)
        settle()  # a copy does not wait: whoever asks for one may write to it by CuPy's own functions
    return a.copy(order)


def move(a, index, may_run_on=False):
    """Return a copy of an array on the GPU `index`, in host memory for None, or in pinned memory for PINNED.

    `may_run_on` makes the transfer asynchronous: copies to the host go to pinned memory, and copies from pinned memory
    do not block.
    """
    if index is None:
        try:
            return pinned_memory.fetched(a) if may_run_on else a.get()
        except RuntimeError as error:
            raise explained(error) from None
    if index == PINNED:
        return pinned_memory.pinned(a)
    if may_run_on and index != META and pinned_memory.is_pinned(a):
        return pinned_memory.sent(a, index)
    return _copied(a, index)


def _copied(a, index):
    if is_meta(a) and index != META:
        a.get()  # raises
    used(a)
    with on_device(index):
        return library_at(index).array(a)


def in_memory(a):
    """Return an array in host memory: `a` itself, or a copy if it is on a GPU."""
    return move(a, None) if is_array(a) else a


def moved(a, index):
    """Return `a` on the GPU `index`, without a copy if it is already there; in pinned memory for PINNED."""
    if index == PINNED:
        return pinned_memory.pinned(a)
    if is_array(a) and a.device.id == index:
        return a
    return _copied(a, index)


def may_overlap(a, b):
    """Whether the memory extents of two arrays intersect; never on different devices."""
    if not (is_array(a) and is_array(b)):
        return isinstance(a, np.ndarray) and isinstance(b, np.ndarray) and np.may_share_memory(a, b)
    if a.device.id != b.device.id:
        return False
    if is_meta(a) and a.data.mem is not b.data.mem:
        return False
    low_a, high_a = extent(a)
    low_b, high_b = extent(b)
    return low_a < high_b and low_b < high_a


def concatenate(*given):
    """Concatenate arrays along an axis; called as `(*arrays, axis, dtype)`."""
    *arrays, axis, dtype = given
    arrays = [cast(a, dtype) for a in arrays]
    shapes, strides = tuple([a.shape for a in arrays]), tuple([a.strides for a in arrays])
    found = _joined(arrays, axis, shapes, strides)
    return dense(np.concatenate(arrays, axis)) if found is None else found


def _joined(arrays, axis, shapes, strides):
    """Join arrays of the current GPU by our own kernel; None if it cannot."""
    if not switches.own_launches or not shapes[0] or any(map(is_meta, arrays)):
        return None
    return joining.joined(arrays, axis, shapes, strides)


def stack(*given):
    """Stack arrays along a new axis; called as `(*arrays, axis, dtype)`."""
    *arrays, axis, dtype = given
    here = next(a for a in arrays if is_array(a))
    if not all(map(is_array, arrays)):  # 0-d arrays in host memory
        raise different_devices(f"cuda:{here.device.id}", "cpu")
    arrays = [cast(a, dtype) for a in arrays]
    d, shape = axis % (here.ndim + 1), here.shape
    shapes = (shape[:d] + (1,) + shape[d:],) * len(arrays)
    found = _joined(arrays, d, shapes, tuple([a.strides[:d] + (0,) + a.strides[d:] for a in arrays]))
    return dense(np.stack(arrays, axis)) if found is None else found


def empty_like(a, dtype, order):
    """Return an uninitialized array with the shape of `a`."""
    with on_device(a.device.id):
        return library_at(a.device.id).empty_like(a, dtype, order)


def filled(index, shape, value, dtype):
    """Return an array on the GPU `index` (pinned memory for PINNED) filled with a value; uninitialized for None."""
    if index == PINNED:
        return pinned_memory.filled(shape, value, dtype)
    with on_device(index):
        library = library_at(index)
        return library.empty(shape, dtype) if value is None else library.full(shape, value, dtype)


def on_memory_of(a, pattern):
    """Return an array with the shape and strides of `pattern` on the memory of `a`, or None if that is too short."""
    block = a.data.mem  # not that of `a.base`, which the results of `gpu.view` do not have
    low, high = extent(pattern)
    start = a.data.ptr - (pattern.data.ptr - low)
    if start < block.ptr or start + high - low > block.ptr + block.size:
        return None
    return library_at(a.device.id).ndarray(pattern.shape, a.dtype, a.data, pattern.strides)


def copy_of_memory(a):
    """Return a copy of the bytes of the whole memory block that holds an array."""
    used(a)
    start = a.data - (a.data.ptr - a.data.mem.ptr)
    with on_device(a.device.id):
        return library_at(a.device.id).ndarray((a.data.mem.size,), np.uint8, start).copy()


def bytes_of_memory(a, first, end):
    """Return the bytes between two addresses of the memory block that holds an array."""
    return library_at(a.device.id).ndarray((end - first,), np.uint8, a.data - (a.data.ptr - first))


def on_copied_memory(a, copied):
    """Return an array in `copied`, made by `copy_of_memory(a)`, at the same place as `a` in the original."""
    return library_at(a.device.id).ndarray(a.shape, a.dtype, copied.data + (a.data.ptr - a.data.mem.ptr), a.strides)
