"""Shared by NumPy's functions and ufuncs on tensors: conversion of operands and results, and the function table."""

import operator
import sys
from typing import Any

import numpy as np

from cygrad._core.diagnostics.graph_errors import read_of_gradient
from cygrad._core.graph.internals import array_of
from cygrad._core.graph.tensor import Tensor
from cygrad._core.types.dtypes import as_dtype
from cygrad._ops.base.creation import from_values, sharing
from cygrad._ops.base.slicing import stack
from cygrad._ops.elementwise.selection import where

# -- names --

FUNCTIONS: dict[Any, Any] = {}  # implementation of each NumPy function; those missing from an older NumPy are left out


def means(*names):
    """Register the decorated function as the implementation of NumPy's functions of these names for tensors."""

    def note(function):
        for name in names:
            try:
                FUNCTIONS[operator.attrgetter(name)(np)] = function
            except AttributeError:
                pass
        return function

    return note


def method_of(name):
    """Return a function that calls cygrad's function of this name, with its first argument converted to a tensor."""

    def function(a, *args, **kwargs):
        return public(name)(as_tensor(a), *args, **kwargs)

    return function


def public(path):
    """Return cygrad's public function of this name ('linalg.norm'), or None."""
    found: Any = sys.modules["cygrad"]
    for name in path.split("."):
        found = getattr(found, name, None)
    return found


# -- operands and results --


class Foreign(Exception):
    """Raised for an operand with its own `__array_ufunc__`, which takes precedence."""


def operand(value):
    """Convert anything NumPy accepts to a tensor or a Python number."""
    if isinstance(value, (Tensor, bool, int, float, complex)):
        return value
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.ndarray):
        return sharing(value)
    if hasattr(type(value), "__array_ufunc__"):
        raise Foreign
    return as_tensor(value)


def as_tensor(value):
    """Convert anything NumPy accepts to a tensor."""
    if isinstance(value, Tensor):
        return value
    if isinstance(value, np.ndarray):
        return sharing(value)
    if isinstance(value, (list, tuple)) and any(isinstance(item, Tensor) for item in value):
        return stack([as_tensor(item) for item in value])
    if isinstance(value, (list, tuple)):  # with the dtype that NumPy gives it
        return sharing(np.array(value))
    return from_values(value, None, False, "tensor")


def common(a, b):
    """Convert both to tensors of their promoted dtype."""
    a, b = as_tensor(a), as_tensor(b)
    kind = public("promote_types")(a.dtype, b.dtype)
    return a.to(kind), b.to(kind)


def convert(value):
    """Convert tensors, also those in lists, to arrays for NumPy. Raises for a tensor that requires grad."""
    if isinstance(value, Tensor):
        return value.resolve_conj().resolve_neg().numpy()
    if isinstance(value, (list, tuple)) and any(isinstance(item, (Tensor, list, tuple)) for item in value):
        items = [convert(item) for item in value]
        return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)
    if isinstance(value, dict):
        return {key: convert(item) for key, item in value.items()}
    return value


def wrapped(result):
    """Convert NumPy's result to a tensor if cygrad has its dtype."""
    if isinstance(result, tuple):
        return tuple(wrapped(item) for item in result)
    if isinstance(result, (np.ndarray, np.generic)) and result.dtype.kind in "biufc":
        return sharing(np.asarray(result))
    return result


def deliver(result, out, mask=True):
    """Return the result, or `out` with the result written to it (where `mask` is true).

    If `out` is a tensor, the write is recorded; if it is an array, results that require grad raise RuntimeError.
    """
    if out is None:
        return result if mask is True else where(as_tensor(mask), result, 0)
    if not isinstance(out, (Tensor, np.ndarray)):
        raise TypeError("return arrays must be of ArrayType")
    target, shape = tuple(out.shape), tuple(result.shape)
    if np.broadcast_shapes(target, shape) != target:
        raise ValueError(f"non-broadcastable output operand with shape {target} doesn't match the shape {shape}")
    if isinstance(out, Tensor):
        return out.copy_(result if mask is True else where(as_tensor(mask), result, out))
    if result.requires_grad:
        raise read_of_gradient(result)
    np.copyto(out, array_of(result), casting="same_kind", where=convert(mask))
    return out


def select(mask, t, other):
    return where(as_tensor(mask), t, from_values(other, t.dtype, False, "tensor"))


# -- arguments --


def given(value, default=False):
    """Replace `np._NoValue`, NumPy's default for arguments that were not passed, by `default`."""
    return default if value is np._NoValue else value


def typed(t, dtype):
    return t if dtype is None else t.to(as_dtype(dtype))


def dims_of(axis, t):
    """Return `axis`, or all dimensions for None."""
    return tuple(range(t.ndim)) if axis is None else axis
