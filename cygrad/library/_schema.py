"""Schemas of custom ops, made from a function's annotations."""

import collections.abc
import inspect
import typing
from collections.abc import Callable, Iterable
from types import UnionType
from typing import Any, Union

import cygrad

Number = int | float | bool
_BASES: dict[Any, str] = {
    cygrad.Tensor: "Tensor",
    int: "SymInt",
    float: "float",
    bool: "bool",
    str: "str",
    Number: "Scalar",
    Union[int, float, bool]: "Scalar",  # noqa: UP007 - another object than the above
    cygrad.dtype: "ScalarType",
    cygrad.device: "Device",
}
_IN_LISTS = ("Tensor", "Tensor?", "SymInt", "float", "bool", "Scalar")
_RETURNS = ("Tensor", "Tensor[]", "SymInt", "float", "bool", "Scalar")
_SEQUENCES = (list, collections.abc.Sequence)
_REQUIRED: Any = inspect.Parameter.empty

# -- from annotations --


def _kind_of(annotation: Any) -> str | None:
    """Return PyTorch's name of a type, or None if ops do not take it."""
    if annotation in _BASES:
        return _BASES[annotation]
    origin, inner = typing.get_origin(annotation), typing.get_args(annotation)
    if origin in (Union, UnionType) and type(None) in inner:
        rest = [one for one in inner if one is not type(None)]
        kind = _kind_of(rest[0] if len(rest) == 1 else Union[tuple(rest)])  # noqa: UP007 - of any number
        return None if kind is None or kind.endswith("?") else f"{kind}?"
    if origin in _SEQUENCES and inner:
        kind = _kind_of(inner[0])
        return f"{kind}[]" if kind in _IN_LISTS else None
    return None


def infer_schema(
    prototype_function: Callable[..., Any],
    /,
    *,
    mutates_args: str | Iterable[str],
    op_name: str | None = None,
    tags: Any = (),
) -> str:
    """Return the schema of a function that takes and returns tensors and numbers, from its annotations.

    `mutates_args` are the names of the tensors that it writes into; "unknown" stands for all. Raises ValueError for
    functions without annotations, and for types that ops do not take.

    >>> from cygrad import Tensor
    >>> from cygrad.library import infer_schema
    >>> def scaled(x: Tensor, factor: float = 2.0) -> Tensor:
    ...     return x * factor
    >>> infer_schema(scaled, mutates_args=())
    '(Tensor x, float factor=2.0) -> Tensor'
    """
    function = prototype_function
    signature = inspect.signature(function)

    def wrong(what: str) -> ValueError:
        return ValueError(f"infer_schema(func): {what} Got func with signature {signature})")

    try:
        hints = typing.get_type_hints(function)
    except (NameError, TypeError):
        hints = dict(getattr(function, "__annotations__", {}))
    names = list(signature.parameters)
    unknown = mutates_args == "unknown"
    mutated = set() if unknown else {mutates_args} if isinstance(mutates_args, str) else set(mutates_args)
    texts: list[str] = []
    writes = 0
    for name, parameter in signature.parameters.items():
        if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
            raise wrong("We do not support positional-only args, varargs, or varkwargs.")
        if parameter.kind is parameter.KEYWORD_ONLY and "*" not in texts:
            texts.append("*")
        if name not in hints:
            raise wrong(f"Parameter {name} must have a type annotation.")
        kind = _kind_of(hints[name])
        if kind is None:
            known = [annotation for annotation in _BASES if annotation is not Union]
            raise wrong(
                f"Parameter {name} has unsupported type {hints[name]}. The valid types are: {known}, optional "
                "ones, and lists of them."
            )
        if name in mutated or (unknown and kind.startswith("Tensor")):
            if not kind.startswith("Tensor"):
                raise wrong(
                    f"Parameter {name} is in mutable_args but only Tensors or collections of Tensors can be mutated"
                )
            kind = f"Tensor(a{writes}!){kind.removeprefix('Tensor')}"
            writes += 1
        texts.append(f"{kind} {name}{_default_text(parameter.default, name, wrong)}")
    missing = mutated - set(names)
    if missing:
        raise wrong(
            f"{missing} in mutates_args were not found in the custom op's signature. mutates_args should contain the "
            "names of all args that the custom op mutates, or just the string 'unknown' if you don't know."
        )
    return f"{op_name or ''}({', '.join(texts)}) -> {_returned(hints, wrong)}"


def _default_text(default: Any, name: str, wrong: Callable[[str], ValueError]) -> str:
    if default is _REQUIRED:
        return ""
    if default is None or isinstance(default, (int, float, bool)):
        return f"={default}"
    if isinstance(default, str):
        return f'="{default}"'
    if isinstance(default, (cygrad.dtype, cygrad.device)):
        return f"={str(default).removeprefix('torch.')}" if isinstance(default, cygrad.dtype) else f'="{default}"'
    raise wrong(
        f"Parameter {name} has an unsupported default value type {type(default)}. Please file an issue on "
        "GitHub so we can prioritize this."
    )


def _returned(hints: dict[str, Any], wrong: Callable[[str], ValueError]) -> str:
    if "return" not in hints:
        raise wrong("No return type annotation was provided. Please add one.")
    annotation = hints["return"]
    if annotation in (None, type(None)):
        return "()"
    several = typing.get_args(annotation) if typing.get_origin(annotation) is tuple else None
    kinds = [_kind_of(one) for one in ((annotation,) if several is None else several)]
    if any(kind not in _RETURNS for kind in kinds):
        raise wrong(f"Return has unsupported type {annotation}. The valid types are: {list(_RETURNS)}.")
    texts = [str(kind) for kind in kinds]
    return texts[0] if several is None else f"({', '.join(texts)})"
