"""What NumPy's functions and ufuncs on tensors share: operands of all kinds, results, and the table of functions."""

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

FUNCTIONS: dict[Any, Any] = {}  # what each function of NumPy means; those that an older NumPy lacks are left out


def means(*names):
    """The decorated function is what NumPy's functions of these names mean for tensors."""

    def note(function):
        for name in names:
            try:
                FUNCTIONS[operator.attrgetter(name)(np)] = function
            except AttributeError:
                pass
        return function

    return note


def method_of(name):
    """A function that calls the package's function of this name with one tensor, then what else it is given."""

    def function(a, *args, **kwargs):
        return public(name)(as_tensor(a), *args, **kwargs)

    return function


def public(path):
    """The package's function of this name ('linalg.norm'), or None."""
    found: Any = sys.modules["cygrad"]
    for name in path.split("."):
        found = getattr(found, name, None)
    return found


# -- operands and results --


class Foreign(Exception):
    """An operand that knows itself what ufuncs mean for it."""


def operand(value):
    """A tensor or a Python number, from whatever NumPy takes."""
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
    """A tensor, from whatever NumPy takes."""
    if isinstance(value, Tensor):
        return value
    if isinstance(value, np.ndarray):
        return sharing(value)
    if isinstance(value, (list, tuple)) and any(isinstance(item, Tensor) for item in value):
        return stack([as_tensor(item) for item in value])
    if isinstance(value, (list, tuple)):  # of the type that NumPy gives it
        return sharing(np.array(value))
    return from_values(value, None, False, "tensor")


def common(a, b):
    """Both as tensors of one type."""
    a, b = as_tensor(a), as_tensor(b)
    kind = public("promote_types")(a.dtype, b.dtype)
    return a.to(kind), b.to(kind)


def convert(value):
    """What NumPy computes with: the arrays of tensors, also in lists. Raises for one that requires grad."""
    if isinstance(value, Tensor):
        return value.numpy()
    if isinstance(value, (list, tuple)) and any(isinstance(item, (Tensor, list, tuple)) for item in value):
        items = [convert(item) for item in value]
        return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)
    if isinstance(value, dict):
        return {key: convert(item) for key, item in value.items()}
    return value


def wrapped(result):
    """NumPy's result as a tensor, where there is a dtype for it."""
    if isinstance(result, tuple):
        return tuple(wrapped(item) for item in result)
    if isinstance(result, (np.ndarray, np.generic)) and result.dtype.kind in "biufc":
        return sharing(np.asarray(result))
    return result


def deliver(result, out, mask=True):
    """The result, or `out` with the result in it (where `mask` says so).

    A tensor gets its history; an array can have none, so that what requires grad raises RuntimeError.
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
    """An argument for which NumPy writes a value of its own if nothing is given."""
    return default if value is np._NoValue else value


def typed(t, dtype):
    return t if dtype is None else t.to(as_dtype(dtype))


def dims_of(axis, t):
    """All dimensions, for None."""
    return tuple(range(t.ndim)) if axis is None else axis
