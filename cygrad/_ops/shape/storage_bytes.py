"""What storages read from other objects: bytes in either order, and the names of their types."""

import sys

import numpy as np

from cygrad._core.graph.internals import tensor_of
from cygrad._core.types.dtypes import by_name, dtype_named

DTYPES = {
    "BFloat16": "bfloat16",
    "Bool": "bool",
    "Byte": "uint8",
    "Char": "int8",
    "ComplexDouble": "complex128",
    "ComplexFloat": "complex64",
    "Double": "float64",
    "Float": "float32",
    "Half": "float16",
    "Int": "int32",
    "Long": "int64",
    "Short": "int16",
}


def type_name(dtype):
    """Return the name of the class of storages of a dtype."""
    names = [name for name, kind in DTYPES.items() if kind == dtype.name]
    return f"torch.{names[0]}Storage" if names else "torch.storage.TypedStorage"


def dtype_called(kind):
    """Return the dtype of a class of storages such as `FloatStorage`, or of its name; None if it is none."""
    name = kind if isinstance(kind, str) else f"torch.{getattr(kind, '__name__', '')}"
    if not (name.startswith("torch.") and name.endswith("Storage")):
        return None
    found = DTYPES.get(name.removeprefix("torch.").removesuffix("Storage"))
    return None if found is None else dtype_named(found)


def elements_of(buffer, byte_order, count, offset, dtype):
    """Return a tensor of a copy of the elements in an object with bytes. Raises ValueError if they do not fit."""
    memory = memoryview(buffer).cast("B")
    size = dtype.itemsize
    if byte_order is None and dtype is not by_name()["uint8"]:
        raise RuntimeError("function missing required argument 'byte_order' (pos 2)")
    if byte_order is not None and byte_order not in ("big", "little", "native"):
        if not isinstance(byte_order, str):
            raise TypeError(f"argument 2 must be str, not {type(byte_order).__name__}")
        raise ValueError(f"invalid byte_order '{byte_order}' (expected 'big', 'little', or 'native')")
    there = len(memory)
    if offset < 0 or offset > there:
        raise ValueError(f"offset must be non-negative and no greater than buffer length ({there}), but got {offset}")
    if count < 0:
        if (there - offset) % size:
            raise ValueError(f"buffer size ({there}) must be a multiple of element size ({size})")
        count = (there - offset) // size
    if offset + count * size > there:
        raise ValueError(
            f"buffer has only {there - offset} elements after offset {offset}, but specified a size of {count}\n"
            f"  an element has {size} bytes"
        )
    found = np.frombuffer(memory, np.uint8, count * size, offset).copy()
    if byte_order not in (None, "native", sys.byteorder) and size > 1:
        swap(found, size // 2 if dtype.is_complex else size)
    if dtype is by_name()["bool"]:
        found = (found != 0).view(np.uint8)  # other bytes are no bool
    return tensor_of(found.view(dtype.numpy))


def swap(array, size):
    """Reverse each group of `size` bytes in place. Raises RuntimeError if the last one is not whole."""
    if array.size % size:
        raise RuntimeError(f"the length of data is not a multiple of {size}")
    rows = array.reshape(-1, size)
    rows[...] = rows[:, ::-1].copy()
