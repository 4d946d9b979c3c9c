"""`Variable`: a tensor under its legacy name."""

from __future__ import annotations

from collections.abc import Callable
from operator import index
from typing import Any

from cygrad._core.engine.backward import queue_callback
from cygrad._core.errors import messages
from cygrad._core.graph.internals import make_volatile
from cygrad._core.graph.tensor import Tensor

__all__ = ["Variable"]


class _Engine:
    """The object that old code accesses as `Variable._execution_engine`."""

    @staticmethod
    def queue_callback(callback: Callable[..., Any]) -> None:
        """Call `callback()` at the end of the backward pass running in this thread.

        Raises RuntimeError outside a backward pass.
        """
        queue_callback(callback)


class _VariableMeta(type):
    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, Tensor)

    def __subclasscheck__(cls, subclass: Any) -> bool:
        return issubclass(subclass, Tensor)


class Variable(metaclass=_VariableMeta):
    """`Variable(tensor, requires_grad=False)`: a tensor without history on the same memory.

    Every tensor is an instance of Variable. `volatile=True` is deprecated: results computed from such a tensor are not
    recorded; use `no_grad()`. Raises TypeError if `data` is not a tensor.

    >>> import cygrad
    >>> v = cygrad.autograd.Variable(cygrad.ones(2), requires_grad=True)
    >>> isinstance(v, cygrad.autograd.Variable), v.requires_grad
    (True, True)
    """

    _execution_engine = _Engine()

    def __new__(cls, data=None, requires_grad=False, volatile=None):
        if data is None:
            data = Tensor()
        if not isinstance(data, Tensor):
            raise TypeError(f"Variable data has to be a tensor, but got {messages.type_name(data)}")
        variable = data.detach()
        if volatile:
            messages.warn_volatile()
            if requires_grad:
                raise RuntimeError(messages.VOLATILE_REQUIRES_GRAD)
            make_volatile(variable)
        if index(requires_grad):
            if not (data.is_floating_point() or data.is_complex()):
                raise RuntimeError("Only Tensors of floating point and complex dtype can require gradients")
            variable.requires_grad_()
        return variable
