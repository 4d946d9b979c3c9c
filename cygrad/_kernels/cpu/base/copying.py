"""Array copies in a given memory order, copies into other arrays, and conversion of Python numbers to arrays."""

import math
from functools import lru_cache

import numpy as np

from cygrad._kernels.cpu.base.arrays import copy_array, dense_copy, new_array
from cygrad._kernels.cpu.base.numpy_fallback import convertible, is_float8, silent
from cygrad._kernels.cpu.base.numpy_fallback import number as number_of_type
from cygrad._kernels.device.unresolved import is_deferred, memory_behind, opposite, resolved
from cygrad._kernels.tape.calls import noted
from cygrad._kernels.tape.tape import is_open
from cygrad._library import later

basics = later("cygrad._kernels.gpu.base.arrays")  # needed only for GPU arrays

_FEW_TIMES = 4  # up to this many repetitions, one pass for each is faster than an inner loop over them per element
FITS = 65504  # within the range of every floating-point type
_BUILT_IN = 24  # type numbers of other packages start here

_C_NAMES = {
    "float16": "c10::Half",
    "float32": "float",
    "float64": "double",
    "int8": "int8_t",
    "int16": "int16_t",
    "int32": "int",
    "int64": "int64_t",
    "uint8": "uint8_t",
    "complex64": "c10::complex<float>",
    "complex128": "c10::complex<double>",
}


def in_dtype(array, dtype):
    """Return the array if it has this dtype, else a copy that has; a replay converts it again."""
    return array if array.dtype == dtype else _converted(array, dtype)


@noted
def _converted(array, dtype):
    return array.astype(dtype)


def copy(array):
    """Copy to a dense array with the dimensions in the original's memory order."""
    found = dense_copy(array)
    if found is not None:
        return found
    if array.flags.c_contiguous:
        return contiguous(array)
    repeats = any(stride == 0 and length > 1 for stride, length in zip(array.strides, array.shape))
    if repeats:
        return contiguous(array)
    if not isinstance(array, np.ndarray):
        return basics.copied(array, "K")
    out = np.empty_like(array, order="K", subok=False)
    copy_array(out, array)
    return out


def copy_in_order(array, order):
    """Copy to a dense array with the dimensions in the given order, from largest to smallest stride."""
    return contiguous(array.transpose(order)).transpose(_inverse(order))


def contiguous(array):
    """Copy to a dense array in C order."""
    found = dense_copy(array)
    if found is not None:
        return found
    if not isinstance(array, np.ndarray):
        return basics.copied(array, "C")
    if array.dtype.kind not in "biufc" or array.dtype.num >= _BUILT_IN:
        return _in_c_order(array)
    out = new_array(array.shape, array.dtype.num)
    if array.strides[-1:] == (0,) and array.shape[-1] <= _FEW_TIMES and not is_open():  # the tape wants one loop
        for i in range(array.shape[-1]):
            copy_array(out[..., i], array[..., i])
    else:
        copy_array(out, array)
    return out


@noted
def _in_c_order(array):
    return array.copy("C")


def _inverse(order):
    return sorted(range(len(order)), key=order.__getitem__)


def is_in_order(array, order):
    """Whether the array already has the layout that `copy_in_order` would produce."""
    return array.transpose(order).flags.c_contiguous


def empty_like(array, dtype):
    """An uninitialized array of this shape, with the axes in the original's memory order."""
    array = memory_behind(array)
    repeats = not all(array.strides)
    if not isinstance(array, np.ndarray):
        return basics.empty_like(array, dtype, "C" if repeats else "K")
    return np.empty_like(array, dtype, order="C" if repeats else "K", subok=False)


def joined(arrays, axis):
    """Concatenate arrays of one type along an axis."""
    first = arrays[0]
    sides = {(*a.shape[:axis], *a.shape[axis + 1 :]) for a in arrays}
    if len(sides) > 1 or first.dtype.num >= _BUILT_IN:
        return np.ascontiguousarray(np.concatenate(arrays, axis))  # which raises the appropriate error
    length = sum(a.shape[axis] for a in arrays)
    out = new_array((*first.shape[:axis], length, *first.shape[axis + 1 :]), first.dtype.num)
    begin, before = 0, (slice(None),) * axis
    for a in arrays:
        copy_array(out[(*before, slice(begin, begin + a.shape[axis]))], a)
        begin += a.shape[axis]
    return out


def empty_of(shape, array):
    """An uninitialized array of that shape, with another array's type and device."""
    array = memory_behind(array)
    if not isinstance(array, np.ndarray) or array.dtype.num >= _BUILT_IN:
        return np.empty(shape, array.dtype, like=array)
    return new_array(tuple(shape), array.dtype.num)


def empty_in_order(array, order, dtype):
    """An uninitialized array of this shape, with its axes in the given memory order; in C order for None."""
    array, num = memory_behind(array), np.dtype(dtype).num
    if not isinstance(array, np.ndarray):
        shape = array.shape if order is None else tuple(array.shape[axis] for axis in order)
        blank = basics.empty_beside(array, shape, dtype)
        return blank if order is None else blank.transpose(_inverse(order))
    if order is None:
        return new_array(array.shape, num)
    return new_array(tuple(array.shape[axis] for axis in order), num).transpose(_inverse(order))


def copy_into(target, values):
    """Write `values`, broadcast and with C conversion rules, into `target`, on any device and without warnings."""
    if not (isinstance(target, np.ndarray) and isinstance(values, np.ndarray)):
        if is_deferred(target) or is_deferred(values):
            _copy_resolved(target, values)
            return
        basics.copy_into(target, values)
        return
    if values.dtype == target.dtype:
        copy_array(target, values)
        return
    _convert_into(target, values)


def _copy_resolved(target, values):
    memory = memory_behind(target)
    if memory is target:
        copy_into(target, resolved(values))
        return
    found = empty_like(memory, memory.dtype)
    copy_into(found, resolved(values))
    copy_into(memory, resolved(opposite(found)))


@silent
def _convert_into(target, values):
    np.copyto(target, convertible(values, target.dtype), casting="unsafe")


def on_memory_of(array, pattern):
    """An array with the shape and strides of `pattern` on the memory of `array`; None if that is too short."""
    if not isinstance(array, np.ndarray):
        return basics.on_memory_of(array, pattern)
    memory = memory_from(array)
    if memory.size < pattern.size:
        return None
    found = np.ndarray(pattern.shape, array.dtype, memory, 0, pattern.strides)
    found.flags.writeable = array.flags.writeable
    return found


def memory_from(array):
    """The memory from the array's first element to the end of its owner, as a vector."""
    owner = array
    while isinstance(owner.base, np.ndarray):
        owner = owner.base
    if owner.dtype != array.dtype or not (owner.flags.c_contiguous or owner.flags.f_contiguous):
        return array.reshape(-1)
    offset = array.__array_interface__["data"][0] - owner.__array_interface__["data"][0]
    return owner.ravel("K")[offset // array.itemsize :]


def check_bits(number):
    """Raise OverflowError for an int beyond 64 bits."""
    if isinstance(number, int) and not -(2**63) <= number < 2**64:
        raise OverflowError("int too big to convert" if number > 0 else "can't convert negative int to unsigned")


@noted
def element(number, dtype):
    """Convert a Python number to a 0-dim array. Raises RuntimeError if it does not fit, OverflowError beyond 64 bits.

    Negative numbers wrap in unsigned types; fractions are truncated in integer types.
    """
    dtype = np.dtype(dtype)
    if dtype.kind == "f" and dtype.itemsize > 1 and type(number) in (int, float) and -FITS < number < FITS:
        return np.array(number, dtype)
    if isinstance(number, complex):
        if dtype.kind == "c":
            _check_range(max(abs(number.real), abs(number.imag)), dtype)
            return np.array(number, dtype)
        if dtype.kind == "b":
            return np.array(bool(number))
        if number.imag:
            raise _does_not_fit(dtype)
        number = number.real
    check_bits(number)
    if dtype.kind == "b":
        return np.array(bool(number))
    _check_range(number, dtype)
    if dtype.kind in "iu":
        return np.array(int(number)).astype(dtype)
    return number_of_type(number, dtype) if is_float8(dtype) else np.array(number, dtype)


def number(value):
    """Convert a Python number to a 0-dim array of the widest type of its kind. Raises OverflowError beyond 64 bits."""
    return element(value, np.uint64 if isinstance(value, int) and value >= 2**63 else type(value))


def _check_range(number, dtype):
    low, high = _limits(dtype)
    if not low <= number <= high and (dtype.kind in "iu" or math.isfinite(number)):
        if dtype.kind != "u" or not isinstance(number, int) or not -high <= number < 0:  # which wraps
            raise _does_not_fit(dtype)


@lru_cache
def _limits(dtype):
    """The smallest and largest number of a type, or infinities."""
    if is_float8(dtype):
        from ml_dtypes import finfo  # which has made this type

        high = float(finfo(dtype).max)
        return -high, high
    if dtype.kind in "fc":
        high = float(np.finfo(dtype).max)
        return -high, high
    return (np.iinfo(dtype).min, np.iinfo(dtype).max) if dtype.kind in "iu" else (-math.inf, math.inf)


def _does_not_fit(dtype):
    name = f"c10::{dtype.name.capitalize()}" if is_float8(dtype) else _C_NAMES.get(dtype.name, dtype.name)
    return RuntimeError(f"value cannot be converted to type {name} without overflow")
