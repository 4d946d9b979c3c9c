"""What programs read of an op's schema: the names, kinds and defaults of its arguments, taken from its signature."""

import inspect
from collections.abc import Callable
from typing import Any

from cygrad._core.diagnostics.refused_calls import KINDS
from cygrad._core.registry.signatures import signatures

_NOT_GIVEN = inspect.Parameter.empty


class Argument:
    """An argument of an op."""

    def __init__(self, parameter: inspect.Parameter, kind: str, name: str) -> None:
        self.name, self.type = name, kind
        self.kwarg_only = parameter.kind is parameter.KEYWORD_ONLY
        self.default_value = None if parameter.default is _NOT_GIVEN else parameter.default
        self._has_default = parameter.default is not _NOT_GIVEN

    def has_default_value(self) -> bool:
        """Whether a call may leave it out."""
        return self._has_default

    def __str__(self) -> str:
        return f"{self.type} {self.name}" + (f"={self.default_value}" if self._has_default else "")

    __repr__ = __str__


class FunctionSchema:
    """The schema of an op: `name`, `overload_name` and `arguments`, the first of which is `self`."""

    def __init__(self, function: Callable[..., Any], name: str, overload: str) -> None:
        self.name, self.overload_name = name, "" if overload == "default" else overload
        self.is_mutable = name.endswith("_") and not name.endswith("__")
        kinds = _kinds(function)
        self.arguments = [
            Argument(parameter, kinds.get(own, "Tensor" if place == 0 else "Any"), _name(own, place))
            for place, (own, parameter) in enumerate(inspect.signature(function).parameters.items())
            if parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
        ]

    def __str__(self) -> str:
        texts = []
        for argument in self.arguments:
            if argument.kwarg_only and "*" not in texts:
                texts.append("*")
            texts.append(str(argument))
        name = f"{self.name}.{self.overload_name}".rstrip(".")
        return f"{name}({', '.join(texts)}) -> Tensor"

    __repr__ = __str__


def _name(own: str, place: int) -> str:
    return "self" if place == 0 and own == "input" else own


def _kinds(function: Callable[..., Any]) -> dict[str, str]:
    """Return the kinds of a function's arguments by name, as PyTorch's errors write them."""
    found: dict[Any, Any] = {}
    for text in signatures(function, KINDS):
        for part in text.split(", "):
            kind, _, name = part.partition(" = ")[0].rpartition(" ")
            found.setdefault(name, kind)
    return found
