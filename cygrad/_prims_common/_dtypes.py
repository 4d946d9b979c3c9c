"""Kinds of dtypes, the dtypes of results, and Python's types for them."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Any

import cygrad
from cygrad import Tensor, dtype

__all__ = [
    "ELEMENTWISE_TYPE_PROMOTION_KIND",
    "can_safe_cast_to",
    "corresponding_complex_dtype",
    "corresponding_real_dtype",
    "dtype_or_default",
    "dtype_to_type",
    "dtype_to_type_ctor",
    "elementwise_dtypes",
    "get_computation_dtype",
    "get_dtype",
    "get_higher_dtype",
    "get_higher_type",
    "is_boolean_dtype",
    "is_complex_dtype",
    "is_float_dtype",
    "is_grad_dtype",
    "is_integer_dtype",
    "is_low_precision_dtype",
    "is_weakly_lesser_type",
    "number_type",
    "type_to_dtype",
]


class ELEMENTWISE_TYPE_PROMOTION_KIND(Enum):
    """How the dtype of an elementwise result follows from those of the operands."""

    DEFAULT = (0,)
    NO_OPMATH = (1,)
    INT_TO_FLOAT = (2,)
    ALWAYS_BOOL = (3,)
    COMPLEX_TO_FLOAT = (4,)
    BOOL_TO_LONG = (5,)


_ORDERED: tuple[type, ...] = (bool, int, float, complex)
_INTEGERS = frozenset(("uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64"))
_REAL_OF = {"complex32": "float16", "complex64": "float32", "complex128": "float64"}
_COMPLEX_OF = {"float16": "complex32", "bfloat16": "complex64", "float32": "complex64", "float64": "complex128"}
_COMPUTED_IN = {"bfloat16": "float32", "float16": "float32", "complex32": "complex64"}


def _name(kind: dtype) -> str:
    return str(kind).removeprefix("torch.")


def _found(names: dict[str, str], kind: dtype) -> str:
    if _name(kind) not in names:
        raise KeyError(kind)
    return names[_name(kind)]


def is_boolean_dtype(dtype: dtype) -> bool:
    """Whether this is bool."""
    return dtype is cygrad.bool


def is_integer_dtype(dtype: dtype) -> bool:
    """Whether this is a type of integers; bool is not."""
    return _name(dtype) in _INTEGERS


def is_float_dtype(dtype: dtype) -> bool:
    """Whether this is a type of real floating-point numbers."""
    return dtype.is_floating_point


def is_complex_dtype(dtype: dtype) -> bool:
    """Whether this is a type of complex numbers."""
    return dtype.is_complex


def is_low_precision_dtype(dtype: dtype) -> bool:
    """Whether numbers of this type are computed with in a wider one."""
    return _name(dtype) in _COMPUTED_IN


def is_grad_dtype(dtype: dtype) -> bool:
    """Whether tensors of this type can require grad."""
    return dtype.is_floating_point or dtype.is_complex


def corresponding_real_dtype(dtype: dtype) -> dtype:
    """Return the type of the parts of complex numbers."""
    return getattr(cygrad, _found(_REAL_OF, dtype))


def corresponding_complex_dtype(dtype: dtype) -> dtype:
    """Return the type of complex numbers whose parts have this type."""
    return getattr(cygrad, _found(_COMPLEX_OF, dtype))


def get_computation_dtype(dtype: dtype) -> dtype:
    """Return the type in which numbers of this type are computed with: float32 for half precision."""
    return getattr(cygrad, _COMPUTED_IN.get(_name(dtype), _name(dtype)))


def dtype_to_type(dtype: dtype) -> type:
    """Return Python's type for numbers of a dtype.

    >>> import cygrad
    >>> from cygrad._prims_common import dtype_to_type
    >>> dtype_to_type(cygrad.float16)
    <class 'float'>
    """
    if is_boolean_dtype(dtype):
        return bool
    if is_integer_dtype(dtype):
        return int
    return complex if dtype.is_complex else float


def dtype_to_type_ctor(dtype: dtype) -> Callable[[Any], Any]:
    """Return what makes Python's numbers of a dtype."""
    return dtype_to_type(dtype)


def type_to_dtype(typ: type) -> dtype:
    """Return the dtype of tensors of Python numbers. Raises ValueError for other types."""
    if not issubclass(typ, _ORDERED):
        raise ValueError(f"Invalid type {typ}!")
    if issubclass(typ, bool):
        return cygrad.bool
    if issubclass(typ, int):
        return cygrad.int64
    default = cygrad.get_default_dtype()
    return default if issubclass(typ, float) else corresponding_complex_dtype(default)


def number_type(x: Any) -> type:
    """Return the type of a number."""
    return type(x)


def get_dtype(x: Any) -> dtype:
    """Return the dtype of a tensor, or of a tensor of this number."""
    return x.dtype if isinstance(x, Tensor) else type_to_dtype(type(x))


def get_higher_type(a: type, b: type) -> type:
    """Return the higher of two of bool, int, float and complex."""
    return max(a, b, key=_ORDERED.index)


def is_weakly_lesser_type(a: type, b: type) -> bool:
    """Whether `a` is `b`, or comes before it among bool, int, float and complex."""
    return _ORDERED.index(a) <= _ORDERED.index(b)


def get_higher_dtype(a: Any, b: Any) -> dtype | None:
    """Return the higher of two dtypes; None stands for none. Tensors and numbers stand for theirs.

    Among real or complex numbers it is what they are promoted to; of a real and a complex one it is the complex one.
    """
    kinds = [each if isinstance(each, dtype) else get_dtype(each) for each in (a, b) if each is not None]
    if not kinds:
        return None
    if kinds[0].is_complex is not kinds[-1].is_complex:
        return kinds[0] if kinds[0].is_complex else kinds[-1]
    return cygrad.promote_types(kinds[0], kinds[-1])


def can_safe_cast_to(*, cast_to: dtype, cast_from: dtype) -> bool:
    """Whether values of a type can be written to another without losing their kind."""
    for is_of_kind in (is_complex_dtype, is_float_dtype, is_integer_dtype, is_boolean_dtype):
        if is_of_kind(cast_to):
            return True
        if is_of_kind(cast_from):
            return False
    raise ValueError(f"Received unknown dtypes {cast_to}, {cast_from}!")


def dtype_or_default(dtype: dtype | None) -> dtype:
    """Return the dtype, or the default one for None."""
    return cygrad.get_default_dtype() if dtype is None else dtype


def elementwise_dtypes(*_args: Any, type_promotion_kind: ELEMENTWISE_TYPE_PROMOTION_KIND) -> tuple[dtype, dtype]:
    """Return the dtype to compute in and the dtype of the result of an elementwise op on tensors and numbers.

    >>> import cygrad
    >>> from cygrad._prims_common import ELEMENTWISE_TYPE_PROMOTION_KIND, elementwise_dtypes
    >>> elementwise_dtypes(cygrad.ones(2).half(), 3, type_promotion_kind=ELEMENTWISE_TYPE_PROMOTION_KIND.DEFAULT)
    (torch.float32, torch.float16)
    """
    found, kind = _promoted([each for each in _args if each is not None]), type_promotion_kind
    kinds = ELEMENTWISE_TYPE_PROMOTION_KIND
    if kind is kinds.NO_OPMATH:
        return found, found
    if kind is kinds.INT_TO_FLOAT and not is_grad_dtype(found):
        found = cygrad.get_default_dtype()
    if kind is kinds.BOOL_TO_LONG and is_boolean_dtype(found):
        return cygrad.int64, cygrad.int64
    computed = get_computation_dtype(found)
    if kind is kinds.COMPLEX_TO_FLOAT and found.is_complex:
        return computed, corresponding_real_dtype(found)
    return computed, cygrad.bool if kind is kinds.ALWAYS_BOOL else found


def _promoted(given: list[Any]) -> dtype:
    """Return the dtype of several operands: numbers and 0-dim tensors count only for a higher kind than the others'."""
    groups = [
        [each for each in given if isinstance(each, Tensor) and each.ndim > 0],
        [each for each in given if isinstance(each, Tensor) and each.ndim == 0],
        [each for each in given if not isinstance(each, Tensor)],
    ]
    found: Any = None
    for group in groups:
        if not group:
            continue
        kind = get_dtype(group[0])
        for each in group[1:]:
            kind = cygrad.promote_types(kind, get_dtype(each))
        if found is None:
            found = kind
        elif not is_weakly_lesser_type(dtype_to_type(kind), dtype_to_type(found)):
            found = corresponding_complex_dtype(found) if kind.is_complex and found.is_floating_point else kind
    return found
