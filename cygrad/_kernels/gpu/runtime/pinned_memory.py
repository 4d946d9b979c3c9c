"""Pinned (page-locked) host memory, which allows asynchronous transfers; its arrays are NumPy arrays."""

from collections import deque

import numpy as np

from cygrad._kernels.device.cupy_library import cupy, is_array, is_loaded, on_device

_in_flight: deque = deque()  # (event, array in pinned memory) of transfers that may be unfinished


def is_pinned(a):
    """Whether an array is in pinned memory."""
    return isinstance(a, np.ndarray) and is_loaded() and bool(cupy().cuda.pinned_memory.is_memory_pinned(a.ctypes.data))


def empty(shape, dtype, strides=None):
    """Return an uninitialized array in pinned memory."""
    dtype = np.dtype(dtype)
    memory = cupy().cuda.alloc_pinned_memory(max(int(np.prod(shape)) * dtype.itemsize, 1))
    return np.ndarray(shape, dtype, memory, strides=strides)


def filled(shape, value, dtype):
    """Return an array filled with a value; uninitialized for None."""
    found = empty(shape, dtype)
    if value is not None:
        found.fill(value)
    return found


def pinned(a):
    """Return a copy, in pinned memory, of an array on any device."""
    if is_array(a):
        return a.get(out=empty(a.shape, a.dtype))
    found = empty(a.shape, a.dtype, np.empty_like(a).strides)
    np.copyto(found, a)
    return found


def sent(a, index):
    """Copy an array in pinned memory to the GPU `index` asynchronously."""
    with on_device(index):
        found = cupy().empty(a.shape, a.dtype)
        found.set(np.ascontiguousarray(a).reshape(a.shape))  # `ascontiguousarray` makes 0-d arrays 1-d
        _keep(a)
    return found


def fetched(a, out=None):
    """Copy a GPU array to pinned memory asynchronously; it is valid once the current stream reaches this point."""
    with on_device(a.device.id):
        found = empty(a.shape, a.dtype) if out is None else out
        a.get(out=found, blocking=False)
        _keep(found)
    return found


def _keep(a):
    """Protect memory from reuse until the latest transfer of this stream has ended."""
    while _in_flight and _in_flight[0][0].done:
        _in_flight.popleft()
    event = cupy().cuda.Event(disable_timing=True)
    event.record()
    _in_flight.append((event, a))


def copy_into(target, values):
    """Copy `values` into `target` on another device asynchronously; False if shape, type or memory do not permit it."""
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
