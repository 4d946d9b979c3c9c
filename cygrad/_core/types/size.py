"""``Size``: the type of ``tensor.shape`` and ``tensor.size()``."""

import math
import operator
from typing import Any

import numpy as np

__all__ = ["Size"]


class Size(tuple):
    """Size(iterable=()) -> Size

    The sizes of a tensor's dimensions: a tuple of ints that also computes the number of elements. Slicing,
    concatenation and repetition return a ``Size`` again. It equals, and hashes like, the tuple of the same
    sizes.

    Code that already has a tuple of ints creates a Size by ``tuple.__new__(Size, lengths)``, which skips
    the check.

    Raises:
        TypeError: an item is not an integer.

    Example:
        >>> import cygrad
        >>> shape = cygrad.zeros(2, 3).shape
        >>> shape
        torch.Size([2, 3])
        >>> shape.numel()
        6
        >>> shape[1:] + (4,)
        torch.Size([3, 4])
    """

    __slots__ = ()
    __module__ = "cygrad"  # its public name, also used by pickle

    # Any number of arguments is passed on to tuple(), whose error messages users know.
    def __new__(cls, *iterable: Any) -> "Size":
        return _checked(tuple(*iterable))

    def __init_subclass__(cls, **kwargs: Any) -> None:
        raise TypeError("type 'torch.Size' is not an acceptable base type")

    def numel(self) -> int:
        """Return the number of elements of a tensor of this size: the product of its entries.

        Example:
            >>> import cygrad
            >>> cygrad.Size([2, 3]).numel()
            6
            >>> cygrad.Size([]).numel()
            1
        """
        return math.prod(self)

    def __repr__(self) -> str:
        return f"torch.Size({list(self)})"

    def __getitem__(self, index: Any) -> Any:
        item = tuple.__getitem__(self, index)
        return tuple.__new__(Size, item) if isinstance(index, slice) else item

    def __add__(self, other: Any) -> Any:
        if isinstance(other, tuple):
            return _checked(tuple.__add__(self, other))
        # Python would try the other operand as well, but then raise a vaguer error.
        reflected = getattr(type(other), "__radd__", None)
        result = NotImplemented if reflected is None else reflected(other, self)
        if result is NotImplemented:
            name = type(other).__name__
            raise TypeError(f"can only concatenate tuple (not {name}) to torch.Size")
        return result

    def __radd__(self, other: Any) -> Any:
        if isinstance(other, tuple):
            return _checked(tuple.__add__(other, self))
        return NotImplemented

    def __mul__(self, times: Any) -> Any:
        if isinstance(times, np.ndarray):  # multiplies elementwise
            return NotImplemented
        if not hasattr(times, "__index__"):
            name = type(times).__name__
            raise TypeError(f"can't multiply sequence by non-int of type '{name}'")
        return tuple.__new__(Size, tuple.__mul__(self, times))

    def __rmul__(self, times: Any) -> Any:
        return self * times if hasattr(times, "__index__") else NotImplemented

    def __reduce__(self) -> tuple:
        return Size, (tuple(self),)


def _checked(items: tuple) -> "Size":
    """Return the items as a Size; bools, NumPy integers and integer tensors become ints."""
    for item in items:
        if type(item) is not int:
            items = tuple(_length(position, item) for position, item in enumerate(items))
            break
    return tuple.__new__(Size, items)


def _length(position: int, item: Any) -> int:
    try:
        return operator.index(item)
    except TypeError:
        raise TypeError(
            f"torch.Size() takes an iterable of 'int' (item {position} is '{type(item).__name__}')"
        ) from None
