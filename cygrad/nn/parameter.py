"""Tensors that a module registers when they are assigned to it: parameters and buffers."""

from __future__ import annotations

import copy
from typing import Any

import cygrad
from cygrad import Tensor
from cygrad._core.show import repr_of

__all__ = ["Buffer", "Parameter"]


class Parameter(Tensor):
    """A tensor that a `Module` lists among its parameters once it is assigned as an attribute.

    `data` is the tensor whose memory the parameter shares (an empty one if None), of any shape and
    of a floating-point or complex dtype. Parameters require grad unless `requires_grad` is false,
    which also permits integer dtypes.

    >>> import cygrad
    >>> cygrad.nn.Parameter(cygrad.zeros(2))
    Parameter containing:
    tensor([0., 0.], requires_grad=True)

    Raises `RuntimeError` if a dtype that has no gradient is to require grad.
    """

    _results_keep_class = False  # what is computed from a parameter is a plain tensor

    def __new__(cls, data: Tensor | None = None, requires_grad: bool = True) -> Parameter:
        if data is None:
            data = cygrad.empty(0)
        return Tensor._make_subclass(cls, data.detach(), requires_grad)

    def __repr__(self) -> str:
        return repr_of(
            self, class_name=None if type(self) is Parameter else type(self).__name__, is_parameter_prefix=True
        )

    def __deepcopy__(self, memo: dict[int, Any]) -> Parameter:
        if id(self) not in memo:
            memo[id(self)] = new = type(self)(self.data.clone(), self.requires_grad)
            new.__dict__.update(copy.deepcopy(self.__dict__, memo))
        return memo[id(self)]

    def __reduce_ex__(self, protocol: Any) -> tuple:
        return _rebuild, (type(self), self.data, (self.requires_grad,), self.__dict__)


class Buffer(Tensor):
    """A tensor that a `Module` lists among its buffers once it is assigned as an attribute.

    Buffers are state without a gradient step: running statistics, masks, tables. They move and
    convert with the module, and stand in its `state_dict` if `persistent`.

    >>> import cygrad
    >>> module = cygrad.nn.Module()
    >>> module.mask = cygrad.nn.Buffer(cygrad.ones(2))
    >>> dict(module.state_dict())
    {'mask': tensor([1., 1.])}
    """

    persistent: bool
    _results_keep_class = False

    def __new__(cls, data: Tensor | None = None, *, persistent: bool = True) -> Buffer:
        if data is None:
            data = cygrad.empty(0)
        buffer = Tensor._make_subclass(cls, data.detach(), data.requires_grad)
        buffer.persistent = persistent
        return buffer

    def __repr__(self) -> str:
        return repr_of(self)

    def __deepcopy__(self, memo: dict[int, Any]) -> Buffer:
        if id(self) not in memo:
            memo[id(self)] = type(self)(self.data.clone(), persistent=self.persistent)
        return memo[id(self)]

    def __reduce_ex__(self, protocol: Any) -> tuple:
        return _rebuild, (type(self), self.data, (), self.__dict__)


def _rebuild(cls: type, data: Tensor, arguments: tuple, attributes: dict[str, Any]) -> Tensor:
    """Make the parameter or buffer anew that was pickled."""
    tensor = cls(data, *arguments)
    tensor.__dict__.update(attributes)
    return tensor
