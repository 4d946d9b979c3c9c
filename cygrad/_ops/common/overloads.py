"""Binds the arguments of functions that have several signatures, with PyTorch's errors for those that fit none.

A signature is written as PyTorch's errors show it: "tuple of Tensors self, Tensor other, *, Number alpha = 1".
"""

from functools import cache
from numbers import Number
from typing import Any, NamedTuple

import numpy as np

from cygrad._core.errors import messages
from cygrad._core.errors.spelling import suggestion
from cygrad._core.graph.tensor import Tensor
from cygrad._core.types.dtypes import dtype
from cygrad._core.types.memory_format import memory_format

_DEFAULTS = {"None": None, "False": False, "True": True}


class Parameter(NamedTuple):
    """A parameter of a signature."""

    name: str
    kind: str
    default: Any  # `...` if there is none
    by_name: bool


class Signature(NamedTuple):
    """One way to call a function."""

    text: str
    parameters: tuple[Parameter, ...]

    @property
    def required(self):
        """The parameters without a default."""
        return [parameter for parameter in self.parameters if parameter.default is ...]


@cache
def parsed(text):
    """Return the `Signature` with this text."""
    parameters, by_name = [], False
    for part in text.split(", "):
        if part == "*":
            by_name = True
            continue
        declared, _, default = part.partition(" = ")
        kind, _, name = declared.rpartition(" ")
        value = (_DEFAULTS[default] if default in _DEFAULTS else int(default)) if default else ...
        parameters.append(Parameter(name, kind, value, by_name))
    return Signature(text, tuple(parameters))


def bound(function, texts, args, kwargs):
    """Return (place of the first of these signatures that fits the arguments, {name: value}).

    Raises TypeError as PyTorch does, in the name of `function`, if none fits.
    """
    signatures = [parsed(text) for text in texts]
    for place, signature in enumerate(signatures):
        values = _placed(signature, args, kwargs)
        if values is not None and all(_fits(values[p.name], p) for p in signature.parameters):
            _check_elements(signature.parameters, values)
            return place, values
    first = signatures[0].parameters
    _check_elements(first, {p.name: value for p, value in zip(first, args) if _is_list(value)})
    given = len(args) + len(kwargs)
    tried = [one for one in signatures if len(one.required) <= given <= len(one.parameters)]
    if len(signatures) == 1 or len(tried) == 1:
        raise _misfit(function, (tried or signatures)[0], args, kwargs)
    raise messages.no_such_call(function, args, kwargs, texts)


def _placed(signature, args, kwargs):
    """Return {name: value} of all parameters, or None if the number or the names of the arguments do not fit."""
    positional = [p.name for p in signature.parameters if not p.by_name]
    if len(args) > len(positional):
        return None
    values = dict(zip(positional, args))
    if kwargs and (kwargs.keys() & values.keys() or kwargs.keys() - {p.name for p in signature.parameters}):
        return None
    values |= kwargs
    for parameter in signature.parameters:
        if parameter.name not in values:
            if parameter.default is ...:
                return None
            values[parameter.name] = parameter.default
    return values


def _is_number(value):
    return isinstance(value, (Number, np.bool_))


def _is_list(value):
    return isinstance(value, (list, tuple))


_FITS = {
    "tuple of Tensors": _is_list,
    "tuple of Scalars": lambda value: _is_list(value) and all(map(_is_number, value)),
    "Tensor": lambda value: isinstance(value, Tensor),
    "Number": lambda value: (
        _is_number(value) or isinstance(value, Tensor) and not value.ndim and not value.requires_grad
    ),
    "bool": lambda value: isinstance(value, bool),
    "int": lambda value: hasattr(value, "__index__") and not isinstance(value, bool),
    "torch.dtype": lambda value: isinstance(value, dtype),
    "torch.memory_format": lambda value: isinstance(value, memory_format),
}


def _fits(value, parameter):
    return value is None and parameter.default is None or _FITS[parameter.kind](value)


def _check_elements(parameters, values):
    """Raise TypeError for an element of a list of tensors that is not a tensor."""
    for place, parameter in enumerate(parameters):
        if parameter.kind == "tuple of Tensors" and parameter.name in values:
            for i, value in enumerate(values[parameter.name]):
                if not isinstance(value, Tensor):
                    raise TypeError(
                        f"expected Tensor as element {i} in argument {place}, but got {messages.type_name(value)}"
                    )


def _misfit(function, signature, args, kwargs):
    """Return the error for arguments that do not fit the only signature."""
    positional = [p for p in signature.parameters if not p.by_name]
    if len(args) > len(positional):
        count = f"{len(positional)} positional argument" + "s" * (len(positional) != 1)
        return TypeError(f"{function}() takes {count} but {len(args)} {'was' if len(args) == 1 else 'were'} given")
    values = dict(zip((p.name for p in positional), args))
    missing = [f'"{p.name}"' for p in signature.required if p.name not in values | kwargs]
    if missing:
        plural = "s" * (len(missing) == 1)  # as in PyTorch
        return TypeError(
            f"{function}() missing {len(missing)} required positional argument{plural}: {', '.join(missing)}"
        )
    for place, p in enumerate(signature.parameters):
        if p.name in values and not _fits(values[p.name], p):
            return messages.wrong_type(function, p.name, place + 1, p.kind, values[p.name])
        if p.name in kwargs and p.name not in values and not _fits(kwargs[p.name], p):
            return messages.wrong_keyword(function, p.name, p.kind, kwargs[p.name])
    known = {p.name for p in signature.parameters}
    unknown = next((name for name in kwargs if name not in known), None)
    if unknown is not None:
        return TypeError(f"{function}() got an unexpected keyword argument '{unknown}'{suggestion(unknown, known)}")
    twice = next(name for name in kwargs if name in values)
    return TypeError(f"{function}() got multiple values for argument '{twice}'")
