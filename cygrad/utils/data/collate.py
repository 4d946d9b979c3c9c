"""A batch of a list of samples."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

import cygrad
from cygrad import Tensor

__all__ = ["default_collate", "default_convert"]


def default_collate(batch: Sequence[Any]) -> Any:
    """Samples of the same structure as one such structure of batches.

    Tensors and arrays are stacked along a new first dimension, numbers become a tensor (floats one of float64),
    strings and bytes a list; dicts, tuples with names, and other sequences (as lists) are gone into.
    Raises TypeError for other types, RuntimeError for sequences or tensors that differ in length.

    >>> from cygrad.utils.data import default_collate
    >>> default_collate([{"x": 1, "name": "a"}, {"x": 2, "name": "b"}])
    {'x': tensor([1, 2]), 'name': ['a', 'b']}
    """
    first = batch[0]
    if isinstance(first, Tensor):
        return _stack(batch)
    if isinstance(first, (np.ndarray, np.generic)) and first.dtype.kind not in "USOV":
        return _stack([_tensor(item) for item in batch])
    if isinstance(first, float):
        return cygrad.tensor(batch, dtype=cygrad.float64)
    if isinstance(first, int):
        return cygrad.tensor(batch)
    if isinstance(first, (str, bytes)):
        return batch
    if isinstance(first, Mapping):
        return _like(first, {key: default_collate([item[key] for item in batch]) for key in first})
    if isinstance(first, tuple) and hasattr(first, "_fields"):
        return type(first)(*(default_collate(column) for column in zip(*batch)))
    if isinstance(first, Sequence):
        if any(len(item) != len(first) for item in batch):
            raise RuntimeError(f"each element in list of batch should be of equal size\n{_UNEQUAL}")
        return [default_collate(column) for column in zip(*batch)]
    found = first.dtype if isinstance(first, np.ndarray) else type(first)
    raise TypeError(
        f"default_collate: batch must contain tensors, numpy arrays, numbers, dicts or lists; found {found}\n"
        "  give the DataLoader a `collate_fn` of your own for other samples"
    )


def default_convert(data: Any) -> Any:
    """A sample with its arrays as tensors, for a loader that makes no batches; all else stays as it is.

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


def _stack(samples: Sequence[Tensor]) -> Tensor:
    try:
        return cygrad.stack(tuple(samples))
    except RuntimeError as error:
        raise RuntimeError(f"{error}\n{_UNEQUAL}") from None


def _tensor(value: Any) -> Tensor:
    return cygrad.as_tensor(np.asarray(value))


def _like(mapping: Mapping, items: dict) -> Any:
    """These items in a mapping of the same type, if it can be made of them."""
    try:
        return type(mapping)(items)  # type: ignore[call-arg]
    except TypeError:  # it is made of other arguments
        return items
