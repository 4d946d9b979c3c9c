"""Rebuilds tensors from PyTorch pickles: our versions of the functions in `torch._utils` that a pickle names.

What they are given comes from a file, and is checked before NumPy sees it. Their parameters have PyTorch's names.
"""

from __future__ import annotations

import math
from _thread import _local
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

import cygrad
from cygrad import Tensor
from cygrad._ops.shape.memory_ranges import negative_view

_MOST_DIMS = 64  # NumPy's limit


class StorageType(NamedTuple):
    """A storage class, such as `torch.FloatStorage`: its name, and the name of the dtype of its elements.

    >>> import cygrad
    >>> cygrad.serialization.StorageType("FloatStorage", "float32").dtype
    'float32'
    """

    name: str
    dtype: str


class FileBytes(cygrad.TypedStorage):
    """Bytes of elements whose dtype is stated by the tensors on them; `order` is ">" in big-endian files."""

    __slots__ = ("by_dtype", "order")

    def __init__(self, flat: Tensor, order: str) -> None:
        super().__init__(flat)
        self.order = order
        self.by_dtype: dict[Any, cygrad.TypedStorage] = {}

    def of_dtype(self, dtype: Any) -> cygrad.TypedStorage:
        """Return the whole elements of a dtype."""
        if dtype not in self.by_dtype:
            count = self.nbytes() // dtype.itemsize
            flat = self._flat[: count * dtype.itemsize]
            if dtype is cygrad.bool and not flat.is_meta and bool((flat > 1).any()):
                raise ValueError("a tensor of bool has elements that are neither 0 nor 1")
            flat = flat.view(dtype)
            if self.order == ">" and not flat.is_meta:
                flat = cygrad.from_numpy(flat.cpu().numpy().byteswap()).to(flat.device)
            self.by_dtype[dtype] = cygrad.TypedStorage(flat)
        return self.by_dtype[dtype]


_DTYPES = {
    "Double": "float64",
    "Float": "float32",
    "Half": "float16",
    "BFloat16": "bfloat16",
    "Long": "int64",
    "Int": "int32",
    "Short": "int16",
    "Char": "int8",
    "Byte": "uint8",
    "Bool": "bool",
    "ComplexFloat": "complex64",
    "ComplexDouble": "complex128",
    "Untyped": "uint8",
}
STORAGES = {f"{name}Storage": StorageType(f"{name}Storage", dtype) for name, dtype in _DTYPES.items()}
STORAGE_TYPES = {
    f"{module}.{name}": storage
    for module in ("torch", "torch.storage", "torch.cuda")
    for name, storage in STORAGES.items()
}
BY_DTYPE = {storage.dtype: storage for storage in reversed(STORAGES.values()) if storage.name != "UntypedStorage"}
_FLOAT8 = ("float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu")
DTYPES = {*_DTYPES.values(), "uint16", "uint32", "uint64", *_FLOAT8}
TENSOR_CLASSES = {"torch.Tensor": Tensor, "torch.nn.parameter.Parameter": cygrad.nn.Parameter}


def _rebuild_tensor(storage: Any, storage_offset: Any, size: Any, stride: Any) -> Tensor:
    """Return a view of a storage. Raises ValueError if it is out of bounds."""
    if not isinstance(storage, cygrad.TypedStorage) or type(storage_offset) is not int or storage_offset < 0:
        raise ValueError("a tensor is made of no storage, or its offset is not a non-negative integer")
    lengths, steps = _checked_layout(size, stride)
    vector = storage._flat
    _check_size(lengths, vector.itemsize)
    if 0 in lengths:
        return cygrad.empty(lengths, dtype=vector.dtype, device=vector.device)
    last = storage_offset + sum((length - 1) * step for length, step in zip(lengths, steps))
    if last >= len(vector):
        raise ValueError(
            f"setStorage: sizes {list(lengths)}, strides {list(steps)}, storage offset {storage_offset} are out of "
            f"bounds for storage of {len(vector)} elements"
        )
    if vector.device.type != "cpu":
        return vector.as_strided(lengths, steps, vector.storage_offset() + storage_offset).data
    array = vector.numpy()
    strides = [step * array.itemsize for step in steps]
    memory = array.view(np.uint8)  # since buffers of types of other packages are refused
    return cygrad.from_numpy(np.ndarray(lengths, array.dtype, memory, storage_offset * array.itemsize, strides))


def _checked_layout(size: Any, stride: Any) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return sizes and strides as tuples after checking that they can be those of a tensor."""
    if not isinstance(size, (tuple, list)) or not isinstance(stride, (tuple, list)):
        raise TypeError("the sizes and strides of a tensor are no tuples")
    if len(size) != len(stride) or len(size) > _MOST_DIMS:
        raise ValueError(f"a tensor has {len(size)} sizes and {len(stride)} strides")
    if not all(type(n) is int and 0 <= n < 2**62 for n in (*size, *stride)):
        raise ValueError("the shape of a tensor is not of non-negative integers")
    return tuple(size), tuple(stride)


def _check_size(lengths: tuple[int, ...], itemsize: int) -> None:
    if math.prod(length or 1 for length in lengths) * itemsize >= 2**63:  # NumPy's limit
        raise ValueError(f"a tensor of shape {list(lengths)} is larger than any memory")


def _finished(tensor: Tensor, requires_grad: Any, metadata: Any) -> Tensor:
    """Apply the flags that PyTorch stores beside the memory: lazy conjugation and negation."""
    if metadata is not None:
        tensor = tensor.conj().detach() if metadata.get("conj") else tensor
        tensor = negative_view(tensor) if metadata.get("neg") else tensor
    return tensor.requires_grad_(requires_grad is True)


def _rebuild_tensor_v2(
    storage: Any,
    storage_offset: Any,
    size: Any,
    stride: Any,
    requires_grad: Any,
    backward_hooks: Any,
    metadata: Any = None,
) -> Tensor:
    return _finished(_rebuild_tensor(storage, storage_offset, size, stride), requires_grad, metadata)


def _rebuild_tensor_v3(
    storage: Any,
    storage_offset: Any,
    size: Any,
    stride: Any,
    requires_grad: Any,
    backward_hooks: Any,
    dtype: Any,
    metadata: Any = None,
) -> Tensor:
    if not isinstance(dtype, cygrad.dtype) or not isinstance(storage, FileBytes):
        raise TypeError("a tensor has no dtype, or no storage of bytes")
    return _finished(_rebuild_tensor(storage.of_dtype(dtype), storage_offset, size, stride), requires_grad, metadata)


def _rebuild_meta_tensor_no_storage(dtype: Any, size: Any, stride: Any, requires_grad: Any) -> Tensor:
    if not isinstance(dtype, cygrad.dtype):
        raise TypeError("a meta tensor has no dtype")
    lengths, steps = _checked_layout(size, stride)
    _check_size(lengths, dtype.itemsize)
    _check_size((1 + sum((length or 1) * step for length, step in zip(lengths, steps)),), dtype.itemsize)
    return cygrad.empty_strided(lengths, steps, dtype=dtype, device="meta").requires_grad_(requires_grad is True)


def _rebuild_wrapper_subclass(
    cls: Any, dtype: Any, size: Any, stride: Any, storage_offset: Any, layout: Any, device: Any, requires_grad: Any
) -> Tensor:
    """Return a tensor without elements of a class with `__torch_dispatch__`, which holds others in its attributes."""
    if not (isinstance(cls, type) and issubclass(cls, Tensor)) or not isinstance(dtype, cygrad.dtype):
        raise TypeError("a tensor of a class that cygrad does not know, or without a dtype")
    lengths, steps = _checked_layout(size, stride)
    made: Tensor = Tensor._make_wrapper_subclass(  # type: ignore[attr-defined]
        cls,
        lengths,
        strides=steps,
        storage_offset=storage_offset,
        dtype=dtype,
        layout=layout,
        device=device,
        requires_grad=requires_grad is True,
    )
    return made


def _rebuild_device_tensor_from_cpu_tensor(data: Any, dtype: Any, device: Any, requires_grad: Any) -> Tensor:
    if not isinstance(data, Tensor):
        raise TypeError("a tensor of a device is not made from a tensor")
    return data.to(dtype=dtype).requires_grad_(requires_grad is True)


def _rebuild_parameter(data: Any, requires_grad: Any, backward_hooks: Any) -> Tensor:
    if not isinstance(data, Tensor):
        raise TypeError("a parameter is not made from a tensor")
    return cygrad.nn.Parameter(data, requires_grad is True)


def _rebuild_parameter_with_state(data: Any, requires_grad: Any, backward_hooks: Any, state: Any) -> Tensor:
    return _with_attributes(_rebuild_parameter(data, requires_grad, backward_hooks), state)


def _rebuild_from_type_v2(func: Any, new_type: Any, args: Any, state: Any) -> Tensor:
    """Return the tensor that `func(*args)` makes as one of the class `new_type`, with attributes.

    Raises TypeError if the class is not one of tensors.
    """
    tensor = func(*args)
    if not isinstance(tensor, Tensor) or not (isinstance(new_type, type) and issubclass(new_type, Tensor)):
        raise TypeError("a tensor of a class that cygrad does not know")
    if new_type is Tensor and type(state) is dict and state.get("_is_buffer") is True:
        persistent = state.get("persistent") is True
        tensor = cygrad.nn.Buffer(tensor.detach(), persistent=persistent).requires_grad_(tensor.requires_grad)
        state = {name: value for name, value in state.items() if name not in ("_is_buffer", "persistent")}
    elif new_type is cygrad.nn.Parameter:
        tensor = cygrad.nn.Parameter(tensor, tensor.requires_grad)
    elif type(tensor) is not new_type:
        tensor = Tensor._make_subclass(new_type, tensor.detach(), tensor.requires_grad)
    if new_type not in TENSOR_CLASSES.values() and hasattr(new_type, "__setstate__"):
        tensor.__setstate__(state)
        return tensor
    return _with_attributes(tensor, state)


def _with_attributes(tensor: Tensor, state: Any) -> Tensor:
    """Set the user's attributes on the tensor, provided that they shadow none of its own; classes may shadow methods.

    `state` is a dictionary, with one for slots a pair of both, or None.
    """
    parts = state if type(state) is tuple and len(state) == 2 else (state,)
    for attributes in parts:
        if attributes is None:
            continue
        if type(attributes) is not dict or not all(type(name) is str for name in attributes):
            raise TypeError("the attributes of a tensor are no dictionary by names")
        for name, value in attributes.items():
            known = getattr(Tensor, name, None)
            if known is not None and (type(tensor) in TENSOR_CLASSES.values() or hasattr(known, "__set__")):
                raise TypeError("the attributes of a tensor are no dictionary by names that are free")
            setattr(tensor, name, value)
    return tensor


def _get_layout(name: Any) -> Any:
    """Return the layout of that name."""
    found = getattr(cygrad, name.removeprefix("torch."), None) if type(name) is str else None
    if not isinstance(found, cygrad.layout):
        raise ValueError(f"there is no layout {name!r:.99}")
    return found


class _Reading(_local):
    """Whether elements are still to be read; and whether a tensor was met that cannot be made without them."""

    is_early = False
    needs_elements = False


_reading = _Reading()


@contextmanager
def before_elements() -> Iterator[Callable[[], bool]]:
    """In the block, elements are still to be read. It receives a function: whether what was made must be made anew."""
    before = _reading.is_early, _reading.needs_elements
    _reading.is_early, _reading.needs_elements = True, False
    try:
        yield lambda: _reading.needs_elements
    finally:
        _reading.is_early, _reading.needs_elements = before


def _rebuild_sparse_tensor(layout: Any, data: Any) -> Tensor:
    """Return a sparse tensor of its parts and its size. Raises RuntimeError if they do not fit together."""
    n = 2 if layout is cygrad.sparse_coo else 3
    parts, size, more = data[:n], data[n], data[n + 1 :]
    if layout is cygrad.strided or not all(
        isinstance(each, Tensor) and each.layout is cygrad.strided for each in parts
    ):
        raise TypeError("a sparse tensor has no sparse layout, or is not made of tensors")
    if _reading.is_early:
        _reading.needs_elements = True
        return cygrad.empty(0)  # in place of one whose indices are not there yet
    try:
        if layout is cygrad.sparse_coo:
            is_coalesced = bool(more) and more[0] is True
            indices, values = parts
            return cygrad.sparse_coo_tensor(indices, values, size, is_coalesced=is_coalesced, check_invariants=True)
        pointers, indices, values = parts
        return cygrad.sparse_compressed_tensor(pointers, indices, values, size, layout=layout, check_invariants=True)
    except RuntimeError as error:
        raise RuntimeError(f"{error}\n  the parts of a sparse tensor in the file do not fit together") from None


_IN_UTILS = (
    _rebuild_tensor,
    _rebuild_tensor_v2,
    _rebuild_tensor_v3,
    _rebuild_meta_tensor_no_storage,
    _rebuild_wrapper_subclass,
    _rebuild_device_tensor_from_cpu_tensor,
    _rebuild_parameter,
    _rebuild_parameter_with_state,
    _rebuild_sparse_tensor,
)
FUNCTIONS: dict[str, Any] = {
    **{f"torch._utils.{function.__name__}": function for function in _IN_UTILS},
    "torch._tensor._rebuild_from_type_v2": _rebuild_from_type_v2,
    "torch.serialization._get_layout": _get_layout,
}
