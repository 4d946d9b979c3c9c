"""Rebuilds tensors from PyTorch pickles: our versions of the functions in `torch._utils` that a pickle names."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

import cygrad
from cygrad import Tensor
from cygrad.serialization._locations import placed

_MOST_DIMS = 64  # NumPy's limit


class StorageType(NamedTuple):
    """A storage class, such as `torch.FloatStorage`: the dtype of its elements, uint8 if it has none."""

    dtype: str


class TypedStorage(NamedTuple):
    """A storage of a file, and the dtype used to read it."""

    storage: Any
    dtype: str


STORAGES = {
    f"{name}Storage": StorageType(dtype)
    for name, dtype in {
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
    }.items()
}
_FLOAT8 = ("float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu")
DTYPES = {*(kind.dtype for kind in STORAGES.values()), "uint16", "uint32", "uint64", *_FLOAT8}
CLASSES = {name: name.rpartition(".")[2] for name in ("torch.Tensor", "torch.nn.parameter.Parameter")}


def _tensor(typed: Any, offset: Any, size: Any, stride: Any, dtype: str | None = None) -> Tensor:
    """Return a view of a storage. Raises ValueError if it is out of bounds."""
    lengths, steps = tuple(size), tuple(stride)
    numbers = (offset, *lengths, *steps)
    if not isinstance(typed, TypedStorage) or not all(type(n) is int and 0 <= n < 2**62 for n in numbers):
        raise ValueError("a tensor is made of no storage, or its shape is not of non-negative integers")
    if len(lengths) != len(steps) or len(lengths) > _MOST_DIMS:
        raise ValueError(f"a tensor has {len(lengths)} sizes and {len(steps)} strides")
    vector = typed.storage.vector(dtype or typed.dtype)
    if math.prod(length or 1 for length in lengths) * vector.itemsize >= 2**63:  # NumPy's limit
        raise ValueError(f"a tensor of shape {list(lengths)} is larger than any memory")
    last = offset + sum((length - 1) * step for length, step in zip(lengths, steps))
    if 0 in lengths:
        return placed(np.empty(lengths, vector.dtype), typed.storage.gpu)
    if last >= len(vector):
        raise ValueError(
            f"setStorage: sizes {list(lengths)}, strides {list(steps)}, storage offset {offset} are out of bounds for "
            f"storage of {len(vector)} elements"
        )
    strides = [step * vector.itemsize for step in steps]
    if typed.storage.gpu is None:
        place = offset * vector.itemsize
        return cygrad.from_numpy(np.ndarray(lengths, vector.dtype, vector.view(np.uint8), place, strides))
    return typed.storage.on_gpu(dtype or typed.dtype).as_strided(lengths, steps, offset).data


def _finished(tensor: Tensor, requires_grad: Any, metadata: Any) -> Tensor:
    """Apply the flags that PyTorch stores beside the memory: lazy conjugation and negation."""
    if metadata is not None:
        tensor = tensor.conj().detach() if metadata.get("conj") else tensor
        tensor = tensor.neg() if metadata.get("neg") else tensor
    return tensor.requires_grad_(requires_grad is True)


def _rebuild_tensor_v2(
    storage: Any, offset: Any, size: Any, stride: Any, requires_grad: Any, hooks: Any, metadata: Any = None
) -> Tensor:
    return _finished(_tensor(storage, offset, size, stride), requires_grad, metadata)


def _rebuild_tensor_v3(
    storage: Any, offset: Any, size: Any, stride: Any, requires_grad: Any, hooks: Any, dtype: Any, metadata: Any = None
) -> Tensor:
    if not isinstance(dtype, cygrad.dtype):
        raise TypeError("the dtype of a tensor is not a dtype")
    name = str(dtype).removeprefix("torch.")
    return _finished(_tensor(storage, offset, size, stride, name), requires_grad, metadata)


def _rebuild_parameter(data: Any, requires_grad: Any, hooks: Any) -> Tensor:
    if not isinstance(data, Tensor):
        raise TypeError("a parameter is not made from a tensor")
    return cygrad.nn.Parameter(data, requires_grad is True)


def _rebuild_parameter_with_state(data: Any, requires_grad: Any, hooks: Any, state: Any) -> Tensor:
    return _with_attributes(_rebuild_parameter(data, requires_grad, hooks), state)


def from_type(tensor: Any, kind: Any, state: Any) -> Tensor:
    """Return a tensor with attributes; `kind` is the name of its class. Raises TypeError for other classes."""
    if not isinstance(tensor, Tensor) or kind not in CLASSES.values():
        raise TypeError("a tensor of a class that cygrad does not know")
    if kind == "Parameter" and not isinstance(tensor, cygrad.nn.Parameter):
        tensor = cygrad.nn.Parameter(tensor, tensor.requires_grad)
    return _with_attributes(tensor, state)


def _with_attributes(tensor: Tensor, state: Any) -> Tensor:
    """Set the user's attributes on the tensor, provided that they shadow none of its own."""
    if type(state) is not dict or not all(type(name) is str and not hasattr(tensor, name) for name in state):
        raise TypeError("the attributes of a tensor are no dictionary by names that are free")
    for name, value in state.items():
        setattr(tensor, name, value)
    return tensor


FUNCTIONS: dict[str, Any] = {
    "torch._utils._rebuild_tensor": _tensor,
    "torch._utils._rebuild_tensor_v2": _rebuild_tensor_v2,
    "torch._utils._rebuild_tensor_v3": _rebuild_tensor_v3,
    "torch._utils._rebuild_parameter": _rebuild_parameter,
    "torch._utils._rebuild_parameter_with_state": _rebuild_parameter_with_state,
}
