"""Applies Python functions of numbers to each element, in place. Slow, and not recorded by autograd."""

import math
import operator

from cygrad._core.graph.internals import array_of
from cygrad._core.graph.opdef import publish
from cygrad._ops.base.arguments import require
from cygrad._ops.base.creation import tensor
from cygrad._ops.base.views import expand


def mapped(name, self, callable, **others):
    """Store `callable(element, element of other, ...)` in each element of `self`; `others` are named as arguments."""
    t = require(self, name, "self")
    for position, (argument, other) in enumerate(others.items(), 1):
        require(other, name, argument, position)
    given = t, *others.values()
    if any(each.requires_grad for each in given):
        raise RuntimeError(f"Can't call {name}() on Variable that requires grad. Use var.detach().{name}() instead.")
    for argument, other in others.items():
        if other.dtype is not t.dtype:
            place = f"argument '{argument}'" if name == "map2_" else f"'{argument}'"  # as PyTorch does
            raise TypeError(f"{name}: expected {t.type()} for {place} (got {other.type()})")
    columns = [array_of(expand(each, t.shape)).ravel().tolist() for each in given]
    read = reader(t.dtype)
    found = tensor([read(callable(*numbers)) for numbers in zip(*columns)], dtype=t.dtype, device="cpu")
    return t.copy_(found.reshape(t.shape))


def reader(dtype):
    """Return the conversion of results to numbers for tensors of that dtype. It raises TypeError for anything else."""
    if dtype.is_floating_point:
        return as_float
    if dtype.is_complex:
        return lambda value: value if isinstance(value, complex) else as_float(value)
    return lambda value: value if isinstance(value, float) else operator.index(value)


def as_float(value):
    """Convert a number to a float. Raises TypeError for strings, unlike `float`."""
    return math.ldexp(value, 0)


def apply_(self, callable):
    """Replace each element by `callable(element)`, and return this tensor.

    Raises RuntimeError if the tensor requires grad, TypeError for a result that is not a number.

    >>> import cygrad
    >>> cygrad.tensor([1.0, 2.0]).apply_(lambda value: value * 10)
    tensor([10., 20.])
    """
    return mapped("apply_", self, callable)


def map_(self, other, callable):
    """Replace each element by `callable(element, other_element)`, and return this tensor; `other` is expanded.

    Raises TypeError if the dtypes differ, RuntimeError if either tensor requires grad.

    >>> import cygrad
    >>> cygrad.tensor([1.0, 2.0]).map_(cygrad.tensor([5.0]), lambda a, b: a + b)
    tensor([6., 7.])
    """
    return mapped("map_", self, callable, other=other)


def map2_(self, x, y, callable):
    """Replace each element by `callable` of it and the elements of `x` and `y`. See `map_`.

    >>> import cygrad
    >>> x = cygrad.tensor([1.0, 2.0])
    >>> x.map2_(x, x, lambda a, b, c: a + b * c)
    tensor([2., 6.])
    """
    return mapped("map2_", self, callable, x=x, y=y)


methods = {method.__name__: method for method in (apply_, map_, map2_)}
functions = publish(globals())
