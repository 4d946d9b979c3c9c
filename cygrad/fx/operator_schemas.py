"""Normal forms of calls: all arguments by keyword, with defaults filled in."""

import inspect
import numbers
import re
import types
import typing
from collections.abc import Callable
from typing import Any, NamedTuple

import cygrad
from cygrad import nn
from cygrad.ops import OpOverload
from cygrad.utils.warning import warn

__all__ = [
    "ArgsKwargsPair",
    "check_for_mutable_operation",
    "create_type_hint",
    "get_signature_for_torch_op",
    "normalize_function",
    "normalize_module",
    "type_matches",
]


class ArgsKwargsPair(NamedTuple):
    """The arguments of a call.

    >>> from cygrad.fx.operator_schemas import ArgsKwargsPair
    >>> ArgsKwargsPair((1,), {"alpha": 2}).kwargs
    {'alpha': 2}
    """

    args: tuple[Any, ...]
    kwargs: dict[str, Any]


def get_signature_for_torch_op(op: Callable[..., Any], return_schemas: bool = False) -> Any:
    """Return the signatures of a function of the package, of which there is one, or None if it does not tell.

    >>> import cygrad
    >>> from cygrad.fx.operator_schemas import get_signature_for_torch_op
    >>> [list(signature.parameters) for signature in get_signature_for_torch_op(cygrad.relu)]
    [['input', 'out']]
    """
    try:
        found: list[inspect.Signature] | None = [inspect.signature(op)]
    except (ValueError, TypeError):
        found = None
    return (found, None) if return_schemas else found


def check_for_mutable_operation(target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Raise RuntimeError for a function of the package that writes into an argument: in place, or into `out`.

    >>> import cygrad
    >>> from cygrad.fx.operator_schemas import check_for_mutable_operation
    >>> check_for_mutable_operation(cygrad.ops.aten.add.Tensor, (), {})
    >>> check_for_mutable_operation(cygrad.ops.aten.add_.Tensor, (), {})
    Traceback (most recent call last):
        ...
    RuntimeError: Tried to trace mutable operation aten::add_.Tensor(...
    """
    name = getattr(target, "__name__", "")
    if isinstance(target, OpOverload):
        shown = str(target._schema) if target._is_mutable else None
    elif kwargs.get("out") is not None:
        shown = f"aten::{name}.out"
    else:
        shown = f"aten::{name}" if re.fullmatch(r"[a-z]\w*[a-z0-9]_", name) else None
    if shown is None or not is_torch_function(target):
        return
    raise RuntimeError(
        f"Tried to trace mutable operation {shown}. FX only supports functional code, so operations that mutate "
        "operands in-place (e.g. via `out` arguments) are not supported\n"
        "  to fix it: call the function that returns a new tensor"
    )


def is_torch_function(target: Any) -> bool:
    """Whether a function is one of the package's."""
    return (getattr(target, "__module__", None) or "").partition(".")[0] in ("cygrad", "torch")


def normalize_function(
    target: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any] | None = None,
    arg_types: Any = None,
    kwarg_types: Any = None,
    normalize_to_only_use_kwargs: bool = False,
) -> ArgsKwargsPair | None:
    """Return the arguments of a call with defaults filled in; None if the function does not tell its signature.

    >>> import cygrad
    >>> from cygrad.fx.operator_schemas import normalize_function
    >>> normalize_function(cygrad.nn.functional.relu, (1,), normalize_to_only_use_kwargs=True)
    ArgsKwargsPair(args=(), kwargs={'input': 1, 'inplace': False})
    """
    signatures = get_signature_for_torch_op(target)
    if not signatures:
        return None
    return _normal(signatures[0], args, kwargs or {}, normalize_to_only_use_kwargs)


def normalize_module(
    root: nn.Module,
    target: str,
    args: tuple[Any, ...],
    kwargs: dict[str, Any] | None = None,
    normalize_to_only_use_kwargs: bool = False,
) -> ArgsKwargsPair | None:
    """Same as `normalize_function`, for the call of a submodule.

    >>> import cygrad
    >>> from cygrad.fx.operator_schemas import normalize_module
    >>> normalize_module(cygrad.nn.Sequential(cygrad.nn.ReLU()), "0", (1,), normalize_to_only_use_kwargs=True)
    ArgsKwargsPair(args=(), kwargs={'input': 1})
    """
    signature = inspect.signature(root.get_submodule(target).forward)
    return _normal(signature, args, kwargs or {}, normalize_to_only_use_kwargs)


# Names of NumPy for arguments that have another name in PyTorch, and `out`, which may not be None everywhere
_SECOND_NAMES = {"axis", "keepdims", "out"}


def _is_unwritten(default: Any) -> bool:
    """Whether a default only tells that an argument was not given, so that it cannot be written into a call."""
    kind = default if isinstance(default, type) else type(default)
    return kind is not inspect.Parameter.empty and kind.__name__.startswith("_")


def _normal(
    signature: inspect.Signature, args: tuple[Any, ...], kwargs: dict[str, Any], by_keyword: bool
) -> ArgsKwargsPair | None:
    parameters = signature.parameters.values()
    if any(p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD, p.POSITIONAL_ONLY) for p in parameters):
        return None  # whose arguments cannot all be named
    try:
        bound = signature.bind(*args, **kwargs)
    except TypeError:
        return None
    if not any(_is_unwritten(p.default) for p in parameters):
        for name in _SECOND_NAMES & signature.parameters.keys() - bound.arguments.keys():
            signature = signature.replace(parameters=[p for p in parameters if p.name != name])
            parameters = signature.parameters.values()
            bound = signature.bind(*bound.args, **bound.kwargs)
        bound.apply_defaults()
    if not by_keyword:
        named = dict(bound.arguments)
        positional = tuple(named.pop(name) for name, _ in zip(list(named), args, strict=False))
        return ArgsKwargsPair(positional, named)
    return ArgsKwargsPair((), dict(bound.arguments))


def create_type_hint(x: Any) -> Any:
    """Return the type of a list or tuple from the types of its items, given in a list or tuple; others as they are.

    >>> from cygrad.fx.operator_schemas import create_type_hint
    >>> create_type_hint([int, bool]), create_type_hint((int, str)), create_type_hint(int)
    (list[int], tuple[typing.Any, ...], <class 'int'>)
    """
    if not isinstance(x, (list, tuple)):
        return x
    try:
        item = next((one for one in x if all(issubclass(other, one) for other in x)), Any)
    except TypeError:  # an item that is no class
        warn(f"We were not able to successfully create type hint from the type {x}")
        return x
    return list[item] if isinstance(x, list) else tuple[item, ...]  # type: ignore[valid-type]


def type_matches(signature_type: Any, argument_type: Any) -> bool:
    """Whether an argument of the second type may stand where a signature has the first.

    >>> from cygrad.fx.operator_schemas import type_matches
    >>> type_matches(list[int], tuple[int, int]), type_matches(int | str, bool), type_matches(str, int)
    (True, True, False)
    """
    if signature_type is argument_type or signature_type is Any:
        return True
    origin, parts = typing.get_origin(signature_type), typing.get_args(signature_type)
    if origin in (typing.Union, types.UnionType):
        return any(type_matches(part, argument_type) for part in parts)
    if origin is list:
        return _is_sequence_of(parts[0], argument_type)
    if signature_type is int and argument_type is cygrad.dtype:  # which schemas have as numbers
        return True
    if signature_type is numbers.Number and argument_type in (int, float):
        return True
    return (
        isinstance(signature_type, type)
        and isinstance(argument_type, type)
        and issubclass(argument_type, signature_type)
    )


def _is_sequence_of(item: Any, kind: Any) -> bool:
    """Whether a type is that of a list or a tuple of items; a single int stands for several, too."""
    if kind is int and item is int:
        return True
    if not isinstance(item, type):
        warn(f"Does not support nested parametric types, got {list[item]}. Please file a bug.")
        return False
    parts = [part for part in typing.get_args(kind) if part is not ... and part != ()]
    return typing.get_origin(kind) in (list, tuple) and all(isinstance(p, type) and issubclass(p, item) for p in parts)
