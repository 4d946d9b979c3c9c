"""Interprets bytes of a file as elements of a dtype."""

from __future__ import annotations

from typing import Any

import numpy as np

import cygrad


def numpy_type(name: str) -> np.dtype:
    """Return the NumPy dtype for a dtype's name; bfloat16 raises ImportError if ml_dtypes is missing."""
    return cygrad.empty(0, dtype=getattr(cygrad, name)).numpy().dtype


def as_little_endian(array: np.ndarray) -> memoryview:
    """Return the elements of an array in row-major order as little-endian bytes."""
    flat = np.ascontiguousarray(array).reshape(-1)
    return flat.astype(flat.dtype.newbyteorder("<"), copy=False).view(np.uint8).data


def elements(data: Any, offset: int, count: int, dtype: np.dtype, order: Any = "<") -> np.ndarray:
    """Return a vector of `count` elements in a buffer, sharing its memory if alignment and byte order permit."""
    array = np.ndarray(count, dtype.newbyteorder(order), buffer=data, offset=offset)
    return array.astype(dtype, copy=not array.flags.aligned)


def check_bools(data: Any, what: str) -> None:
    """Raise RuntimeError if a byte is neither 0 nor 1: NumPy would count such an element as more than one."""
    if (np.frombuffer(data, np.uint8) > 1).any():
        raise RuntimeError(f"{what} is damaged: it is of type bool, but has elements that are neither 0 nor 1")
