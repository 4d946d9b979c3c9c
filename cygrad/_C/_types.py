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
    """A type of TorchScript.

    It is the base of the others, and cannot be made. Raises TypeError.

    >>> import cygrad
    >>> isinstance(cygrad.IntType.get(), cygrad.Type)
    True
    """

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
        """The type as text.

        >>> import cygrad
        >>> cygrad.ListType.ofInts().str()
        'List[int]'
        """
        return self.__str__()

    def kind(self) -> builtins.str:
        """The name of the class.

        >>> import cygrad
        >>> cygrad.ListType.ofInts().kind()
        'ListType'
        """
        return type(self).__name__

    def containedTypes(self) -> list[Type]:
        """The parts of the type.

        >>> import cygrad
        >>> cygrad.IntType.get().containedTypes()
        []
        """
        return []

    def is_interface_type(self) -> bool:
        """Whether the type is an interface that a program has defined: never.

        >>> import cygrad
        >>> cygrad.IntType.get().is_interface_type()
        False
        """
        return False

    def isSubtypeOf(self, other: Type) -> bool:
        """Whether each value of this type is one of the other type.

        >>> import cygrad
        >>> cygrad.IntType.get().isSubtypeOf(cygrad.FloatType.get())
        False
        """
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
    """Any value.

    >>> import cygrad
    >>> cygrad.IntType.get().isSubtypeOf(cygrad.AnyType.get())
    True
    """

    _text = "Any"


class BoolType(_Single):
    """`bool`.

    >>> import cygrad
    >>> cygrad.BoolType.get()
    bool
    """

    _text = "bool"


class ComplexType(_Single):
    """`complex`.

    >>> import cygrad
    >>> cygrad.ComplexType.get()
    complex
    """

    _text = "complex"


class FloatType(_Single):
    """`float`.

    >>> import cygrad
    >>> cygrad.FloatType.get()
    float
    """

    _text = "float"


class IntType(_Single):
    """`int`.

    >>> import cygrad
    >>> cygrad.IntType.get()
    int
    """

    _text = "int"


class NoneType(_Single):
    """The type of None.

    >>> import cygrad
    >>> cygrad.NoneType.get()
    NoneType
    """

    _text = "NoneType"


class NumberType(_Single):
    """A number of any kind.

    >>> import cygrad
    >>> cygrad.IntType.get().isSubtypeOf(cygrad.NumberType.get())
    True
    """

    _text = "number"


class PyObjectType(_Single):
    """Any object of Python.

    >>> import cygrad
    >>> cygrad.PyObjectType.get()
    PyObject
    """

    _text = "PyObject"


class StreamObjType(_Single):
    """A stream.

    >>> import cygrad
    >>> cygrad.StreamObjType.get()
    Stream
    """

    _text = "Stream"


class StringType(_Single):
    """`str`.

    >>> import cygrad
    >>> cygrad.StringType.get()
    str
    """

    _text = "str"


class SymBoolType(_Single):
    """A bool that depends on sizes.

    >>> import cygrad
    >>> cygrad.SymBoolType.get()
    bool
    """

    _text = "bool"


class SymIntType(_Single):
    """An int that depends on sizes.

    >>> import cygrad
    >>> cygrad.SymIntType.get()
    int
    """

    _text = "int"


class TensorType(_Single):
    """A tensor.

    >>> import cygrad
    >>> cygrad.TensorType.get()
    Tensor
    """

    _text = "Tensor"

    @classmethod
    def getInferred(cls) -> TensorType:
        """The type of a value of which nothing is said.

        >>> import cygrad
        >>> cygrad.TensorType.getInferred()
        Tensor
        """
        return cls.get()


class AwaitType(_Holder):
    """A value to be computed when it is asked for.

    >>> import cygrad
    >>> cygrad.AwaitType(cygrad.IntType.get())
    Await[int]
    """

    _text = "Await"


class FutureType(_Holder):
    """A value to come.

    >>> import cygrad
    >>> cygrad.FutureType(cygrad.IntType.get())
    Future[int]
    """

    _text = "Future"


class ListType(_Holder):
    """A list of values of one type.

    >>> import cygrad
    >>> cygrad.ListType(cygrad.IntType.get()).getElementType()
    int
    """

    _text = "List"

    @staticmethod
    def ofInts() -> ListType:
        """The type of lists of ints.

        >>> import cygrad
        >>> cygrad.ListType.ofInts() == cygrad.ListType(cygrad.IntType.get())
        True
        """
        return ListType(IntType.get())

    @staticmethod
    def ofFloats() -> ListType:
        """The type of lists of floats.

        >>> import cygrad
        >>> cygrad.ListType.ofFloats()
        List[float]
        """
        return ListType(FloatType.get())

    @staticmethod
    def ofComplexDoubles() -> ListType:
        """The type of lists of complex numbers.

        >>> import cygrad
        >>> cygrad.ListType.ofComplexDoubles()
        List[complex]
        """
        return ListType(ComplexType.get())

    @staticmethod
    def ofBools() -> ListType:
        """The type of lists of bools.

        >>> import cygrad
        >>> cygrad.ListType.ofBools()
        List[bool]
        """
        return ListType(BoolType.get())

    @staticmethod
    def ofStrings() -> ListType:
        """The type of lists of strings.

        >>> import cygrad
        >>> cygrad.ListType.ofStrings()
        List[str]
        """
        return ListType(StringType.get())

    @staticmethod
    def ofTensors() -> ListType:
        """The type of lists of tensors.

        >>> import cygrad
        >>> cygrad.ListType.ofTensors()
        List[Tensor]
        """
        return ListType(TensorType.get())


class OptionalType(_Holder):
    """A value or None.

    >>> import cygrad
    >>> cygrad.NoneType.get().isSubtypeOf(cygrad.OptionalType(cygrad.IntType.get()))
    True
    """

    _text = "Optional"

    @staticmethod
    def ofTensor() -> OptionalType:
        """A tensor or None.

        >>> import cygrad
        >>> cygrad.OptionalType.ofTensor()
        Optional[Tensor]
        """
        return OptionalType(TensorType.get())


class RRefType(_Holder):
    """A reference to a value of another process.

    >>> import cygrad
    >>> cygrad.RRefType(cygrad.IntType.get())
    RRef[int]
    """

    _text = "RRef"


class DictType(Type):
    """A dictionary of keys of one type and values of one type.

    >>> import cygrad
    >>> cygrad.DictType(cygrad.StringType.get(), cygrad.IntType.get())
    Dict[str, int]
    """

    def __init__(self, key: Type, value: Type) -> None:
        self._key, self._value = key, value

    def __str__(self) -> str:
        return f"Dict[{self._key}, {self._value}]"

    __repr__ = __str__

    def getKeyType(self) -> Type:
        """The type of keys.

        >>> import cygrad
        >>> cygrad.DictType(cygrad.StringType.get(), cygrad.IntType.get()).getKeyType()
        str
        """
        return self._key

    def getValueType(self) -> Type:
        """The type of values.

        >>> import cygrad
        >>> cygrad.DictType(cygrad.StringType.get(), cygrad.IntType.get()).getValueType()
        int
        """
        return self._value

    def containedTypes(self) -> list[Type]:
        """Both.

        >>> import cygrad
        >>> cygrad.DictType(cygrad.StringType.get(), cygrad.IntType.get()).containedTypes()
        [str, int]
        """
        return [self._key, self._value]


class TupleType(Type):
    """A tuple of values of given types.

    >>> import cygrad
    >>> cygrad.TupleType([cygrad.IntType.get(), cygrad.StringType.get()])
    Tuple[int, str]
    """

    def __init__(self, elements: Sequence[Type]) -> None:
        self._elements = list(elements)

    def __str__(self) -> str:
        return f"Tuple[{', '.join(map(str, self._elements)) or '()'}]"

    __repr__ = __str__

    def elements(self) -> list[Type]:
        """The types of the values.

        >>> import cygrad
        >>> cygrad.TupleType([cygrad.IntType.get(), cygrad.StringType.get()]).containedTypes()
        [int, str]
        """
        return list(self._elements)

    containedTypes = elements


class UnionType(Type):
    """A value of one of several types.

    >>> import cygrad
    >>> cygrad.UnionType([cygrad.IntType.get(), cygrad.StringType.get()])
    Union[int, str]
    """

    def __init__(self, types: Sequence[Type]) -> None:
        self._types = list(types)

    def __str__(self) -> str:
        return f"Union[{', '.join(map(str, self._types))}]"

    __repr__ = __str__

    def containedTypes(self) -> list[Type]:
        """The types.

        >>> import cygrad
        >>> cygrad.UnionType([cygrad.IntType.get(), cygrad.StringType.get()]).containedTypes()
        [int, str]
        """
        return list(self._types)


class InferredType:
    """A type that was found, or the reason why none was.

    >>> import cygrad
    >>> from cygrad._C import InferredType
    >>> InferredType(cygrad.IntType.get()).type()
    int
    """

    def __init__(self, found: Type | str) -> None:
        self._found = found

    def success(self) -> bool:
        """Whether there is a type.

        >>> import cygrad
        >>> from cygrad._C import InferredType
        >>> InferredType(cygrad.IntType.get()).success(), InferredType("no annotation").success()
        (True, False)
        """
        return isinstance(self._found, Type)

    def type(self) -> Any:
        """The type. Raises RuntimeError if there is none.

        >>> import cygrad
        >>> from cygrad._C import InferredType
        >>> InferredType(cygrad.IntType.get()).type()
        int
        """
        if not self.success():
            raise RuntimeError(f"Tried to get the type from an InferredType that has none: {self._found}")
        return self._found

    def reason(self) -> Any:
        """Why there is no type. Raises RuntimeError if there is one.

        >>> import cygrad
        >>> from cygrad._C import InferredType
        >>> InferredType("no annotation").reason()
        'no annotation'
        """
        if self.success():
            raise RuntimeError("Tried to get the reason of an InferredType that has a type")
        return self._found
