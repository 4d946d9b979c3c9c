"""`cupy.ndarray`: a device array that NumPy cannot use as one of its own arrays."""

import pickle
import warnings

import numpy as np

from . import compute, indexing, memory, names, state
from .namespace import namespace

IMPLICIT = (
    "Implicit conversion to a NumPy array is not allowed. Please use `.get()` to construct a NumPy array explicitly."
)


class Flags:
    """`ndarray.flags`."""

    __slots__ = ("c_contiguous", "f_contiguous", "owndata")

    def __init__(self, array):
        self.c_contiguous = array._a.flags.c_contiguous
        self.f_contiguous = array._a.flags.f_contiguous
        self.owndata = array._base is None

    @property
    def fnc(self):
        return self.f_contiguous and not self.c_contiguous

    @property
    def forc(self):
        return self.f_contiguous or self.c_contiguous

    def __getitem__(self, name):
        return getattr(self, name.lower())

    def __repr__(self):
        return "\n".join(f"  {name.upper()} : {getattr(self, name)}" for name in self.__slots__)


class ndarray:
    """The stand-in's array: `_a` is a NumPy array over the bytes of `_memory`, which, as in CuPy, only `data` owns."""

    __slots__ = ("_a", "_base", "_ptr", "data", "__weakref__")
    __array_priority__ = 100
    __hash__ = None
    __module__ = "cupy"

    def __new__(cls, shape, dtype=float, memptr=None, strides=None, order="C"):
        shape = (shape,) if isinstance(shape, (int, np.integer)) else tuple(shape)
        dtype = compute.checked_dtype(dtype)
        if any(n < 0 for n in shape):
            raise ValueError("Negative dimensions are not allowed")
        if strides is not None and any(step < 0 for step in strides):
            raise ValueError("ndarray() with strides currently does not allow negative strides")
        if strides is None and order == "F":
            strides = np.empty(shape, dtype, "F").strides
        if memptr is None:
            new = compute.allocate(shape, dtype, strides)
            return new if cls is ndarray else cls._of(new._a, new._memory)
        mem = memptr.mem
        return cls._of(np.ndarray(shape, dtype, mem._bytes, memptr._offset, strides), mem)

    @classmethod
    def _of(cls, array, mem, base=None):
        self = object.__new__(cls)
        self._a, self._base = array, base
        self._ptr = array.__array_interface__["data"][0] if array.nbytes else mem.ptr
        self.data = memory.MemoryPointer(mem, self._ptr - mem.ptr)
        return self

    # --- Attributes ----------------------------------------------------------------------------

    @property
    def shape(self):
        return self._a.shape

    @shape.setter
    def shape(self, shape):
        self._a = compute.view(self._a.reshape(shape, copy=False), self)._a

    @property
    def strides(self):
        return self._a.strides

    @property
    def dtype(self):
        return self._a.dtype

    _memory = property(lambda self: self.data.mem)
    ndim = property(lambda self: self._a.ndim)
    size = property(lambda self: self._a.size)
    itemsize = property(lambda self: self._a.itemsize)
    nbytes = property(lambda self: self._a.nbytes)
    base = property(lambda self: self._base)
    _c_contiguous = property(lambda self: self._a.flags.c_contiguous)
    flags = property(Flags)

    @property
    def device(self):
        return self._memory.device

    @property
    def flat(self):
        return iter(self.ravel())

    def _view(self, array):
        return compute.view(array, self)

    T = property(lambda self: self._view(self._a.T))

    @property
    def mT(self):
        if self.ndim < 2:
            raise ValueError("matrix transpose with ndim < 2 is undefined")
        return self._view(self._a.swapaxes(-1, -2))

    @property
    def real(self):
        return self._view(self._a.real) if self.dtype.kind == "c" else self

    @real.setter
    def real(self, value):
        self.real[...] = value

    @property
    def imag(self):
        if self.dtype.kind == "c":
            return self._view(self._a.imag)
        return namespace.cupy.zeros_like(self)

    @imag.setter
    def imag(self, value):
        if self.dtype.kind != "c":
            raise TypeError("cupy.ndarray does not have imaginary part to set")
        self.imag[...] = value

    # --- Transfers to the host, which synchronize ----------------------------------------------

    def _read(self, what):
        state.synchronize(what)
        state.transfer("to host", self.nbytes)
        return self._a

    def get(self, stream=None, order="C", out=None, blocking=True):
        if blocking:
            state.synchronize("ndarray.get")
        state.transfer("to host", self.nbytes)
        if out is None:
            return self._a.copy(order)
        if not isinstance(out, np.ndarray):
            raise TypeError(f"Only numpy.ndarray can be obtained from cupy.ndarray (actual: {type(out)})")
        if out.dtype != self.dtype or out.shape != self.shape:
            raise ValueError("Shape or dtype mismatch of the out array")
        if not (out.flags.c_contiguous or out.flags.f_contiguous):
            raise RuntimeError("`out` cannot be specified when copying to non-contiguous ndarray")
        np.copyto(out, self._a)
        return out

    def set(self, arr, stream=None):
        if not isinstance(arr, np.ndarray):
            raise TypeError(f"Only numpy.ndarray can be set to cupy.ndarray (actual: {type(arr)})")
        if arr.dtype != self.dtype:
            raise TypeError(f"{arr.dtype!r} array cannot be set to {self.dtype!r} array")
        if arr.shape != self.shape:
            raise ValueError(f"Shape mismatch. Old shape: {self.shape}, new shape: {arr.shape}")
        if not (self._a.flags.c_contiguous or self._a.flags.f_contiguous):
            raise RuntimeError("Cannot set to non-contiguous array")
        state.transfer("to device", self.nbytes)
        np.copyto(self._a, arr)

    def item(self):
        if self.size != 1:
            raise ValueError("can only convert an array of size 1 to a Python scalar")
        return self._read("ndarray.item").item()

    def tolist(self):
        return self._read("ndarray.tolist").tolist()

    def tobytes(self, order="C"):
        return self._read("ndarray.tobytes").tobytes(order)

    def tofile(self, fid, sep="", format="%s"):
        self._read("ndarray.tofile").tofile(fid, sep, format)

    def dump(self, file):
        with open(file, "wb") as f:
            f.write(self.dumps())

    def dumps(self):
        return pickle.dumps(self)

    def __reduce__(self):
        return namespace.cupy.asarray, (self._read("pickling").copy(),)

    def __bool__(self):
        return bool(self._read("bool(array)"))

    def __int__(self):
        return int(self._read("int(array)"))

    def __float__(self):
        return float(self._read("float(array)"))

    def __complex__(self):
        return complex(self._read("complex(array)"))

    def __bytes__(self):
        return bytes(self._read("bytes(array)"))

    def __repr__(self):
        return repr(self._read("repr(array)"))

    def __str__(self):
        return str(self._read("str(array)"))

    def __format__(self, spec):
        return format(self._read("format(array)"), spec)

    # --- Exchange with other libraries ---------------------------------------------------------

    def __array__(self, dtype=None):
        raise TypeError(IMPLICIT)

    @property
    def __cuda_array_interface__(self):
        described = self._a.__array_interface__
        return {
            "shape": self.shape,
            "typestr": described["typestr"],
            "descr": described["descr"],
            "stream": 1,
            "version": 3,
            "strides": None if self._a.flags.c_contiguous else self.strides,
            "data": (self._ptr if self.size else 0, False),
        }

    def __dlpack__(self, *, stream=None, max_version=None, dl_device=None, copy=None):
        from .dlpack import capsule_of

        return capsule_of(self)

    def __dlpack_device__(self):
        return 2, self._memory.device_id

    def toDlpack(self):
        return self.__dlpack__()

    def __array_ufunc__(self, ufunc, method, *inputs, **kwargs):
        if "out" in kwargs:
            out = kwargs["out"]
            kwargs["out"] = out[0] if len(out) == 1 else out
        for x in (*inputs, *kwargs.values()):
            if hasattr(type(x), "__array_ufunc__") and not isinstance(x, (ndarray, np.generic, np.ndarray)):
                return NotImplemented
        found = getattr(namespace.cupy, ufunc.__name__, None)
        if found is None:
            return NotImplemented
        if ufunc.__name__ in COMPARISONS.values():
            # NumPy creates 0-dim arrays from its scalars here (numpy/numpy#12142).
            inputs = [x.item() if isinstance(x, np.ndarray) and not x.ndim else x for x in inputs]
        if method == "__call__":
            return found(*inputs, **kwargs)
        return getattr(found, method)(*inputs, **kwargs)

    def __array_function__(self, func, types, args, kwargs):
        place = namespace.cupy
        for part in func.__module__.split(".")[1:]:
            place = getattr(place, part, None)
        found = getattr(place, func.__name__, None)
        if found is None or found is func:
            return NotImplemented
        if any(not issubclass(t, ndarray) for t in types):
            return NotImplemented
        return found(*args, **kwargs)

    # --- Copies and views ----------------------------------------------------------------------

    def astype(self, dtype, order="K", casting=None, subok=None, copy=True):
        if casting is not None:
            raise TypeError("casting is not supported yet")
        if subok is not None:
            raise TypeError("subok is not supported yet")
        dtype = compute.checked_dtype(dtype)
        if not copy and dtype == self.dtype:
            return self
        if self.dtype.kind == "c" and dtype.kind not in "cb":
            compute.warn_of_parts()
            return compute.run("astype", lambda a: a.real.astype(dtype, order), [self])
        return compute.run("astype", lambda a: a.astype(dtype, order), [self])

    def copy(self, order="C"):
        # The source may be on another device; the copy is made on the current one.
        return compute.run("copy", lambda a: a.copy(order), [self], anywhere=True)

    __copy__ = copy

    def __deepcopy__(self, memo):
        from .devices import Device

        with Device(self._memory.device_id):
            return self.copy()

    def view(self, dtype=None, type=None):
        if type is not None:
            raise NotImplementedError("the stand-in has no view of another class")
        return self._view(self._a.view() if dtype is None else self._a.view(compute.checked_dtype(dtype)))

    def reduced_view(self, dtype=None):
        return self.view()

    def reshape(self, *shape, order="C", copy=None):
        shape = shape[0] if len(shape) == 1 and not isinstance(shape[0], (int, np.integer)) else shape
        return namespace.cupy.reshape(self, shape, order, copy=copy)

    def transpose(self, *axes):
        axes = axes[0] if len(axes) == 1 and (axes[0] is None or isinstance(axes[0], (tuple, list))) else axes
        return self._view(self._a.transpose(axes) if axes else self._a.T)

    def swapaxes(self, axis1, axis2):
        return self._view(self._a.swapaxes(axis1, axis2))

    def squeeze(self, axis=None):
        return self._view(self._a.squeeze(axis))

    def diagonal(self, offset=0, axis1=0, axis2=1):
        return self._view(self._a.diagonal(offset, axis1, axis2))

    def flatten(self, order="C"):
        return compute.run("flatten", lambda a: a.flatten(order), [self])

    def byteswap(self, inplace=False):
        return compute.run("byteswap", lambda a: a.byteswap(inplace), [self])

    # --- In place ------------------------------------------------------------------------------

    def fill(self, value):
        if isinstance(value, np.ndarray):
            if value.ndim:
                raise ValueError("non-scalar numpy.ndarray cannot be used for fill")
            value = value.item()
        indexing.put(self, Ellipsis, value)

    def sort(self, axis=-1, kind=None):
        refuse_kind(kind)
        if self._base is not None:
            raise ValueError("Sorting arrays with the rank of two or more that are views is not supported")
        compute.run("sort", lambda a: a.sort(axis, kind="stable"), [self])

    def partition(self, kth, axis=-1):
        compute.run("partition", lambda a: a.sort(axis), [self])

    def put(self, indices, values, mode="wrap"):
        namespace.cupy.put(self, indices, values, mode)

    def scatter_add(self, slices, value):
        refer_to("add", "add")
        indexing.scatter(np.add, self, slices, value)

    def scatter_max(self, slices, value):
        refer_to("max", "maximum")
        indexing.scatter(np.maximum, self, slices, value)

    def scatter_min(self, slices, value):
        refer_to("min", "minimum")
        indexing.scatter(np.minimum, self, slices, value)

    def __getitem__(self, slices):
        return indexing.taken(self, slices)

    def __setitem__(self, slices, value):
        indexing.put(self, slices, value)

    def __len__(self):
        if not self.ndim:
            raise TypeError("len() of unsized object")
        return self.shape[0]

    def __iter__(self):
        if not self.ndim:
            raise TypeError("iteration over a 0-d array")
        return (self[i] for i in range(len(self)))

    def argsort(self, axis=-1, kind=None):
        refuse_kind(kind)
        return compute.run("argsort", lambda a: compute.order(a, axis), [self])


def refer_to(name, other):
    warnings.warn(
        f"`ndarray.scatter_{name}` is deprecated. Please use `cupy.{other}.at` instead.", DeprecationWarning, 3
    )


def refuse_kind(kind):
    if kind not in (None, "stable"):
        raise ValueError("kind can only be None or 'stable'")


namespace.ndarray = ndarray


# --- Methods named like functions, and operators -------------------------------------------------


def as_method(name, function=None):
    def method(self, *args, **kwargs):
        return getattr(namespace.cupy, function or name)(self, *args, **kwargs)

    return names.checked(f"ndarray.{name}", names.CLASSES["cupy.ndarray"][name], method)


for _name in """all any argmax argmin argpartition choose clip compress conj conjugate cumprod cumsum dot max mean min
        nonzero prod ptp ravel repeat round searchsorted std sum take trace var""".split():
    _function = {"compress": None}.get(_name, _name)
    setattr(ndarray, _name, as_method(_name, _function))

ndarray.compress = names.checked(
    "ndarray.compress",
    names.CLASSES["cupy.ndarray"]["compress"],
    lambda self, condition, axis=None, out=None: namespace.cupy.compress(condition, self, axis, out),
)

BINARY = {
    "add": "add",
    "sub": "subtract",
    "mul": "multiply",
    "truediv": "true_divide",
    "floordiv": "floor_divide",
    "mod": "remainder",
    "pow": "power",
    "divmod": "divmod",
    "matmul": "matmul",
    "and": "bitwise_and",
    "or": "bitwise_or",
    "xor": "bitwise_xor",
    "lshift": "left_shift",
    "rshift": "right_shift",
}
COMPARISONS = {
    "eq": "equal",
    "ne": "not_equal",
    "lt": "less",
    "le": "less_equal",
    "gt": "greater",
    "ge": "greater_equal",
}


def gives_way(self, other):
    """Whether to defer to the other operand's method, by the same criteria as `_should_use_rop`."""
    if isinstance(other, (ndarray, np.ndarray, np.generic)):
        return False
    if hasattr(type(other), "__array_ufunc__"):
        return type(other).__array_ufunc__ is None
    return getattr(other, "__array_priority__", 0) > self.__array_priority__


def operator(function):
    def forward(self, other):
        if gives_way(self, other):
            return NotImplemented
        return getattr(namespace.cupy, function)(self, other)

    def backward(self, other):
        return getattr(namespace.cupy, function)(other, self)

    def in_place(self, other):
        if gives_way(self, other):
            return NotImplemented
        return getattr(namespace.cupy, function)(self, other, self)

    return forward, backward, in_place


for _name, _function in {**BINARY, **COMPARISONS}.items():
    _forward, _backward, _in_place = operator(_function)
    setattr(ndarray, f"__{_name}__", _forward)
    if _name in BINARY:
        setattr(ndarray, f"__r{_name}__", _backward)
        if _name not in ("matmul", "divmod"):
            setattr(ndarray, f"__i{_name}__", _in_place)


def unary(function):
    return lambda self: getattr(namespace.cupy, function)(self)


for _name, _function in {"neg": "negative", "pos": "positive", "abs": "absolute", "invert": "invert"}.items():
    setattr(ndarray, f"__{_name}__", unary(_function))
