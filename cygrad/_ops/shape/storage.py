"""Storages, the memory of tensors as scripts access it.

A storage is a view of all memory that a tensor shares with its base, created on demand. It can be read, written,
compared and set into tensors, but not resized, since other tensors may use it.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, Self
from weakref import ref

import numpy as np

from cygrad._core.errors import messages
from cygrad._core.graph.internals import own_array, tensor_of
from cygrad._core.graph.opdef import publish
from cygrad._core.graph.tensor import Tensor
from cygrad._core.tensor.predicates import layouts, memory_of
from cygrad._core.types.device import device as _device
from cygrad._core.types.device import device as device_named
from cygrad._core.types.dtypes import by_name, dtype_named, get_default_dtype
from cygrad._core.types.dtypes import dtype as _dtype
from cygrad._ops.base.creation import tensor
from cygrad._ops.shape.storage_bytes import dtype_called, elements_of, swap, type_name
from cygrad._ops.shape.strided import as_strided


def whole_of(t):
    """Return all elements of a tensor's memory, in memory order."""
    memory = tensor_of(memory_of(t))
    return as_strided(memory, (memory.numel(),), (1,), 0)


class StorageBase:
    """Base of `UntypedStorage`, by which programs recognize the memory of tensors.

    >>> import cygrad
    >>> isinstance(cygrad.ones(2).untyped_storage(), cygrad.StorageBase)
    True
    """

    __module__ = "cygrad.storage"
    __slots__ = ()

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        if cls is StorageBase:
            raise RuntimeError("Cannot directly construct StorageBase; subclass it and then construct that")
        return super().__new__(cls)


def _memory(content, kind, name):
    """Return a tensor of new memory: of so many elements, or with the elements of a sequence."""
    if isinstance(content, int):
        if content < 0:
            raise RuntimeError(f"{name}: the size must not be negative, but is {content}")
        return tensor_of(np.empty(content, kind.numpy))
    if not isinstance(content, Sequence) or isinstance(content, str):
        raise RuntimeError(f"{name}: Expected a sequence type, but got {type(content).__name__}")
    return tensor(content, dtype=kind)


class _Storage:
    __module__ = "cygrad.storage"
    __slots__ = ("__dict__", "__weakref__", "_file", "_flat", "_tensor")
    _file: Any
    _flat: Any
    _tensor: Any  # a weak reference to the one whose memory this is
    _is_storage = True

    def __init__(self, tensor: Any) -> None:
        self._flat, self._tensor, self._file = whole_of(tensor), ref(tensor), None

    @property
    def filename(self) -> str | None:
        """The file that this memory is, if `from_file` made it with `shared=True`; otherwise None."""
        return self._file

    @property
    def device(self) -> _device:
        """The device of the memory."""
        return self._flat.device

    @property
    def is_cuda(self) -> bool:
        """Whether the memory is on a GPU."""
        return self._flat.is_cuda

    def data_ptr(self) -> int:
        """Return the address of the memory, which is the same for all tensors that share it with one base."""
        return self._flat.data_ptr()

    @property
    def _cdata(self) -> int:
        """A number that storages of the same memory share, and no others that live."""
        return self._flat.data_ptr() or id(self)

    def nbytes(self) -> int:
        """Return the number of bytes."""
        return self._flat.nbytes

    def size(self) -> int:
        """Return the number of elements."""
        return len(self._flat)

    def element_size(self) -> int:
        """Return the number of bytes per element."""
        return self._flat.itemsize

    def is_shared(self) -> bool:
        """Whether forked processes share it."""
        return self._flat.is_shared()

    def share_memory_(self) -> Self:
        """Have forked processes share the memory; the tensor that gave it moves along (see `Tensor.share_memory_`)."""
        if self._flat.is_meta:
            raise RuntimeError("_share_fd_: only available on CPU")
        if not self.is_shared() and self._flat.is_cpu:
            owner = self._tensor()
            moved = self._flat if owner is None else owner
            moved.share_memory_()
            self._flat = whole_of(moved).view(self._flat.dtype)
        return self

    def hpu(self, device: Any = None, non_blocking: bool = False) -> Any:
        """Raise AssertionError: PyTorch's package for HPUs is not there."""
        raise AssertionError("HPU device module is not loaded")

    def _type_name(self) -> str:
        raise NotImplementedError

    def type(self, dtype: Any = None, non_blocking: bool = False) -> Any:
        """Return the name of the type; for another type, such as `torch.IntStorage`, the elements converted to it."""
        name = self._type_name()
        if dtype is None:
            return name
        if dtype == name or isinstance(dtype, type) and isinstance(self, dtype):
            return self
        kind = dtype_called(dtype)
        if kind is None:
            raise TypeError(f"invalid type: {dtype!r}\n  give a class such as torch.FloatStorage, or its name")
        return TypedStorage(self._flat.to(kind))

    def is_pinned(self, device: Any = None) -> bool:
        """Whether it is page-locked for transfers to a GPU."""
        return self._flat.is_pinned()

    def pin_memory(self, device: Any = None) -> Self:
        """Return a copy in page-locked memory: this storage if it is there already."""
        pinned = self._flat.pin_memory()
        return self if pinned is self._flat else type(self)(pinned)

    def resizable(self) -> bool:
        """Whether `resize_` can change the size: False."""
        return False

    def get_device(self) -> int:
        """Return the index of the GPU; -1 on the CPU."""
        return self._flat.get_device()

    is_sparse = is_hpu = False

    def to(self, *, device: Any, non_blocking: bool = False) -> Self:
        """Return the same elements on a device: this storage if they are there already."""
        moved = self._flat.to(device, non_blocking=non_blocking)
        return self if moved is self._flat else type(self)(moved)

    def _check_readable(self) -> None:
        if self._flat.is_meta:
            raise NotImplementedError(
                "Not available for 'meta' device type\n  a storage on 'meta' has a size, but no elements"
            )

    def tolist(self) -> list[Any]:
        """Return the elements as a list."""
        self._check_readable()
        return self._flat.tolist()

    def clone(self) -> Self:
        """Return a copy."""
        return type(self)(self._flat.clone())

    def __copy__(self) -> Self:
        return self.clone()

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self._flat,)

    def cpu(self) -> Self:
        """Return the same elements on the CPU: this storage if they are there already."""
        return self if self._flat.is_cpu else type(self)(self._flat.cpu())

    def cuda(self, device: Any = None, non_blocking: bool = False) -> Self:
        """Return the same elements on a GPU, by default the current one: this storage if they are there already."""
        moved = self._flat.cuda(device, non_blocking=non_blocking)
        return self if moved is self._flat else type(self)(moved)

    def copy_(self, source: Any, non_blocking: bool | None = None) -> Self:
        """Overwrite the elements with those of another storage."""
        self._flat.copy_(source._flat, bool(non_blocking))
        return self

    def fill_(self, value: Any) -> Self:
        """Overwrite each element."""
        self._flat.fill_(value)
        return self

    def resize_(self, size: int) -> Self:
        """Raise RuntimeError unless `size` is the current size, or there are no elements, as on the device "meta"."""
        if self._flat.is_meta:
            self._flat = self._flat.new_empty(size)
        if size != self.size():
            raise RuntimeError(
                "Trying to resize storage that is not resizable\n  a tensor always has memory of its own size here: "
                "`x.resize_(...)` changes the size of a tensor, `del x` frees its memory"
            )
        return self

    def __len__(self) -> int:
        return len(self._flat)

    def __sizeof__(self) -> int:
        return object.__sizeof__(self) + self.nbytes()

    def __getitem__(self, place: Any) -> Any:
        self._check_readable()
        if isinstance(place, int) and not -len(self) <= place < len(self):
            raise IndexError(f"index {place} out of range for storage of size {len(self)}")
        found = self._flat[place]
        if not isinstance(place, slice):
            return found.item()
        part = object.__new__(type(self))
        part._flat, part._file = found.detach(), None
        part._tensor = ref(part._flat)
        return part

    def __setitem__(self, place: Any, value: Any) -> None:
        self._flat[place] = value

    def __eq__(self, other: Any) -> bool:
        return isinstance(other, _Storage) and (self.data_ptr(), self.nbytes()) == (other.data_ptr(), other.nbytes())

    def __hash__(self) -> int:
        return hash(self.data_ptr())

    def __repr__(self) -> str:
        kind = "" if type(self) is UntypedStorage else f"dtype={self._flat.dtype}, "
        rows = "...\n" if self._flat.is_meta else "".join(f" {value}\n" for value in self.tolist())
        return f"{rows}[torch.storage.{type(self).__name__}({kind}device={self.device}) of size {len(self)}]"


# Methods that convert the elements, by name; PyTorch's names, which are also those of types
_CONVERSIONS = {
    "double": "float64",
    "float": "float32",
    "half": "float16",
    "bfloat16": "bfloat16",
    "long": "int64",
    "int": "int32",
    "short": "int16",
    "char": "int8",
    "byte": "uint8",
    "bool": "bool",
    "complex_double": "complex128",
    "complex_float": "complex64",
    **{name: name for name in ("float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz")},
}


def _conversion(name: str, kind: str) -> Any:
    def convert(self: Any) -> Any:
        return TypedStorage(self._flat.to(dtype_named(kind)))

    convert.__name__, convert.__qualname__ = name, f"_Storage.{name}"
    convert.__doc__ = f"Return the elements as {kind}: this memory if they are that already."
    return convert


for _name, _kind in _CONVERSIONS.items():
    setattr(_Storage, _name, _conversion(_name, _kind))


class UntypedStorage(_Storage, StorageBase):
    """The memory of a tensor as bytes; `UntypedStorage(3)` and `UntypedStorage([1, 2])` make memory of their own.

    With `device="meta"` it has a size, but no elements.

    >>> import cygrad
    >>> x = cygrad.tensor([1, 2], dtype=cygrad.uint8)
    >>> x.untyped_storage().tolist()
    [1, 2]
    """

    __slots__ = ()

    def __init__(self, content: Any = (), *, device: Any = None) -> None:
        bytes_of = by_name()["uint8"]
        if not isinstance(content, Tensor):
            content = _memory(content, bytes_of, "torch.UntypedStorage()")
        super().__init__(content if device is None else content.to(device))
        self._flat = self._flat.view(bytes_of)

    def _type_name(self) -> str:
        return "torch.storage.UntypedStorage"

    def new(self) -> UntypedStorage:
        """Return an empty storage on the same device.

        >>> import cygrad
        >>> len(cygrad.UntypedStorage(2).new())
        0
        """
        return UntypedStorage(self._flat.new_empty(0))

    def mps(self) -> Any:
        """Raise RuntimeError: there is no MPS device.

        >>> import cygrad
        >>> cygrad.UntypedStorage(2).mps()
        Traceback (most recent call last):
            ...
        RuntimeError: torch.UntypedStorage(): Storage device not recognized: mps
        """
        raise RuntimeError("torch.UntypedStorage(): Storage device not recognized: mps")

    def byteswap(self, dtype: Any) -> None:
        """Reverse the bytes of each element of a dtype, in place.

        Raises RuntimeError unless the memory holds whole elements.

        >>> import cygrad
        >>> storage = cygrad.UntypedStorage([1, 0, 2, 0])
        >>> storage.byteswap(cygrad.int16)
        >>> storage.tolist()
        [0, 1, 0, 2]
        """
        if not isinstance(dtype, _dtype):
            raise RuntimeError(f"expected torch.dtype, but got {type(dtype)}")
        swapped = own_array(self._flat.cpu()).copy()
        swap(swapped, dtype.itemsize // 2 if dtype.is_complex else dtype.itemsize)
        self._flat.copy_(tensor_of(swapped))

    @classmethod
    def from_buffer(
        cls, buffer: Any, byte_order: str | None = None, count: int = -1, offset: int = 0, dtype: Any = None
    ) -> UntypedStorage:
        """Return a copy of `count` elements (-1: all) in an object with bytes, from the byte `offset` on.

        `byte_order` is "big", "little" or "native". Raises RuntimeError without `dtype`, ValueError if it does not fit.

        >>> import cygrad
        >>> cygrad.UntypedStorage.from_buffer(bytes([0, 1]), "big", dtype=cygrad.int16).tolist()
        [1, 0]
        """
        if dtype is None:
            raise RuntimeError("argument 'dtype' cannot be None")
        return cls(elements_of(buffer, byte_order, count, offset, dtype))

    @classmethod
    def from_file(cls, filename, shared=False, nbytes=0):
        """Return the first bytes of a file as memory that is read from it as needed.

        With `shared`, changes are written to the file, which is made or lengthened if need be; otherwise they are not.

        >>> import cygrad
        >>> import os, tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = os.path.join(folder, "numbers")
        ...     with open(path, "wb") as file:
        ...         written = file.write(bytes([1, 2, 3]))
        ...     storage = cygrad.UntypedStorage.from_file(path, nbytes=3)
        ...     print(storage.tolist())
        ...     del storage
        [1, 2, 3]
        """
        if shared:
            with open(filename, "ab") as file:
                if file.tell() < nbytes:
                    file.truncate(nbytes)
        if nbytes == 0:
            return cls(tensor_of(np.empty(0, np.uint8)))
        mapped = np.memmap(filename, np.uint8, "r+" if shared else "c", shape=(nbytes,))
        made = cls(tensor_of(mapped.view(np.ndarray)))
        made._file = filename if shared else None
        return made

    def untyped(self):
        """Return this storage.

        >>> import cygrad
        >>> storage = cygrad.ones(2).untyped_storage()
        >>> storage.untyped() is storage
        True
        """
        return self


class TypedStorage(_Storage):
    """The memory of a tensor as elements of its dtype.

    `TypedStorage(3, dtype=torch.int64)` and `TypedStorage([1, 2], dtype=...)` make memory of their own;
    `wrap_storage`, an `UntypedStorage`, has its bytes read as elements of `dtype`.

    >>> import cygrad
    >>> cygrad.TypedStorage([1, 2], dtype=cygrad.int32).tolist()
    [1, 2]
    """

    __slots__ = ()

    def __init__(
        self,
        content: Any = (),
        *,
        wrap_storage: Any = None,
        dtype: _dtype | None = None,
        device: Any = None,
        _internal: bool = False,
    ) -> None:
        kind = dtype or get_default_dtype()
        if wrap_storage is not None:
            content = wrap_storage._flat.view(kind)
        elif not isinstance(content, Tensor):
            content = _memory(content, kind, "torch.TypedStorage()")
        super().__init__(content if device is None else content.to(device))
        if self._flat.dtype is not content.dtype:
            self._flat = self._flat.view(content.dtype)
        self._file = getattr(wrap_storage, "_file", None)

    def _type_name(self) -> str:
        return type_name(self.dtype)

    def pickle_storage_type(self) -> str:
        """Return the name under which files refer to the type.

        >>> import cygrad
        >>> import warnings
        >>> with warnings.catch_warnings(action="ignore"):
        ...     print(cygrad.ones(2).storage().pickle_storage_type())
        FloatStorage
        """
        return self._pickle_storage_type()

    def _pickle_storage_type(self) -> str:
        return self._type_name().rpartition(".")[2]

    @classmethod
    def from_buffer(
        cls,
        buffer: Any,
        byte_order: str | None = None,
        count: int = -1,
        offset: int = 0,
        *,
        dtype: Any = None,
        device: Any = None,
    ) -> TypedStorage:
        """Same as `UntypedStorage.from_buffer`, as elements of `dtype`.

        >>> import cygrad
        >>> cygrad.IntStorage.from_buffer(bytes([0, 0, 1, 0]), "big").tolist()
        [256]
        """
        own = getattr(cls, "_of_class", None)
        if own is not None and (dtype is not None or device is not None):
            raise RuntimeError(
                "from_buffer: 'dtype' can only be specified in UntypedStorage.from_buffer and TypedStorage.from_buffer"
            )
        kind = own or dtype or get_default_dtype()
        return TypedStorage(elements_of(buffer, byte_order, count, offset, kind), device=device)

    @classmethod
    def from_file(cls, filename: Any, shared: bool = False, size: int = 0) -> TypedStorage:
        """Same as `UntypedStorage.from_file`, for `size` elements.

        Raises RuntimeError unless it is called on `FloatStorage` or its kind.

        >>> import cygrad
        >>> import os, tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = os.path.join(folder, "numbers")
        ...     storage = cygrad.ShortStorage.from_file(path, shared=True, size=2)
        ...     print(storage.tolist())
        ...     del storage
        [0, 0]
        """
        own = getattr(cls, "_of_class", None)
        if own is None:
            raise RuntimeError("from_file can only be called on derived classes")
        memory = UntypedStorage.from_file(filename, shared, size * own.itemsize)
        return TypedStorage(wrap_storage=memory, dtype=own)

    @property
    def dtype(self) -> _dtype:
        """The dtype of the elements."""
        return self._flat.dtype

    def untyped(self) -> UntypedStorage:
        """Return the same memory as bytes.

        >>> import cygrad
        >>> import warnings
        >>> with warnings.catch_warnings(action="ignore"):
        ...     print(len(cygrad.ones(2).storage().untyped()))
        8
        """
        return UntypedStorage(self._flat)

    @property
    def _untyped_storage(self) -> UntypedStorage:
        return self.untyped()

    @property
    def _dtype(self) -> _dtype:
        return self._flat.dtype


# PyTorch's own names for methods that it calls without a warning that the class is deprecated
for _name in "data_ptr element_size __getitem__ is_shared nbytes resize_ __setitem__ share_memory_ size".split():
    setattr(TypedStorage, f"_{_name.strip('_') if _name[0] == '_' else _name}", getattr(TypedStorage, _name))


def from_file(
    filename, shared=None, size=0, *, dtype=None, layout=None, device=None, pin_memory=False, requires_grad=False
):
    """Return a tensor of `size` elements (None: 0) whose memory is the beginning of a file, which is read as needed.

    With `shared`, changes are written to the file, which is made or lengthened if need be; otherwise they are not. The
    elements are of `dtype`, by default the default dtype. Raises RuntimeError if the file is missing or too short,
    NotImplementedError for a device other than the CPU and for sparse layouts.

    >>> import cygrad, os, tempfile
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     path = os.path.join(directory, "numbers")
    ...     cygrad.from_file(path, shared=True, size=3).copy_(cygrad.tensor([1.0, 2.0, 3.0]))
    ...     cygrad.from_file(path, size=2)
    tensor([1., 2., 3.])
    tensor([1., 2.])
    """
    if not isinstance(filename, str):
        raise messages.wrong_type("from_file", "filename", 1, "str", filename)
    if pin_memory:
        raise RuntimeError("tensors constructed from a file cannot be pinned")
    kind = dtype or get_default_dtype()
    if device is not None and device_named(device).type != "cpu" or layout not in (None, layouts["strided"]):
        where = device_named(device).type if device is not None else str(layout)
        raise NotImplementedError(
            f"Could not run 'aten::from_file' with arguments from the '{where}' backend\n"
            "  to fix it: make the tensor on the CPU, and convert it: x.to(device), x.to_sparse()"
        )
    size = size or 0
    nbytes = size * kind.itemsize
    if size < 0:
        raise RuntimeError(f"unable to mmap {nbytes} bytes from file <{filename}>: Cannot allocate memory (12)")
    try:
        if not shared and os.path.getsize(filename) < nbytes:
            there = os.path.getsize(filename)
            raise RuntimeError(f"file <{filename}> size <{there}> is smaller than the required mapping size <{nbytes}>")
        memory = UntypedStorage.from_file(filename, bool(shared), nbytes)
    except OSError as error:
        mode = "read-write" if shared else "read-only"
        text = f"unable to open file <{filename}> in {mode} mode: {error.strerror} ({error.errno})"
        raise RuntimeError(text) from error
    return memory._flat.view(kind).requires_grad_(requires_grad)


functions = publish(
    globals(),
    {
        "StorageBase": StorageBase,
        "TypedStorage": TypedStorage,
        "UntypedStorage": UntypedStorage,
        "from_file": from_file,
    },
)
