"""Calls a module with substituted parameters and buffers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from cygrad import Tensor
from cygrad.nn.modules.module import Module
from cygrad.nn.parameter import Parameter
from cygrad.utils.warning import warn

__all__ = ["functional_call"]


def functional_call(
    module: Module,
    parameters_and_buffers: Any,
    args: Any = None,
    kwargs: dict[str, Any] | None = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
) -> Any:
    """Deprecated alias of `cygrad.func.functional_call`.

    >>> import cygrad
    >>> from cygrad import nn
    >>> import warnings
    >>> from cygrad.nn.utils.stateless import functional_call
    >>> parameters = {"weight": cygrad.tensor([[2.0]]), "bias": cygrad.tensor([1.0])}
    >>> with warnings.catch_warnings(action="ignore"):
    ...     print(functional_call(nn.Linear(1, 1), parameters, cygrad.tensor([3.0])))
    tensor([7.])
    """
    warn(
        "`torch.nn.utils.stateless.functional_call` is deprecated as of PyTorch 2.0 and will be removed in a future "
        "version of PyTorch. Please use `torch.func.functional_call` instead which is a drop-in replacement.",
        FutureWarning,
    )
    return call_with(module, parameters_and_buffers, args, kwargs, tie_weights=tie_weights, strict=strict)


def call_with(
    module: Module,
    parameter_and_buffer_dicts: Any,
    args: Any = None,
    kwargs: dict[str, Any] | None = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
) -> Any:
    """Call `module(*args, **kwargs)` with the tensors of these dictionaries in place of its own.

    Gradients flow to these tensors. If `forward` assigns to a replaced name, the new value is stored in the
    dictionary; the module itself is restored. `args` may be a single non-tuple argument. If a tensor has several
    names (tied weights), all of them are replaced together unless `tie_weights` is false. `strict` requires
    exactly one tensor for every parameter and buffer (`RuntimeError` otherwise).

    >>> import cygrad
    >>> from cygrad.nn.utils.stateless import call_with
    >>> layer = cygrad.nn.Linear(2, 1)
    >>> weights = {"weight": cygrad.ones(1, 2), "bias": cygrad.zeros(1)}
    >>> call_with(layer, weights, cygrad.tensor([[3.0, 4.0]]))
    tensor([[7.]])
    """
    given = _merged(parameter_and_buffer_dicts)
    if not (tie_weights or isinstance(module, Module)):
        raise TypeError(f"{module} is not an instance of torch.nn.Module")
    args = () if args is None else args if isinstance(args, tuple) else (args,)
    with _replaced(module, given, tie_weights, strict):
        return module(*args, **({} if kwargs is None else kwargs))


def _merged(dicts: Any) -> Any:
    """Return the given dictionary itself, so that changes reach the caller, or a new one merged from several."""
    if isinstance(dicts, Mapping):
        return dicts
    if isinstance(dicts, (list, tuple, str)) and not all(isinstance(each, Mapping) for each in dicts):
        raise ValueError("Expected all elements of parameter_and_buffer_dicts to be dictionaries")
    if not isinstance(dicts, (list, tuple)):
        raise ValueError(
            f"Expected parameter_and_buffer_dicts to be a dict, or a list/tuple of dicts, but got {type(dicts)}"
        )
    names = [name for each in dicts for name in each]
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        raise ValueError(f"{repeated} appeared in multiple dictionaries; behavior of functional call is ambiguous")
    return {name: value for each in dicts for name, value in each.items()}


@contextmanager
def _replaced(module: Module, given: Any, tie_weights: bool, strict: bool) -> Iterator[None]:
    # Not where the names are not needed: a module that contains itself has names without end.
    own = _names_of_tensors(module) if tie_weights or strict else {}
    values = _with_tied(own, given) if tie_weights else dict(given)
    if strict:
        _check_names(module, own, values)
    slots = {name: _slot(module, name, value) for name, value in values.items()}
    for name, value in values.items():
        if value is not None and not isinstance(value, Tensor):
            raise TypeError(f"{value} is not an instance of torch.Tensor\nIt was given for {name}.")
    before = {name: table.get(key, slots) for name, (table, key) in slots.items()}  # `slots` marks absent entries
    try:
        for name, (table, key) in slots.items():
            table[key] = values[name]
        yield
    finally:
        for name, (table, key) in reversed(slots.items()):
            if name in given and table.get(key) is not values[name] and key in table:
                given[name] = table[key]
            if before[name] is slots:
                table.pop(key, None)
            else:
                table[key] = before[name]


def _names_of_tensors(module: Module) -> dict[str, Tensor]:
    return {
        **dict(module.named_parameters(remove_duplicate=False)),
        **dict(module.named_buffers(remove_duplicate=False)),
    }


def _with_tied(own: dict[str, Tensor], given: Any) -> dict[str, Any]:
    """Return the given values, also under the other names of the tensors they replace."""
    names: dict[int, list[str]] = {}
    for name, tensor in own.items():
        names.setdefault(id(tensor), []).append(name)
    values = dict(given)
    for tied in names.values():
        present = [name for name in tied if name in given]
        if len({id(given[name]) for name in present}) > 1:
            raise ValueError(
                f"functional_call got multiple values for keys {sorted(present)}, which are tied. "
                "Consider using tie_weights=False"
            )
        if present:
            values.update((name, given[present[0]]) for name in tied)
    return values


def _check_names(module: Module, own: dict[str, Tensor], values: dict[str, Any]) -> None:
    unexpected = sorted(set(values) - set(own))
    missing = sorted(set(own) - set(values))
    lines = [
        f"\n\t{kind} key(s): {', '.join(map(repr, names))}."
        for kind, names in (("Unexpected", unexpected), ("Missing", missing))
        if names
    ]
    if lines:
        raise RuntimeError(f"Error(s) in reparametrizing for {type(module).__name__}:" + "".join(lines))


def _slot(module: Module, name: str, value: Any) -> tuple[dict[str, Any], str]:
    """Return the dictionary that holds, or is to hold, the tensor of this dotted name, and its key in it."""
    path, _, key = name.rpartition(".")
    if not key:
        raise KeyError('tensor name can\'t be empty string ""')
    owner = module
    for part in path.split(".") if path else ():
        owner = getattr(owner, part) if hasattr(owner, part) else module.get_submodule(path)  # raises
        if not isinstance(owner, Module):
            raise TypeError(f"submodule `{path}`: {owner} is not an instance of torch.nn.Module")
    for table in (owner._parameters, owner._buffers):
        if key in table:
            return table, key
    former = getattr(owner, key, None)
    if former is not None and not isinstance(former, Tensor):
        raise TypeError(f"attribute `{key}`: {former} is not an instance of torch.Tensor")
    return (owner._parameters if former is None and isinstance(value, Parameter) else owner.__dict__), key


@contextmanager
def _reparametrize_module(
    module: Module,
    parameters_and_buffers: dict[str, Tensor],
    tie_weights: bool = False,
    strict: bool = False,
    stack_weights: bool = False,
) -> Iterator[None]:
    """A block in which the module has these tensors in place of its own."""
    with _replaced(module, parameters_and_buffers, tie_weights, strict):
        yield


_functional_call = call_with  # PyTorch's name
