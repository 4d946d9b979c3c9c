"""Tensors from existing data: numbers, sequences, arrays, and tensors, sharing memory where possible.

Also the `new_*` methods, which create tensors with the dtype of an existing one. The keywords are described in
creation.pyx.
"""

import numpy as np

from cygrad._core.errors.sites import warn
from cygrad._core.graph.dual import spread
from cygrad._core.graph.internals import array_of, tensor_of
from cygrad._core.graph.opdef import publish
from cygrad._core.graph.tensor import Tensor
from cygrad._core.tensor.from_python import legacy_array
from cygrad._core.types.device import cpu_device, device_at
from cygrad._core.types.dtypes import get_default_dtype
from cygrad._kernels.device import cupy_library
from cygrad._library import later
from cygrad._ops.base.arguments import integer, integers
from cygrad._ops.base.checks import creation as checks
from cygrad._ops.base.copying import clone
from cygrad._ops.base.creation import (
    check_place,
    check_size,
    filled,
    fresh,
    from_values,
    is_sparse_layout,
    number,
    only_strided,
    place_beside,
    place_of,
    sharing,
    size_of,
    type_of_new,
    uninitialized,
)
from cygrad._ops.creation.dlpack import from_dlpack, is_exported

sparse = later("cygrad._ops.sparse.creation")  # needed only for sparse layouts


def scalar_tensor(s, *, dtype=None, device=None, requires_grad=False, layout=None, pin_memory=False):
    """Return a 0-dim tensor, of the default float dtype unless `dtype` is given.

    >>> import cygrad
    >>> cygrad.scalar_tensor(3)
    tensor(3.)
    """
    place = check_place(device, pin_memory, True)
    wanted = type_of_new(dtype, None, get_default_dtype(), "scalar_tensor")
    return from_values(number(s, "scalar_tensor", "s", 1), wanted, requires_grad, "scalar_tensor", place)


# -- arrays --


def from_numpy(ndarray):
    """Return a tensor that shares the memory of the array; changes to one are visible in the other.

    If the array is read-only, so is the tensor: changing it in place raises RuntimeError. Raises TypeError for
    non-arrays and for element types without a dtype; ValueError for negative strides, strides that are not multiples of
    the element size, and non-native byte order.

    >>> import cygrad, numpy
    >>> a = numpy.zeros(3)
    >>> t = cygrad.from_numpy(a)
    >>> a[1] = 5
    >>> t
    tensor([0., 5., 0.], dtype=torch.float64)
    """
    if not isinstance(ndarray, np.ndarray):
        kind = type(ndarray)
        prefix = "" if kind.__module__ == "builtins" else kind.__module__ + "."
        raise TypeError(
            f"expected np.ndarray (got {prefix}{kind.__name__})\n"
            "  torch.tensor(data) copies numbers and sequences, torch.as_tensor(data) shares memory where possible"
        )
    if not ndarray.dtype.isnative:
        raise ValueError(
            "given numpy array has byte order different from the native byte order. Conversion between byte orders "
            "is currently not supported."
        )
    result = sharing(ndarray)
    checks.check_strides(ndarray)
    return result


def frombuffer(buffer, *, dtype, count=-1, offset=0, requires_grad=False):
    """Return the memory of an object with Python's buffer protocol (bytes, bytearray, array, mmap, ...) as a vector.

    It starts `offset` bytes from the beginning and has `count` elements, or all that follow. If the buffer is
    read-only, so is the tensor: a warning says so, and changing it in place raises RuntimeError. Raises ValueError for
    a buffer that is empty, too short, or not a multiple of the element size.

    >>> import cygrad
    >>> cygrad.frombuffer(bytearray([1, 0, 2, 0]), dtype=cygrad.int16)
    tensor([1, 2], dtype=torch.int16)
    """
    wanted = type_of_new(dtype, None, None, "frombuffer")
    first, size = integer(offset, "frombuffer", "offset", 4), wanted.itemsize
    number_of = integer(count, "frombuffer", "count", 3)
    try:
        view = memoryview(buffer)
    except TypeError:
        raise ValueError("object does not implement Python buffer protocol.") from None
    length = view.nbytes
    if length == 0 or number_of == 0:
        raise ValueError(f"both buffer length ({length}) and count ({number_of}) must not be 0")
    if not 0 <= first < length:
        raise ValueError(
            f"offset ({first} bytes) must be non-negative and no greater than buffer length ({length} bytes) minus 1"
        )
    if number_of > 0 and first + number_of * size > length:
        raise ValueError(
            f"requested buffer length ({number_of} * {size} bytes) after offset ({first} bytes) must not be greater "
            f"than actual buffer length ({length} bytes)"
        )
    if number_of < 0 and (length - first) % size:
        raise ValueError(
            f"buffer length ({length - first} bytes) after offset ({first} bytes) must be a multiple of element size "
            f"({size})"
        )
    if view.readonly:
        warn(
            "The given buffer is not writable, and neither is the tensor: changing it in place raises RuntimeError. "
            "Clone it, or pass a bytearray, to change it."
        )
    result = sharing(np.frombuffer(view, wanted.numpy, number_of, first))
    return result.requires_grad_() if requires_grad else result


def _is_buffer(value):
    """Whether a value supports Python's buffer protocol."""
    if isinstance(value, (list, tuple, int, float, complex, str)):
        return False
    try:
        memoryview(value)
    except TypeError:
        return False
    return True


def _can_share(array):
    return array.dtype.isnative and not any(stride < 0 or stride % array.itemsize for stride in array.strides)


# -- data of any kind --


def as_tensor(data, dtype=None, device=None):
    """Convert `data` to a tensor, copying only if necessary: tensors are returned unchanged, arrays share their memory.

    Raises the same errors as `tensor`.

    >>> import cygrad, numpy
    >>> a = numpy.zeros(2)
    >>> cygrad.as_tensor(a).numpy().base is a
    True
    """
    place = check_place(device, False)
    wanted = None if dtype is None else type_of_new(dtype, None, None, "as_tensor")
    if isinstance(data, Tensor):
        return (
            data if wanted is device is place is None else data.to(_device(place, device, data), wanted or data.dtype)
        )
    data = data if is_exported(data) else _taken(data)
    if isinstance(data, Tensor) or is_exported(data) or (isinstance(data, np.ndarray) and _can_share(data)):
        shared = sharing(data) if isinstance(data, np.ndarray) else data
        shared = shared if isinstance(shared, Tensor) else from_dlpack(shared)
        where = _device(place, device, shared)
        if where == shared.device and (wanted is None or wanted is shared.dtype):
            return shared
        return shared.to(where, wanted or shared.dtype)
    return from_values(data, wanted, False, "as_tensor", place)


def _taken(data):
    found = cupy_library.taken(data)
    return data if found is data else tensor_of(found)


def _device(place, device, t):
    """Return the target device: the GPU `place`, main memory if requested, else that of `t`."""
    if place is not None:
        return device_at(place)
    return t.device if device is None else cpu_device


def asarray(obj, *, dtype=None, device=None, copy=None, requires_grad=None):
    """Convert `obj` to a tensor: data, arrays, DLPack exporters, and buffers, which are read as by `frombuffer`.

    `copy=True` always copies, `copy=False` raises ValueError if a copy is needed, None copies only then.

    The result continues the history of a tensor `obj` unless `requires_grad` is False. If `requires_grad` is True and
    there is no history, the result is a leaf that accumulates a gradient.

    >>> import cygrad
    >>> cygrad.asarray([1, 2, 3])
    tensor([1, 2, 3])
    """
    place = check_place(device, False)
    wanted = None if dtype is None else type_of_new(dtype, None, None, "asarray")
    if isinstance(obj, np.ndarray) and _can_share(obj):
        obj = sharing(obj)
    elif is_exported(obj):
        obj = from_dlpack(obj)
    elif not isinstance(obj, Tensor):
        obj = _taken(obj)
    if isinstance(obj, Tensor):
        pass
    elif not isinstance(obj, (Tensor, np.ndarray, np.generic)) and _is_buffer(obj):
        obj = frombuffer(obj, dtype=get_default_dtype() if wanted is None else wanted)
    if not isinstance(obj, Tensor):
        if copy is False and isinstance(obj, np.generic):
            raise RuntimeError("can't alias NumPy scalars. Either remove copy=False or transform it in a ndarray. ")
        if copy is False:
            raise ValueError("can't alias arbitrary sequence into a tensor.")
        return from_values(obj, wanted, bool(requires_grad), "asarray", place)
    if copy is False and wanted is not None and wanted is not obj.dtype:
        raise ValueError(f"can't alias tensor with dtype '{obj.dtype.type_name}' into dtype '{wanted.type_name}'.")
    where = _device(place, device, obj)
    if copy is False and where != obj.device:
        raise ValueError(f"can't alias tensor from device '{obj.device}' to '{where}'.")
    if requires_grad is False:
        obj = obj.detach()
    result = obj if wanted is None and where == obj.device else obj.to(where, wanted or obj.dtype)
    if copy and array_of(result) is array_of(obj):
        result = clone(result)
    if requires_grad and not result.requires_grad:
        return fresh(array_of(result), True, "asarray")
    return result


# -- methods that create tensors with the same dtype --


def new_zeros(self, *size, dtype=None, device=None, requires_grad=False, layout=None, pin_memory=False, **named):
    """Return zeros of the given size, with this tensor's dtype and device.

    >>> import cygrad
    >>> cygrad.ones(2, dtype=cygrad.int64).new_zeros(3)
    tensor([0, 0, 0])
    """
    if layout is not None and is_sparse_layout(layout, "new_zeros"):
        return _sparse_of_type(self, size_of(size, named, "new_zeros"), dtype, layout, device, requires_grad)
    return _of_type(self, size_of(size, named, "new_zeros"), 0, dtype, device, requires_grad, pin_memory, "new_zeros")


def new_ones(self, *size, dtype=None, device=None, requires_grad=False, layout=None, pin_memory=False, **named):
    """Return ones of the given size, with this tensor's dtype and device.

    >>> import cygrad
    >>> cygrad.zeros(2, dtype=cygrad.int64).new_ones(3)
    tensor([1, 1, 1])
    """
    only_strided(layout, "new_ones")
    return _of_type(self, size_of(size, named, "new_ones"), 1, dtype, device, requires_grad, pin_memory, "new_ones")


def new_empty(self, *size, dtype=None, device=None, requires_grad=False, layout=None, pin_memory=False, **named):
    """Return an uninitialized tensor of the given size, with this tensor's dtype and device.

    >>> import cygrad
    >>> x = cygrad.zeros(2, dtype=cygrad.int64).new_empty(2, 3)
    >>> x.shape, x.dtype
    (torch.Size([2, 3]), torch.int64)
    """
    size = size_of(size, named, "new_empty")
    if layout is not None and is_sparse_layout(layout, "new_empty"):
        return _sparse_of_type(self, size, dtype, layout, device, requires_grad)
    return _of_type(self, size, None, dtype, device, requires_grad, pin_memory, "new_empty")


def new_full(self, size, fill_value, *, dtype=None, device=None, requires_grad=False, layout=None, pin_memory=False):
    """Return a tensor of the given size filled with `fill_value`, with this tensor's dtype and device.

    >>> import cygrad
    >>> cygrad.zeros(2, dtype=cygrad.int64).new_full((3,), 7)
    tensor([7, 7, 7])
    """
    only_strided(layout, "new_full")
    size = check_size(integers(size, "new_full", "size", 1))
    value = number(fill_value, "new_full", "fill_value", 2)
    return _of_type(self, size, value, dtype, device, requires_grad, pin_memory, "new_full")


def _of_type(tensor, size, value, dtype, device, requires_grad, pin_memory, function):
    place = place_beside(tensor, device, pin_memory, True)
    wanted = type_of_new(dtype, None, tensor.dtype, function)
    array = filled(size, value, wanted, place)
    out = fresh(uninitialized(array) if value is None else array, requires_grad, function, tensor)
    spread(tensor, out)
    return out


def _sparse_of_type(tensor, size, dtype, layout, device, requires_grad):
    return sparse.new_zeros_in(layout, size, dtype or tensor.dtype, device or tensor.device, requires_grad)


def new_tensor(self, data, *, dtype=None, device=None, requires_grad=False, layout=None, pin_memory=False):
    """Return a copy of `data`, as made by `tensor`, with this tensor's dtype and device.

    >>> import cygrad
    >>> cygrad.zeros(2, dtype=cygrad.int64).new_tensor([1, 2])
    tensor([1, 2])
    """
    only_strided(layout, "new_tensor")
    place = place_beside(self, device, pin_memory, True)
    if isinstance(data, Tensor):
        checks.warn_copy("tensor.new_tensor(sourceTensor)")
    return from_values(data, type_of_new(dtype, None, self.dtype, "new_tensor"), requires_grad, "new_tensor", place)


def new(self, *args, **named):
    """Like `Tensor(...)`, which takes sizes or data, but with this tensor's dtype and device. Legacy.

    Raises TypeError for a tensor of another dtype.

    >>> import cygrad
    >>> cygrad.ones(2, dtype=cygrad.int64).new([1, 2])
    tensor([1, 2])
    """
    if len(args) == 1 and isinstance(args[0], Tensor) and args[0].dtype is not self.dtype:
        from cygrad._ops.creation.legacy_types import other_type  # needed only for the error

        raise other_type(self.dtype, args[0])
    return fresh(legacy_array(args, named, self.dtype, self.device.type), False, "new", self, place_of(self))


methods = {method.__name__: method for method in (new, new_zeros, new_ones, new_empty, new_full, new_tensor)}
functions = publish(
    globals(), {function.__name__: function for function in (scalar_tensor, from_numpy, frombuffer, as_tensor, asarray)}
)
