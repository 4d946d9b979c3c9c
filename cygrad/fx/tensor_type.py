"""Types of tensors that tell their shape, for annotations: `TensorType((2, Dyn))`."""

from collections.abc import Callable, Sequence
from typing import Any

__all__ = ["Dyn", "TensorType", "is_consistent", "is_more_precise"]


class TensorType:
    """The type of the tensors of a shape, whose sizes are numbers, or `Dyn` for any.

    >>> from cygrad.fx.tensor_type import Dyn, TensorType
    >>> TensorType((2, Dyn)), TensorType[2, Dyn] == TensorType((2, Dyn)), TensorType((3,)).dims
    (TensorType[(2, Dyn)], True, (3,))
    """

    def __init__(self, dim: Sequence[Any]) -> None:
        self.__origin__ = TensorType
        self.__args__ = dim

    @property
    def dims(self) -> Sequence[Any]:
        """The sizes."""
        return self.__args__

    def __repr__(self) -> str:
        return f"TensorType[{self.dims}]"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TensorType) and list(self.dims) == list(other.dims)

    __hash__ = None  # type: ignore[assignment]  # since the sizes may be a list

    @classmethod
    def __class_getitem__(cls, dims: Any) -> "TensorType":
        return cls(dims if isinstance(dims, tuple) else (dims,))


class _DynType:
    """The type of what nothing is known about."""

    __name__ = "_DynType"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _DynType)

    def __hash__(self) -> int:
        return hash(_DynType)

    def __repr__(self) -> str:
        return "Dyn"


Dyn = _DynType()


def is_consistent(t1: object, t2: object) -> bool:
    """Whether one value may have both types.

    >>> from cygrad.fx.tensor_type import Dyn, TensorType, is_consistent
    >>> is_consistent(TensorType((2, Dyn)), TensorType((Dyn, 3))), is_consistent(TensorType((2,)), TensorType((3,)))
    (True, False)
    """
    return t1 == t2 or Dyn in (t1, t2) or _holds_of_sizes(is_consistent, t1, t2)


def is_more_precise(t1: object, t2: object) -> bool:
    """Whether all values of type `t1` have type `t2`, too.

    >>> from cygrad.fx.tensor_type import Dyn, TensorType, is_more_precise
    >>> two = TensorType((2, 3))
    >>> is_more_precise(two, TensorType((2, Dyn))), is_more_precise(TensorType((2, Dyn)), two)
    (True, False)
    """
    return t1 == t2 or t2 == Dyn or _holds_of_sizes(is_more_precise, t1, t2)


def _holds_of_sizes(relation: Callable[[object, object], bool], t1: object, t2: object) -> bool:
    if not isinstance(t1, TensorType) or not isinstance(t2, TensorType) or len(t1.dims) != len(t2.dims):
        return False
    return all(map(relation, t1.dims, t2.dims))
