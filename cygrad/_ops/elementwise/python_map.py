"""Applies Python functions of numbers to each element, in place. Slow, and not recorded by autograd."""

import math

import numpy as np

from cygrad._core.errors import messages
from cygrad._core.graph.internals import array_of, tensor_of
from cygrad._core.graph.opdef import publish
from cygrad._core.graph.tensor import Tensor
from cygrad._ops.base.views import expand


def mapped(name, self, others, function):
    """Apply `function` to the elements of all tensors and store the results in `self`."""
    for position, other in enumerate(others, 1):
        if not isinstance(other, Tensor):
            argument = "other" if len(others) == 1 else "xy"[position - 1]
            raise messages.wrong_type(name, argument, position, "Tensor", other)
    if any(t.requires_grad for t in (self, *others)):
        raise RuntimeError(f"Can't call {name}() on Variable that requires grad. Use var.detach().{name}() instead.")
    for other in others:
        if other.dtype is not self.dtype:
            raise TypeError(
                f"{name}: expected {messages.type_word(array_of(self))} for 'other' "
                f"(got {messages.type_word(array_of(other))})"
            )
    if not callable(function):
        raise TypeError(f"'{type(function).__name__}' object is not callable")
    arrays = [array_of(self), *(array_of(expand(other, *self.shape)) for other in others)]
    read = reader(self.dtype)
    found = [read(function(*numbers)) for numbers in zip(*(array.ravel().tolist() for array in arrays))]
    return self.copy_(tensor_of(np.array(found, self.dtype.numpy).reshape(self.shape)))


def reader(dtype):
    """Return the conversion from a number to an element of that dtype; fractions are truncated for integers."""
    if dtype.is_complex:
        return complex
    if dtype.name == "bool":
        return bool
    if dtype.is_floating_point:
        return as_float
    return lambda value: value if isinstance(value, int) else math.trunc(as_float(value))


def as_float(value):
    """Convert a number to float. Raises TypeError for strings, which `float` would parse."""
    if isinstance(value, (str, bytes)):
        raise TypeError(f"must be real number, not {type(value).__name__}")
    return float(value)


def apply_(self, callable):
    """Replace each element by `callable(element)`.

    Raises RuntimeError if the tensor requires grad.

    >>> import cygrad
    >>> cygrad.tensor([1.0, 2.0]).apply_(lambda value: value * 10)
    tensor([10., 20.])
    """
    return mapped("apply_", self, (), callable)


def map_(self, other, callable):
    """Replace each element by `callable(element, other_element)`; `other` is expanded.

    Raises TypeError if the dtypes differ, RuntimeError if either tensor requires grad.

    >>> import cygrad
    >>> cygrad.tensor([1.0, 2.0]).map_(cygrad.tensor([5.0]), lambda a, b: a + b)
    tensor([6., 7.])
    """
    return mapped("map_", self, (other,), callable)


def map2_(self, x, y, callable):
    """Replace each element by `callable` of it and the elements of `x` and `y`. See `map_`.

    >>> import cygrad
    >>> x = cygrad.tensor([1.0, 2.0])
    >>> x.map2_(x, x, lambda a, b, c: a + b * c)
    tensor([2., 6.])
    """
    return mapped("map2_", self, (x, y), callable)


methods = {"apply_": apply_, "map_": map_, "map2_": map2_}
functions = publish(globals())
