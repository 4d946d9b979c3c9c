"""Schemas of custom ops: read from text as PyTorch writes it, or made from a function's annotations."""

import collections.abc
import inspect
import re
import typing
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
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
_CHECKS: dict[str, Any] = {
    "Tensor": cygrad.Tensor,
    "int": int,
    "float": (int, float),
    "bool": bool,
    "str": str,
    "Scalar": (int, float, bool, complex),
    "ScalarType": cygrad.dtype,
    "Device": (cygrad.device, str),
    "Layout": cygrad.layout,
    "MemoryFormat": cygrad.memory_format,
}
_REQUIRED: Any = inspect.Parameter.empty


@dataclass
class Argument:
    """An argument of an op: `type` is PyTorch's name of its type; `default_value` is None if it has none."""

    name: str
    type: str
    default_value: Any = None
    kwarg_only: bool = False
    is_write: bool = False
    _default: Any = field(default=_REQUIRED, repr=False)

    def has_default_value(self) -> bool:
        """Whether a call may leave it out."""
        return self._default is not _REQUIRED

    def accepts(self, value: Any) -> bool:
        """Whether a value is of the argument's type."""
        return _accepts(self.type, value)


@dataclass
class Schema:
    """The schema of an op."""

    name: str
    overload_name: str
    arguments: list[Argument]
    returns: list[str]
    text: str  # from the parenthesis on

    @property
    def is_mutable(self) -> bool:
        """Whether the op writes into an argument."""
        return any(argument.is_write for argument in self.arguments)

    def __str__(self) -> str:
        return f"{self.name}{f'.{self.overload_name}' if self.overload_name else ''}{self.text}"

    def bind(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
        """Return {argument: value} for a call, with defaults filled in. Raises RuntimeError for a wrong call."""
        positional = [argument for argument in self.arguments if not argument.kwarg_only]
        if len(args) > len(positional):
            raise RuntimeError(
                f"{self.name}() expected at most {len(positional)} argument(s) but received {len(args)} argument(s). "
                f"Declaration: {self}"
            )
        given = dict(zip((argument.name for argument in positional), args, strict=False))
        values = {}
        for place, argument in enumerate(self.arguments):
            if argument.name in given:
                value = given[argument.name]
            elif argument.name in kwargs:
                value = kwargs[argument.name]
            elif argument.has_default_value():
                values[argument.name] = argument._default
                continue
            else:
                raise RuntimeError(
                    f"{self.name}() is missing value for argument '{argument.name}'. Declaration: {self}"
                )
            if not argument.accepts(value):
                raise RuntimeError(
                    f"{self.name}() Expected a value of type '{argument.type}' for argument '{argument.name}' but "
                    f"instead found type '{type(value).__name__}'.\nPosition: {place}\nValue: {value!r}\n"
                    f"Declaration: {self}"
                )
            values[argument.name] = value
        for name in kwargs:
            if name not in values or name in given:
                raise RuntimeError(f"Unknown keyword argument '{name}' for operator '{self.name}'. Schema: {self}")
        return values


def _accepts(kind: str, value: Any) -> bool:
    if kind.endswith("?"):
        return value is None or _accepts(kind[:-1], value)
    if kind.endswith("]"):
        inner = kind[: kind.rindex("[")]
        return isinstance(value, (list, tuple)) and all(_accepts(inner, item) for item in value)
    kinds = _CHECKS.get(kind.replace("SymInt", "int"))
    is_number = kind in ("float", "int", "Scalar") and isinstance(value, cygrad.Tensor) and value.dim() == 0
    if kind in ("int", "SymInt") and isinstance(value, bool):
        return False
    return kinds is None or isinstance(value, kinds) or is_number


# -- from text --

_TYPES = frozenset(
    """Any AnyClassType AnyEnumType Capsule Device DeviceIndex DeviceObjType Dict Dimname Future Generator Layout
    MemoryFormat NoneType QScheme Quantizer RRef Scalar ScalarType Storage Stream SymBool SymFloat SymInt Tensor Tuple
    __torch__ bool complex double float int num number str t""".split()
)
_SCHEMA = re.compile(r"\s*([\w:]*)(?:\.(\w+))?\s*(\(.*\)\s*->\s*.+)", re.DOTALL)
_ARGUMENT = re.compile(r"([\w.]+)(\([^)]*\))?((?:\?|\[\d*\])*)\s+(\w+)\s*(?:=\s*(.+))?$", re.DOTALL)


def _closing(text: str) -> int:
    """Return the place of the parenthesis that closes the one at the beginning of a text."""
    depth = 0
    for place, letter in enumerate(text):
        depth += (letter == "(") - (letter == ")")
        if not depth:
            return place
    raise RuntimeError(f"expected a closing parenthesis in: {text}")


def _parts(text: str) -> list[str]:
    """Split a text at its commas, except those in parentheses and brackets."""
    found, depth, start = [], 0, 0
    for i, letter in enumerate(text):
        depth += (letter in "([") - (letter in ")]")
        if letter == "," and not depth:
            found.append(text[start:i])
            start = i + 1
    found.append(text[start:])
    return [part.strip() for part in found if part.strip()]


def parse_schema(text: str) -> Schema:
    """Read a schema such as `sin(Tensor x, *, float k=1.0) -> Tensor`. Raises RuntimeError if it is none.

    >>> from cygrad.library._schema import parse_schema
    >>> parse_schema("f(Tensor(a!) x, int[] n=[1, 2]) -> ()").arguments[1].default_value
    [1, 2]
    """
    matched = _SCHEMA.match(text)
    if matched is None:
        raise RuntimeError(f"expected a schema of the form `name(Tensor x) -> Tensor` but found: {text}")
    rest = matched[3]
    end = _closing(rest)
    arguments = []
    kwarg_only = False
    for part in _parts(rest[1:end]):
        if part == "*":
            kwarg_only = True
            continue
        found = _ARGUMENT.match(part)
        if found is None:
            raise RuntimeError(f"expected an argument such as `Tensor x` but found `{part}` in: {text}")
        base, alias, more, name, default = found.groups()
        _check_type(base, text)
        value = _REQUIRED if default is None else _value(default)
        arguments.append(
            Argument(
                name,
                base + (more or ""),
                None if value is _REQUIRED else value,
                kwarg_only,
                "!" in (alias or ""),
                value,
            )
        )
    returned = rest[end + 1 :].partition("->")[2].strip()
    inner = returned[1:-1] if returned.startswith("(") else returned
    returns = [re.sub(r"\([^)]*\)", "", part).split()[0] for part in _parts(inner)]
    for kind in returns:
        _check_type(re.split(r"[\[?]", kind)[0], text)
    return Schema(matched[1], matched[2] or "", arguments, returns, rest.strip())


def _check_type(kind: str, text: str) -> None:
    """Raise RuntimeError for a type that schemas do not know; names with dots are those of classes."""
    if kind not in _TYPES and "." not in kind:
        place = re.search(rf"\b{re.escape(kind)}\b", text[text.index("(") :])
        start = text.index("(") + (place.start() if place else 0)
        raise RuntimeError(
            "\nunknown type specifier. Common valid schema types include Tensor, SymInt, int, float, bool, Scalar; for "
            "a full list, please see "
            "https://github.com/pytorch/pytorch/blob/main/aten/src/ATen/native/README.md#func :\n"
            f"{text}\n{' ' * start}{'~' * len(kind)} <--- HERE\n"
        )


def _value(text: str) -> Any:
    """Return a default value of a schema."""
    plain = text.strip()
    if plain in ("None", "True", "False"):
        return {"None": None, "True": True, "False": False}[plain]
    if plain[0] in "\"'":
        return plain[1:-1]
    if plain.startswith("["):
        return [_value(part) for part in _parts(plain[1:-1])]
    for kind in (int, float):
        try:
            return kind(plain)
        except ValueError:
            pass
    return getattr(cygrad, plain, plain)


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
