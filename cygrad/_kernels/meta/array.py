"""`ndarray`: an array of shape, strides and dtype without memory, the array of tensors on the device "meta".

Note [Meta arrays]
------------------
Tensors on the device "meta" hold arrays of this class, as tensors on GPUs hold CuPy arrays. They are dispatched in the
same places: `gpu_forms.run` hands them over to `running.py`, and NumPy's functions dispatch to the array itself
(`numpy_functions.py`). A result is described, never computed.

`layout` is a NumPy array with the shape, strides and dtype, whose address leads to no memory. NumPy computes views of
it without reading elements. Nothing else may be done with it, and it must never leave this package: reading an element
would crash the process.
"""

import math

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from cygrad._kernels.device import cupy_library
from cygrad._kernels.device.cupy_library import META
from cygrad._kernels.meta import indexing
from cygrad._kernels.meta.errors import no_data, no_item, other_device
from cygrad._library import later

functions = later("cygrad._kernels.meta.numpy_functions")  # which imports this module
ufuncs = later("cygrad._kernels.meta.ufuncs")  # likewise

_START = 1 << 20  # where all memory begins: an aligned address, since NumPy looks whether it is


class Device:
    """The place of all meta arrays, as `array.device` of CuPy is that of its arrays."""

    id = META


class Memory:
    """What the views of an array share in place of memory."""

    __slots__ = ("__weakref__", "size")

    ptr = _START
    device = Device
    device_id = META

    def __init__(self, size):
        self.size = size


class Pointer:
    """A place in such a memory; `pointer + n` is n bytes further on."""

    __slots__ = ("mem", "ptr")

    device_id = META

    def __init__(self, mem, ptr):
        self.mem, self.ptr = mem, ptr

    def __add__(self, distance):
        return Pointer(self.mem, self.ptr + distance)

    def __sub__(self, distance):
        return Pointer(self.mem, self.ptr - distance)


class _Described:
    """What NumPy takes as an array at any address."""

    __array_interface__: dict

    __slots__ = ("__array_interface__",)


def _layout(shape, dtype, strides=None, address=_START):
    described = _Described()
    is_common = dtype.kind in "biufc" and dtype.num < 24  # other packages' types are named by their size alone
    described.__array_interface__ = {
        "shape": shape,
        "typestr": dtype.str if is_common else f"|V{dtype.itemsize}",
        "data": (address, False),
        "strides": strides,
        "version": 3,
    }
    found = np.asarray(described)
    return found if is_common else found.view(dtype)


class Flags:
    """`ndarray.flags`."""

    __slots__ = ("c_contiguous", "f_contiguous", "writeable")

    def __init__(self, layout):
        self.c_contiguous, self.f_contiguous = layout.flags.c_contiguous, layout.flags.f_contiguous
        self.writeable = True

    @property
    def fnc(self):
        return self.f_contiguous and not self.c_contiguous

    @property
    def forc(self):
        return self.f_contiguous or self.c_contiguous


class ndarray(NDArrayOperatorsMixin):
    """An array without memory; see Note [Meta arrays]."""

    __slots__ = ("__weakref__", "data", "layout")
    __array_priority__ = 100
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, shape, dtype=float, memptr=None, strides=None, order="C"):
        shape = tuple(map(int, (shape,) if np.ndim(shape) == 0 else shape))
        dtype = np.dtype(dtype)
        size = math.prod(shape) * dtype.itemsize
        if size >= 2**63:
            raise RuntimeError(f"Storage size calculation overflowed with sizes={list(shape)}")
        if strides is None and order == "F":
            strides = np.cumprod((dtype.itemsize, *(max(n, 1) for n in shape)))[:-1]
        if strides is not None:
            strides = tuple(map(int, strides))
        self.data = Pointer(Memory(size), _START) if memptr is None else memptr
        self.layout = _layout(shape, dtype, strides, self.data.ptr)

    def part(self, layout):
        """Return a view: the array of a layout that NumPy has derived from `self.layout`."""
        found = object.__new__(ndarray)
        found.layout = layout
        distance = address(layout) - self.data.ptr if layout.size else 0
        found.data = self.data + distance
        return found

    # --- Attributes ----------------------------------------------------------------------------

    shape = property(lambda self: self.layout.shape)
    strides = property(lambda self: self.layout.strides)
    dtype = property(lambda self: self.layout.dtype)
    ndim = property(lambda self: self.layout.ndim)
    size = property(lambda self: self.layout.size)
    itemsize = property(lambda self: self.layout.itemsize)
    nbytes = property(lambda self: self.layout.nbytes)
    flags = property(lambda self: Flags(self.layout))
    T = property(lambda self: self.part(self.layout.T))
    mT = property(lambda self: self.part(self.layout.mT))
    real = property(lambda self: self.part(self.layout.real))
    imag = property(
        lambda self: self.part(self.layout.imag) if self.dtype.kind == "c" else ndarray(self.shape, self.dtype)
    )
    device = Device
    base = None

    def __len__(self):
        return len(self.layout)

    def __iter__(self):
        if not self.ndim:
            raise TypeError("iteration over a 0-d array")
        return (self[i] for i in range(len(self)))

    def __getattr__(self, name):
        """Return the method of this name of NumPy's arrays, which NumPy's function of this name stands for."""
        if name.startswith("_") or not hasattr(np.ndarray, name) or not callable(getattr(np, name, None)):
            raise AttributeError(f"a meta array has no attribute {name!r}")
        return functions.method(self, getattr(np, name))

    # --- Views and copies ----------------------------------------------------------------------

    def view(self, dtype=None):
        return self.part(self.layout.view() if dtype is None else self.layout.view(dtype))

    def reshape(self, *shape, order="C"):
        shape = shape[0] if len(shape) == 1 else shape
        shape = indexing.filled_in(shape, self.size)
        if math.prod(shape) != self.size:
            raise ValueError(f"cannot reshape array of size {self.size} into shape {shape}")
        found = indexing.reshaped(self.layout, shape, order)
        return ndarray(shape, self.dtype, order=order) if found is None else self.part(found)

    def ravel(self, order="C"):
        return self.reshape(-1, order="F" if order == "F" or (order in "KA" and self.flags.fnc) else "C")

    def flatten(self, order="C"):
        return ndarray((self.size,), self.dtype)

    def transpose(self, *axes):
        return self.part(self.layout.transpose(*axes))

    def swapaxes(self, first, second):
        return self.part(self.layout.swapaxes(first, second))

    def squeeze(self, axis=None):
        return self.part(self.layout.squeeze(axis))

    def astype(self, dtype, order="K", casting="unsafe", subok=True, copy=True):
        dtype = np.dtype(dtype)
        return self if dtype == self.dtype and not copy else ordered_like(self, self.shape, dtype, order)

    def copy(self, order="C"):
        return ordered_like(self, self.shape, self.dtype, order)

    def fill(self, value):
        """Do nothing: there are no elements to change."""

    def conj(self):
        return self.copy("K") if self.dtype.kind == "c" else self

    conjugate = conj

    # --- Indexing ------------------------------------------------------------------------------

    def __getitem__(self, key):
        key = indexing.plain(key)
        if indexing.is_basic(key):
            return self.part(indexing.view_of(self.layout, key))
        return ndarray(indexing.shape_of(self.shape, key), self.dtype)

    def __setitem__(self, key, value):
        shape = indexing.shape_of(self.shape, indexing.plain(key), self.layout)
        given = np.shape(value)
        while given and given[0] == 1 and len(given) > len(shape):
            given = given[1:]
        if np.broadcast_shapes(shape, given) != shape:
            raise ValueError(f"could not broadcast input array from shape {given} into shape {shape}")

    # --- NumPy's protocols ---------------------------------------------------------------------

    def __array_ufunc__(self, ufunc, method, *inputs, **kwargs):
        if any(type(value) is Outline for value in inputs):
            inputs = tuple(ndarray(v.shape, v.dtype) if isinstance(v, np.ndarray) and v.ndim else v for v in inputs)
        for value in inputs:
            if isinstance(value, np.ndarray) and value.ndim:
                raise other_device("meta", "cpu") if self is inputs[0] else other_device("cpu", "meta")
        return ufuncs.apply(ufunc, method, inputs, kwargs)

    def __array_function__(self, function, types, args, kwargs):
        return functions.apply(function, args, kwargs)

    # --- There are no values -------------------------------------------------------------------

    def item(self, *args):
        raise no_item()

    def __bool__(self):
        raise no_item()

    __int__ = __float__ = __complex__ = __index__ = __bool__

    def __array__(self, dtype=None, copy=None):
        raise no_data()

    def get(self, *args, **kwargs):
        """Raise the error for a copy to main memory, which CuPy's arrays make under this name."""
        raise no_data()

    tolist = tobytes = get

    def __reduce__(self):
        return _restored, (self.shape, self.dtype, self.strides)

    def __repr__(self):
        return f"<meta array of shape {self.shape} and {self.dtype}>"


class Outline(ndarray):
    """The array of a tensor whose class answers for its elements: see Note [Dispatch] in _core/registry/dispatch.py.

    It may stand beside arrays in memory, of which only shapes and dtypes count then. Arrays made of it are ordinary.
    """

    shown_device: object
    shown_offset: int
    __slots__ = ("shown_device", "shown_offset")  # where the tensor claims to be, and to begin in its memory

    def __reduce__(self):
        raise TypeError("cannot pickle a tensor without elements of its own")


def _restored(shape, dtype, strides):
    """Return the array that was pickled; its library is loaded first, which makes known what it is."""
    return cupy_library.meta().ndarray(shape, dtype, None, strides)


def address(layout):
    """Return the address where a layout begins."""
    return layout.__array_interface__["data"][0]


def ordered_like(array, shape, dtype, order="K"):
    """Return a new array without gaps; for "K" its axes have the order in memory of those of `array`."""
    if order in "CF":
        return ndarray(shape, dtype, order=order)
    if order == "A":
        return ndarray(shape, dtype, order="F" if array.flags.fnc else "C")
    if array.shape != shape or array.flags.c_contiguous:
        return ndarray(shape, dtype)
    axes = sorted(range(len(shape)), key=lambda axis: -abs(array.strides[axis]))
    dense = ndarray(tuple(shape[axis] for axis in axes), dtype)
    return dense.transpose([axes.index(axis) for axis in range(len(shape))])
