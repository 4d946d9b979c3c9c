"""Normal forms of calls: all arguments by keyword, with defaults filled in."""

import inspect
import re
from collections.abc import Callable
from typing import Any, NamedTuple

from cygrad import nn
from cygrad.ops import OpOverload

__all__ = ["ArgsKwargsPair", "get_signature_for_torch_op", "normalize_function", "normalize_module"]


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
    """Raise RuntimeError for a function of the package that writes into an argument: in place, or into `out`."""
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
        f"Tried to trace mutable operation {shown}. FX only supports functional code, so operations that mutate operands "
        "in-place (e.g. via `out` arguments) are not supported\n"
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


def _normal(
    signature: inspect.Signature, args: tuple[Any, ...], kwargs: dict[str, Any], by_keyword: bool
) -> ArgsKwargsPair | None:
    try:
        bound = signature.bind(*args, **kwargs)
    except TypeError:
        return None
    bound.apply_defaults()
    if not by_keyword:
        named = dict(bound.arguments)
        positional = tuple(named.pop(name) for name, _ in zip(list(named), args, strict=False))
        return ArgsKwargsPair(positional, named)
    return ArgsKwargsPair((), dict(bound.arguments))
