"""The types of arguments in schemas, as TorchScript has them."""

from typing import Any

import cygrad

_SINGLE = {
    "Tensor": "TensorType",
    "Scalar": "NumberType",
    "int": "IntType",
    "SymInt": "IntType",
    "float": "FloatType",
    "bool": "BoolType",
    "str": "StringType",
    "complex": "ComplexType",
    "Any": "AnyType",
    "SymBool": "BoolType",
}
_NUMBERED = dict.fromkeys(("ScalarType", "Layout", "MemoryFormat"), "IntType")


class _Named(cygrad.Type):
    """A type that the public classes do not have, by its name."""

    def __init__(self, text: str) -> None:
        self._text = text


def type_of(kind: str, numbered: bool = False) -> Any:
    """Return the TorchScript type that a schema's text names; with `numbered`, as it is inside PyTorch."""
    if kind.endswith("?"):
        return cygrad.OptionalType(type_of(kind[:-1], numbered))
    if kind.endswith("]"):
        return cygrad.ListType(type_of(kind[: kind.rindex("[")], numbered))
    name = _SINGLE.get(kind) or (_NUMBERED.get(kind) if numbered else None)
    return getattr(cygrad, name).get() if name else _Named(kind)
