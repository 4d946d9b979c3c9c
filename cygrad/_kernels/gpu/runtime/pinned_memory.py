"""Memory of the CPU that is locked for transfers, which then need not wait: an array there is one of NumPy's."""

from collections import deque

import numpy as np

from cygrad._kernels.device.cupy_library import cupy, is_array, is_loaded, on_device

_in_flight: deque = deque()  # (event, array in pinned memory) of transfers that may not have ended


def is_pinned(a):
    """Whether an array is in locked memory."""
    return isinstance(a, np.ndarray) and is_loaded() and bool(cupy().cuda.pinned_memory.is_memory_pinned(a.ctypes.data))


def empty(shape, dtype, strides=None):
    """Uninitialised elements in locked memory."""
    dtype = np.dtype(dtype)
    memory = cupy().cuda.alloc_pinned_memory(max(int(np.prod(shape)) * dtype.itemsize, 1))
    return np.ndarray(shape, dtype, memory, strides=strides)


def filled(shape, value, dtype):
    """An array of one value; uninitialised for None."""
    found = empty(shape, dtype)
    if value is not None:
        found.fill(value)
    return found


def pinned(a):
    """A copy of an array, from whatever device, in locked memory."""
    if is_array(a):
        return a.get(out=empty(a.shape, a.dtype))
    found = empty(a.shape, a.dtype, np.empty_like(a).strides)
    np.copyto(found, a)
    return found


def sent(a, index):
    """A copy of an array in locked memory on the GPU with this number, for which the CPU does not wait."""
    with on_device(index):
        found = cupy().empty(a.shape, a.dtype)
        found.set(np.ascontiguousarray(a).reshape(a.shape))  # which makes a vector of a number
        _keep(a)
    return found


def fetched(a, out=None):
    """A copy of an array of a GPU in locked memory, which is there when the current stream has come so far."""
    with on_device(a.device.id):
        found = empty(a.shape, a.dtype) if out is None else out
        a.get(out=found, blocking=False)
        _keep(found)
    return found


def _keep(a):
    """Keep memory from being used again until the transfer has ended that was begun last in this stream."""
    while _in_flight and _in_flight[0][0].done:
        _in_flight.popleft()
    event = cupy().cuda.Event(disable_timing=True)
    event.record()
    _in_flight.append((event, a))


def copy_into(target, values):
    """Write `values` into `target` on another device without waiting, if both are alike; False if they are not."""
    if target.shape != values.shape or target.dtype != values.dtype:
        return False
    if is_array(target):
        if not is_pinned(values):
            return False
        with on_device(target.device.id):
            target[...] = sent(values, target.device.id)
        return True
    if not (is_array(values) and target.flags.c_contiguous and is_pinned(target)):
        return False
    fetched(values, target)
    return True
