"""The single path to NumPy: takes device arrays, calls NumPy functions, returns device arrays."""

import math
import re
import warnings

import numpy as np

from . import memory, state
from .namespace import namespace


def ndarray_class():
    return namespace.ndarray


# NumPy functions that warn about empty or undefined results; their CuPy counterparts do not.
WARNING = set(
    """mean var std median average percentile quantile cov corrcoef nanmean nanvar nanstd nanmedian nanmax nanmin
    nanargmax nanargmin polyfit""".split()
)


class Arguments:
    """The device arrays among the arguments, unwrapped to the NumPy arrays that back them."""

    def __init__(self):
        self.arrays = []

    def host(self, value, name):
        """`value` with its device arrays replaced by their NumPy arrays; NumPy arrays in it are rejected."""
        if isinstance(value, ndarray_class()):
            self.arrays.append(value)
            return value._a
        if isinstance(value, np.ndarray):
            raise TypeError(f"Unsupported type {type(value)}")
        if type(value) in (list, tuple):
            return type(value)(self.host(v, name) for v in value)
        return value

    def check_device(self):
        here = state.current_device()
        for array in self.arrays:
            there = array._memory.device_id
            if there != here:
                raise ValueError(
                    f"Array device must be same as the current device: array device = {there} while current = {here}"
                )

    def memories(self):
        return [array._memory for array in self.arrays]


def warn_of_parts():
    warnings.warn("Casting complex values to real discards the imaginary part", np.exceptions.ComplexWarning, 3)


def strides_like(result):
    """Dense strides in the order of `result`'s axes."""
    order = sorted(range(result.ndim), key=lambda axis: (-abs(result.strides[axis]), axis))
    strides, step = [0] * result.ndim, result.itemsize
    for axis in reversed(order):
        strides[axis] = step
        step *= max(result.shape[axis], 1)
    return tuple(strides)


def allocate(shape, dtype, strides=None):
    """An array of uninitialized memory."""
    dtype = checked_dtype(dtype)
    nbytes = math.prod(shape) * dtype.itemsize
    refuse_beyond_int64(nbytes)
    pointer = memory.alloc(nbytes)
    array = np.ndarray(shape, dtype, pointer.mem._bytes, pointer._offset, strides)
    if dtype.kind == "b":
        array[...] = True
    return ndarray_class()._of(array, pointer.mem)


def refuse_beyond_int64(nbytes):
    """Fail for sizes beyond int64: CuPy would truncate them to 64 bits, allocate a small array and write far out of
    bounds.
    """
    if nbytes >= 2**63:
        raise AssertionError(f"CuPy would make an array of {nbytes} bytes, modulo 2**64")


def fresh(result):
    """A device array in new memory with the elements of a NumPy array."""
    array = allocate(result.shape, result.dtype, strides_like(result))
    np.copyto(array._a, result)
    return array


def checked_dtype(dtype):
    dtype = np.dtype(dtype)
    if dtype.char not in "?bhilqBHILQefdFD" and dtype.name != "bfloat16":
        raise ValueError(f"Unsupported dtype {dtype}")
    return dtype


def view(array, of):
    """A device array for a NumPy array whose memory belongs to `of`."""
    mem = of._memory
    if array.size:
        low = np.lib.array_utils.byte_bounds(array)[0]
        # Rebuilt from the memory, because NumPy's read-only views are writable in CuPy.
        offset = array.__array_interface__["data"][0] - mem._bytes.ctypes.data
        assert low >= mem._bytes.ctypes.data
        array = np.ndarray(array.shape, array.dtype, mem._bytes, offset, array.strides)
    return ndarray_class()._of(array, mem, of if of._base is None else of._base)


def lies_in(array, mem):
    start = mem._bytes.ctypes.data
    return array.size and start <= array.__array_interface__["data"][0] < start + max(mem.size, 1)


def device(result, arrays):
    """Device arrays for NumPy's results, including those in tuples and lists."""
    if isinstance(result, (tuple, list)):
        items = [device(item, arrays) for item in result]
        return type(result)(*items) if hasattr(result, "_fields") else type(result)(items)
    if not isinstance(result, (np.ndarray, np.generic, bool, int, float, complex)):
        return result
    result = np.asarray(result)
    for array in arrays:
        if result is array._a:
            return array
    for array in arrays:
        if lies_in(result, array._memory):
            return view(result, array)
    return fresh(result)


def flattened(result):
    """The device arrays in a result."""
    if isinstance(result, (tuple, list)):
        return [array for item in result for array in flattened(item)]
    return [result] if isinstance(result, ndarray_class()) else []


def run(name, function, args, kwargs=None, *, anywhere=False, is_view=False):
    """Run a NumPy `function` on device arrays, on any device if `anywhere`. A view launches no kernel."""
    found = Arguments()
    args = [found.host(value, name) for value in args]
    kwargs = {key: found.host(value, name) for key, value in (kwargs or {}).items()}
    if not (anywhere or is_view):
        found.check_device()

    def called():
        with np.errstate(all="ignore"):
            if name not in WARNING:
                return function(*args, **kwargs)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                return function(*args, **kwargs)

    def call():
        try:
            return called()
        except ValueError as error:  # NumPy's message
            if re.match("array is too big|Maximum allowed (size|dimension) exceeded", str(error)):
                refuse_beyond_int64(2**63)
            raise

    if is_view:
        return device(call(), found.arrays)
    if state.capturing() is None:
        result = device(call(), found.arrays)
        state.launch(name, lambda: None, found.memories() + [out._memory for out in flattened(result)])
        return result
    before = [array._a.copy() for array in found.arrays]
    result = device(call(), found.arrays)
    for array, contents in zip(found.arrays, before):
        np.copyto(array._a, contents)
    outs = flattened(result)
    targets = [out._a for out in outs]  # not the device arrays, whose memory may be freed before a replay

    def again():
        for target, new in zip(targets, flat_numpy(call())):
            if not np.may_share_memory(target, new):
                np.copyto(target, new)

    state.launch(name, again, found.memories() + [out._memory for out in outs])
    for out in outs:
        if not any(out._memory is mem for mem in found.memories()):
            out._memory._bytes.fill(memory.POISON)  # not computed during capture
    return result


def flat_numpy(result):
    if isinstance(result, (tuple, list)):
        return [array for item in result for array in flat_numpy(item)]
    return [np.asarray(result)] if isinstance(result, (np.ndarray, np.generic, bool, int, float, complex)) else []


def order(a, axis):
    """The stable sort order along an axis. CuPy sorts float32 and float64 vectors by their bits, so -nan comes
    first.
    """
    found = np.argsort(a, axis, kind="stable")
    if a.ndim == 1 and a.dtype.char in "fd":
        is_first = np.isnan(a[found]) & np.signbit(a[found])
        found = np.concatenate([found[is_first], found[~is_first]])
    return found
