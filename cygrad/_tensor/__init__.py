"""PyTorch's module of the class `Tensor`, by whose name libraries import it."""

from __future__ import annotations

from typing import Any

from cygrad import Tensor as Tensor
from cygrad._core.registry.torch_function import _of_class

__all__ = ["Tensor"]


def _convert(ret: Any, cls: type) -> Any:
    """Return the tensors among the results of a function as objects of a class."""
    return ret if cls is Tensor else _of_class(ret, cls)


def _dtype_to_typestr(dtype: Any) -> str:
    """Return the type of an array interface: '<f4' for float32."""
    return dtype.numpy.str


def _rebuild_from_type_v2(func: Any, new_type: type, args: tuple, state: Any) -> Any:
    """Rebuild a tensor of a class with attributes, as pickles of such tensors ask for."""
    found = func(*args)
    found = found if type(found) is new_type else found.as_subclass(new_type)
    restore = getattr(new_type, "__setstate__", None)
    if restore not in (None, getattr(Tensor, "__setstate__", None)):
        restore(found, state)
    else:
        vars(found).update(state[0] if isinstance(state, tuple) else state or {})
    return found
