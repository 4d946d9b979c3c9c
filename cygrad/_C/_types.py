"""The classes of TorchScript's types, which libraries name in annotations and in questions.

Types compare by what they say: `ListType(IntType.get()) == ListType.ofInts()`. A type without parts has one object,
which `get()` returns; others are made from their parts.
"""

from __future__ import annotations

import builtins
from collections.abc import Sequence
from typing import Any

__all__ = [
    "AnyType", "AwaitType", "BoolType", "ComplexType", "DictType", "FloatType", "FutureType", "InferredType", "IntType",
    "ListType", "NoneType", "NumberType", "OptionalType", "PyObjectType", "RRefType", "StreamObjType", "StringType",
    "SymBoolType", "SymIntType", "TensorType", "TupleType", "Type", "UnionType",
]  # fmt: skip


class Type:
    """A type of TorchScript."""

    _text = ""
    __hash__ = None  # type: ignore[assignment]  # as in PyTorch

    def __init__(self, *args: Any) -> None:
        raise TypeError(f"torch._C.{type(self).__name__}: No constructor defined!")

    def __str__(self) -> builtins.str:
        return self._text

    __repr__ = __str__

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and str(self) == str(other)

    @property
    def annotation_str(self) -> builtins.str:
        """The type as it stands in annotations."""
        return str(self)

    def str(self) -> builtins.str:
        """The type as text."""
        return self.__str__()

    def kind(self) -> builtins.str:
        """The name of the class."""
        return type(self).__name__

    def containedTypes(self) -> list[Type]:
        """The parts of the type."""
        return []

    def is_interface_type(self) -> bool:
        """Whether the type is an interface that a program has defined: never."""
        return False

    def isSubtypeOf(self, other: Type) -> bool:
        """Whether each value of this type is one of the other type."""
        if isinstance(other, AnyType) or self == other:
            return True
        if isinstance(other, (OptionalType, UnionType)):
            parts = [*other.containedTypes(), *([NoneType.get()] if isinstance(other, OptionalType) else [])]
            own = [*self.containedTypes(), NoneType.get()] if isinstance(self, OptionalType) else [self]
            own = self.containedTypes() if isinstance(self, UnionType) else own
            return all(any(each.isSubtypeOf(part) for part in parts) for each in own)
        if isinstance(self, TupleType) and isinstance(other, TupleType):
            pairs = list(zip(self.elements(), other.elements(), strict=False))
            return len(self.elements()) == len(other.elements()) and all(a.isSubtypeOf(b) for a, b in pairs)
        return isinstance(other, NumberType) and isinstance(self, (IntType, FloatType, ComplexType))


class _Single(Type):
    """A type without parts."""

    _only: Any = None

    @classmethod
    def get(cls) -> Any:
        """The type."""
        if "_only" not in cls.__dict__:
            cls._only = cls.__new__(cls)
        return cls._only


class _Holder(Type):
    """A type with one part."""

    def __init__(self, a: Type) -> None:
        if not isinstance(a, Type):
            raise TypeError(
                "__init__(): incompatible constructor arguments. The following argument types are supported:\n"
                f"    1. torch._C.{type(self).__name__}(arg0: torch._C.Type)"
            )
        self._part = a

    def __str__(self) -> str:
        return f"{self._text}[{self._part}]"

    __repr__ = __str__

    def getElementType(self) -> Type:
        """The part."""
        return self._part

    def containedTypes(self) -> list[Type]:
        """The part, in a list."""
        return [self._part]


class AnyType(_Single):
    """Any value."""

    _text = "Any"


class BoolType(_Single):
    """`bool`."""

    _text = "bool"


class ComplexType(_Single):
    """`complex`."""

    _text = "complex"


class FloatType(_Single):
    """`float`."""

    _text = "float"


class IntType(_Single):
    """`int`."""

    _text = "int"


class NoneType(_Single):
    """The type of None."""

    _text = "NoneType"


class NumberType(_Single):
    """A number of any kind."""

    _text = "number"


class PyObjectType(_Single):
    """Any object of Python."""

    _text = "PyObject"


class StreamObjType(_Single):
    """A stream."""

    _text = "Stream"


class StringType(_Single):
    """`str`."""

    _text = "str"


class SymBoolType(_Single):
    """A bool that depends on sizes."""

    _text = "bool"


class SymIntType(_Single):
    """An int that depends on sizes."""

    _text = "int"


class TensorType(_Single):
    """A tensor."""

    _text = "Tensor"

    @classmethod
    def getInferred(cls) -> TensorType:
        """The type of a value of which nothing is said."""
        return cls.get()


class AwaitType(_Holder):
    """A value to be computed when it is asked for."""

    _text = "Await"


class FutureType(_Holder):
    """A value to come."""

    _text = "Future"


class ListType(_Holder):
    """A list of values of one type."""

    _text = "List"

    @staticmethod
    def ofInts() -> ListType:
        """The type of lists of ints."""
        return ListType(IntType.get())

    @staticmethod
    def ofFloats() -> ListType:
        """The type of lists of floats."""
        return ListType(FloatType.get())

    @staticmethod
    def ofComplexDoubles() -> ListType:
        """The type of lists of complex numbers."""
        return ListType(ComplexType.get())

    @staticmethod
    def ofBools() -> ListType:
        """The type of lists of bools."""
        return ListType(BoolType.get())

    @staticmethod
    def ofStrings() -> ListType:
        """The type of lists of strings."""
        return ListType(StringType.get())

    @staticmethod
    def ofTensors() -> ListType:
        """The type of lists of tensors."""
        return ListType(TensorType.get())


class OptionalType(_Holder):
    """A value or None."""

    _text = "Optional"

    @staticmethod
    def ofTensor() -> OptionalType:
        """A tensor or None."""
        return OptionalType(TensorType.get())


class RRefType(_Holder):
    """A reference to a value of another process."""

    _text = "RRef"


class DictType(Type):
    """A dictionary of keys of one type and values of one type."""

    def __init__(self, key: Type, value: Type) -> None:
        self._key, self._value = key, value

    def __str__(self) -> str:
        return f"Dict[{self._key}, {self._value}]"

    __repr__ = __str__

    def getKeyType(self) -> Type:
        """The type of keys."""
        return self._key

    def getValueType(self) -> Type:
        """The type of values."""
        return self._value

    def containedTypes(self) -> list[Type]:
        """Both."""
        return [self._key, self._value]


class TupleType(Type):
    """A tuple of values of given types."""

    def __init__(self, elements: Sequence[Type]) -> None:
        self._elements = list(elements)

    def __str__(self) -> str:
        return f"Tuple[{', '.join(map(str, self._elements)) or '()'}]"

    __repr__ = __str__

    def elements(self) -> list[Type]:
        """The types of the values."""
        return list(self._elements)

    containedTypes = elements


class UnionType(Type):
    """A value of one of several types."""

    def __init__(self, types: Sequence[Type]) -> None:
        self._types = list(types)

    def __str__(self) -> str:
        return f"Union[{', '.join(map(str, self._types))}]"

    __repr__ = __str__

    def containedTypes(self) -> list[Type]:
        """The types."""
        return list(self._types)


class InferredType:
    """A type that was found, or the reason why none was."""

    def __init__(self, found: Type | str) -> None:
        self._found = found

    def success(self) -> bool:
        """Whether there is a type."""
        return isinstance(self._found, Type)

    def type(self) -> Any:
        """The type. Raises RuntimeError if there is none."""
        if not self.success():
            raise RuntimeError(f"Tried to get the type from an InferredType that has none: {self._found}")
        return self._found

    def reason(self) -> Any:
        """Why there is no type. Raises RuntimeError if there is one."""
        if self.success():
            raise RuntimeError("Tried to get the reason of an InferredType that has a type")
        return self._found
