"""Collates lists of samples into batches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

import cygrad
from cygrad import Tensor

__all__ = ["default_collate", "default_convert"]


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
        f"default_collate: batch must contain tensors, numpy arrays, numbers, dicts or lists; found {found}\n"
        "  give the DataLoader a `collate_fn` of your own for other samples"
    )


def _stack(samples: Sequence[Tensor], *, collate_fn_map: Any = None) -> Tensor:
    try:
        return cygrad.stack(tuple(samples))
    except RuntimeError as error:
        raise RuntimeError(f"{error}\n{_UNEQUAL}") from None


def _stack_arrays(samples: Sequence[Any], *, collate_fn_map: Any = None) -> Tensor:
    if samples[0].dtype.kind in "USOV":
        raise _unknown(samples[0].dtype if isinstance(samples[0], np.ndarray) else type(samples[0]))
    return _stack([_tensor(sample) for sample in samples])


def _tensor(value: Any) -> Tensor:
    return cygrad.as_tensor(np.asarray(value))


def _like(mapping: Mapping[Any, Any], items: dict[Any, Any]) -> Any:
    """Return a mapping of the same type with these items, or a dict if the type cannot be constructed from them."""
    try:
        return type(mapping)(items)  # type: ignore[call-arg]
    except TypeError:  # its constructor takes other arguments
        return items


default_collate_fn_map: dict[Any, Any] = {
    Tensor: _stack,
    (np.ndarray, np.generic): _stack_arrays,
    float: lambda batch, *, collate_fn_map: cygrad.tensor(batch, dtype=cygrad.float64),
    int: lambda batch, *, collate_fn_map: cygrad.tensor(batch),
    (str, bytes): lambda batch, *, collate_fn_map: batch,
}
