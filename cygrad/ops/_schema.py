"""Schemas of ops: the names, types and defaults of their arguments, read from text as PyTorch writes it."""

import inspect
import re
from dataclasses import dataclass, field
from typing import Any

import cygrad

_REQUIRED: Any = inspect.Parameter.empty
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


@dataclass(frozen=True)
class AliasInfo:
    """What memory an argument shares: the names of sets, which results share, too; and whether the op writes to it."""

    before_set: frozenset[str]
    after_set: frozenset[str]
    is_write: bool


@dataclass
class Argument:
    """An argument of an op, or a result. `kind` is its type as the text of the schema has it."""

    name: str
    kind: str
    default_value: Any = None
    kwarg_only: bool = False
    alias_info: AliasInfo | None = None
    _default: Any = field(default=_REQUIRED, repr=False)

    @property
    def type(self) -> Any:
        """The type, with those that are numbers inside PyTorch as `int`."""
        from cygrad.ops._schema_types import type_of  # few programs ask, and it needs TorchScript's types

        return type_of(self.kind, numbered=True)

    @property
    def real_type(self) -> Any:
        """The type."""
        from cygrad.ops._schema_types import type_of  # same as above

        return type_of(self.kind)

    @property
    def N(self) -> int | None:
        """How many items a single value stands for, where the schema says so: 2 for `int[2]`."""
        found = re.search(r"\[(\d+)\]", self.kind)
        return int(found[1]) if found else None

    @property
    def is_write(self) -> bool:
        """Whether the op writes to it."""
        return self.alias_info is not None and self.alias_info.is_write

    @property
    def is_out(self) -> bool:
        """Whether the result is written to it."""
        return self.kwarg_only and self.is_write

    def has_default_value(self) -> bool:
        """Whether a call may leave it out."""
        return self._default is not _REQUIRED

    def accepts(self, value: Any) -> bool:
        """Whether a value is of the argument's type."""
        return _accepts(self.kind, value)


@dataclass
class FunctionSchema:
    """The schema of an op."""

    name: str
    overload_name: str
    arguments: list[Argument]
    returns: list[Argument]
    text: str  # from the parenthesis on

    @property
    def is_mutable(self) -> bool:
        """Whether the op writes into an argument."""
        return any(argument.is_write for argument in self.arguments)

    @property
    def has_named_tensors(self) -> bool:
        """Whether tensors are passed by keyword only."""
        return any(argument.kwarg_only and argument.kind.startswith("Tensor") for argument in self.arguments)

    def __str__(self) -> str:
        return f"{self.name}{f'.{self.overload_name}' if self.overload_name else ''}{self.text}"

    __repr__ = __str__

    def __hash__(self) -> int:
        return hash(str(self))

    def is_backward_compatible_with(self, old: "FunctionSchema") -> bool:
        """Whether calls of another schema are calls of this one: only an equal one is known to be."""
        return self == old

    def _is_view_op(self) -> bool:
        """Whether a result shares the memory of an argument, to which the op does not write."""
        return any(a.alias_info is not None and not a.is_write for a in self.arguments)

    def bind(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
        """Return {argument: value} for a call, with defaults filled in. Raises RuntimeError for a wrong call.

        Values are what kernels get: devices for their names, lists for tuples, numbers for tensors of one element.
        """
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
                value = argument._default
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
            values[argument.name] = _converted(argument.kind, value)
        for name in kwargs:
            if name not in values or name in given:
                raise RuntimeError(f"Unknown keyword argument '{name}' for operator '{self.name}'. Schema: {self}")
        return values


def _accepts(kind: str, value: Any) -> bool:
    if kind.endswith("?"):
        return value is None or _accepts(kind[:-1], value)
    if kind.endswith("]"):
        inner, _, length = kind[:-1].rpartition("[")
        if length and not isinstance(value, (list, tuple)):
            return _accepts(inner, value)  # one for all
        return isinstance(value, (list, tuple)) and all(_accepts(inner, item) for item in value)
    kinds = _CHECKS.get(kind.replace("SymInt", "int"))
    is_number = kind in ("float", "int", "Scalar") and isinstance(value, cygrad.Tensor) and value.dim() == 0
    if kind in ("int", "SymInt") and isinstance(value, bool):
        return False
    return kinds is None or isinstance(value, kinds) or is_number


def _converted(kind: str, value: Any) -> Any:
    """Return a value that an argument accepts as one of the argument's type."""
    kind = kind.removesuffix("?")
    if value is None or kind == "Tensor":
        return value
    if kind.endswith("]"):
        inner, _, length = kind[:-1].rpartition("[")
        items = value if isinstance(value, (list, tuple)) else [value] * int(length)
        return [_converted(inner, item) for item in items]
    if kind == "Device":
        return cygrad.device(value)
    if isinstance(value, cygrad.Tensor) and kind in ("int", "SymInt", "float", "Scalar"):
        value = value.item()
    return float(value) if kind == "float" and isinstance(value, int) else value


# -- from text --

_TYPES = frozenset(
    """Any AnyClassType AnyEnumType Capsule Device DeviceIndex DeviceObjType Dict Dimname Future Generator Layout
    MemoryFormat NoneType QScheme Quantizer RRef Scalar ScalarType Storage Stream SymBool SymFloat SymInt Tensor Tuple
    __torch__ bool complex double float int num number str t""".split()
)
_SCHEMA = re.compile(r"\s*([\w:]*)(?:\.(\w+))?\s*(\(.*\)\s*->\s*.+)", re.DOTALL)
_ARGUMENT = re.compile(r"([\w.]+)(\([^)]*\))?((?:\?|\[\d*\])*)(\([^)]*\))?\s+(\w+)\s*(?:=\s*(.+))?$", re.DOTALL)


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


def parse_schema(text: str) -> FunctionSchema:
    """Read a schema such as `sin(Tensor x, *, float k=1.0) -> Tensor`. Raises RuntimeError if it is none.

    >>> from cygrad.ops._schema import parse_schema
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
        base, alias, more, alias_of_list, name, default = found.groups()
        _check_type(base, text)
        kind = base + (more or "")
        value = _REQUIRED if default is None else _value(default)
        size = re.search(r"\[(\d+)\]", kind)
        if size and isinstance(value, (int, float)):
            value = [value] * int(size[1])
        shown = None if value is _REQUIRED else value
        arguments.append(
            Argument(
                name, kind, shown, kwarg_only, _alias_info(alias or alias_of_list, bool(alias) and "[" in kind), value
            )
        )
    returned = rest[end + 1 :].partition("->")[2].strip()
    inner = returned[1:-1] if returned.startswith("(") else returned
    returns = [_result(part) for part in _parts(inner)]
    for result in returns:
        _check_type(re.split(r"[\[?]", result.kind)[0], text)
    return FunctionSchema(matched[1], matched[2] or "", arguments, returns, rest.strip())


def _alias_info(text: str | None, of_items: bool = False) -> AliasInfo | None:
    """Read what stands in parentheses behind a type, such as `(a!)` or `(a -> *)`. A list has no sets of its items."""
    if text is None:
        return None
    if of_items:
        return AliasInfo(frozenset(), frozenset(), "!" in text)
    before, _, after = text[1:-1].partition("->")
    first, last = (frozenset(name.strip(" !") for name in part.split("|")) for part in (before, after or before))
    return AliasInfo(first, last, "!" in text)


def _result(text: str) -> Argument:
    alias = re.search(r"\([^)]*\)", text)
    kind, *name = re.sub(r"\([^)]*\)", "", text).split()
    return Argument(name[0] if name else "", kind, alias_info=_alias_info(alias[0] if alias else None, "[" in kind))


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
