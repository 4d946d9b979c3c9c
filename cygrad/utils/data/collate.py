"""Collates lists of samples into batches."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

import cygrad
from cygrad import Tensor

__all__ = ["default_collate", "default_convert"]

np_str_obj_array_pattern = re.compile(r"[SaUO]")  # types of arrays that become no tensors
default_collate_err_msg_format = (
    "default_collate: batch must contain tensors, numpy arrays, numbers, dicts or lists; found {}"
)


def default_collate(batch: Sequence[Any]) -> Any:
    """Collate samples of the same structure into one such structure of batches.

    Tensors and arrays are stacked along a new first dimension, numbers become a tensor (float64 for floats), strings
    and bytes a list; dicts, named tuples, and other sequences (as lists) are collated recursively. For other types, add
    functions to `default_collate_fn_map`. Raises TypeError for unknown types, RuntimeError for sequences or tensors of
    different lengths.

    >>> from cygrad.utils.data import default_collate
    >>> default_collate([{"x": 1, "name": "a"}, {"x": 2, "name": "b"}])
    {'x': tensor([1, 2]), 'name': ['a', 'b']}
    """
    return collate(batch, collate_fn_map=default_collate_fn_map)


def collate(batch: Sequence[Any], *, collate_fn_map: dict[Any, Any] | None = None) -> Any:
    """Like `default_collate`, with custom functions: `collate_fn_map[type](batch, collate_fn_map=collate_fn_map)`
    collates samples of that type or its subclasses. The keys are types and tuples of types.

    >>> from cygrad.utils.data._utils.collate import collate
    >>> collate([{"x": 1}, {"x": 2}], collate_fn_map={int: lambda batch, *, collate_fn_map: sum(batch)})
    {'x': 3}
    """
    first = batch[0]
    functions = collate_fn_map or {}
    if type(first) in functions:
        return functions[type(first)](batch, collate_fn_map=functions)
    for types, function in functions.items():
        if isinstance(first, types):
            return function(batch, collate_fn_map=functions)

    def column(values: Sequence[Any]) -> Any:
        return collate(values, collate_fn_map=functions)

    if isinstance(first, Mapping):
        return _like(first, {key: column([item[key] for item in batch]) for key in first})
    if isinstance(first, tuple) and hasattr(first, "_fields"):
        return type(first)(*map(column, zip(*batch)))
    if isinstance(first, Sequence):
        if any(len(item) != len(first) for item in batch):
            raise RuntimeError(f"each element in list of batch should be of equal size\n{_UNEQUAL}")
        return [column(values) for values in zip(*batch)]
    raise _unknown(type(first))


def default_convert(data: Any) -> Any:
    """Convert the arrays in a sample to tensors, for a loader without batching; other values are unchanged.

    >>> import numpy
    >>> from cygrad.utils.data import default_convert
    >>> default_convert({"x": numpy.ones(2), "y": 3})
    {'x': tensor([1., 1.], dtype=torch.float64), 'y': 3}
    """
    if isinstance(data, (np.ndarray, np.generic)):
        return data if data.dtype.kind in "USOV" else _tensor(data)
    if isinstance(data, Mapping):
        return _like(data, {key: default_convert(value) for key, value in data.items()})
    if isinstance(data, tuple) and hasattr(data, "_fields"):
        return type(data)(*map(default_convert, data))
    if isinstance(data, Sequence) and not isinstance(data, (str, bytes)):
        return [default_convert(value) for value in data]
    return data


_UNEQUAL = "  give the DataLoader a `collate_fn` for samples of different lengths (nn.utils.rnn.pad_sequence pads them)"


def _unknown(found: Any) -> TypeError:
    return TypeError(
        f"{default_collate_err_msg_format.format(found)}\n"
        "  give the DataLoader a `collate_fn` of your own for other samples"
    )


# -- samples of one type; PyTorch's names, which programs put into maps of their own --


def collate_tensor_fn(batch: Sequence[Tensor], *, collate_fn_map: Any = None) -> Tensor:
    """Stack tensors along a new first dimension. Raises RuntimeError if their shapes differ."""
    if batch[0].layout is not cygrad.strided:
        raise RuntimeError(
            "Batches of sparse tensors are not currently supported by the default collate_fn; please provide a custom "
            "collate_fn to handle them appropriately."
        )
    try:
        return cygrad.stack(tuple(batch))
    except RuntimeError as error:
        raise RuntimeError(f"{error}\n{_UNEQUAL}") from None


def collate_numpy_array_fn(batch: Sequence[Any], *, collate_fn_map: Any = None) -> Tensor:
    """Stack arrays as tensors. Raises TypeError for arrays of strings or objects."""
    if isinstance(batch[0], (str, bytes)):  # NumPy's strings
        return batch  # type: ignore[return-value]
    if batch[0].dtype.kind in "USOV":
        raise _unknown(batch[0].dtype if isinstance(batch[0], np.ndarray) else type(batch[0]))
    return collate_tensor_fn([_tensor(sample) for sample in batch])


collate_numpy_scalar_fn = collate_numpy_array_fn


def collate_float_fn(batch: Sequence[float], *, collate_fn_map: Any = None) -> Tensor:
    """Return numbers as a tensor of float64."""
    return cygrad.tensor(batch, dtype=cygrad.float64)


def collate_int_fn(batch: Sequence[int], *, collate_fn_map: Any = None) -> Tensor:
    """Return integers as a tensor."""
    return cygrad.tensor(batch)


def collate_str_fn(batch: Any, *, collate_fn_map: Any = None) -> Any:
    """Return strings as they are."""
    return batch


def _tensor(value: Any) -> Tensor:
    return cygrad.as_tensor(np.asarray(value))


def _like(mapping: Mapping[Any, Any], items: dict[Any, Any]) -> Any:
    """Return a mapping of the same type with these items, or a dict if the type cannot be constructed from them."""
    try:
        return type(mapping)(items)  # type: ignore[call-arg]
    except TypeError:  # its constructor takes other arguments
        return items


default_collate_fn_map: dict[Any, Any] = {
    Tensor: collate_tensor_fn,
    (np.ndarray, np.generic): collate_numpy_array_fn,
    float: collate_float_fn,
    int: collate_int_fn,
    (str, bytes): collate_str_fn,
}
