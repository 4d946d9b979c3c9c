"""Bytes of a file as elements of a dtype."""

from __future__ import annotations

from typing import Any

import numpy as np

import cygrad


def numpy_type(name: str) -> np.dtype:
    """NumPy's type of the dtype of that name; bfloat16 raises ImportError if ml_dtypes is missing."""
    return cygrad.empty(0, dtype=getattr(cygrad, name)).numpy().dtype


def as_little_endian(array: np.ndarray) -> memoryview:
    """The elements of an array in the order of their indices, as a vector of bytes, the lowest byte of each first."""
    flat = np.ascontiguousarray(array).reshape(-1)
    return flat.astype(flat.dtype.newbyteorder("<"), copy=False).view(np.uint8).data


def elements(data: Any, offset: int, count: int, dtype: np.dtype, what: str, order: Any = "<") -> np.ndarray:
    """A vector of `count` elements at a place of a buffer, sharing its memory where alignment and order allow."""
    array = np.ndarray(count, dtype.newbyteorder(order), buffer=data, offset=offset)
    if dtype.kind == "b" and (array.view(np.uint8) > 1).any():  # which NumPy would count as more than one
        raise RuntimeError(f"{what} is damaged: it is of type bool, and has elements that are neither 0 nor 1")
    return array.astype(dtype, copy=not array.flags.aligned)
