"""Types and markers that TorchScript reads: they leave a program as it is, or answer questions about types."""

from __future__ import annotations

import builtins
import types
import typing
from typing import Any, Dict, Final, List, Optional, Tuple, Union  # noqa: UP035  imported from here by programs

from cygrad.utils import typename

__all__ = [
    "Any", "Attribute", "BroadcastingList1", "BroadcastingList2", "BroadcastingList3", "BroadcastingList4",
    "BroadcastingList5", "BroadcastingList6", "Dict", "Final", "FunctionModifiers", "List", "Optional", "Tuple",
    "Union", "annotate", "boolean_dispatch", "export", "get_torchscript_modifier", "ignore", "interface", "is_dict",
    "is_list", "is_optional", "is_scripting", "is_tuple", "isinstance", "unused",
]  # fmt: skip


def is_scripting() -> bool:
    """Whether this is run by TorchScript: always False.

    >>> import cygrad
    >>> cygrad.jit.is_scripting()
    False
    """
    return False


# -- markers --


class FunctionModifiers:
    """What `export`, `ignore` and `unused` note on a function, in its attribute `_torchscript_modifier`.

    >>> import cygrad
    >>> from cygrad.jit.annotations import FunctionModifiers, get_torchscript_modifier
    >>> get_torchscript_modifier(cygrad.jit.unused(lambda x: x)) == FunctionModifiers.UNUSED
    True
    """

    UNUSED = "unused"
    IGNORE = "ignore"
    EXPORT = "export"
    DEFAULT = "default"
    COPY_TO_SCRIPT_WRAPPER = "copy_to_script_wrapper"
    _DROP = "drop"


def _marked(fn, modifier):
    fn._torchscript_modifier = modifier
    return fn


def export(fn: Any) -> Any:
    """Mark a method as one to compile: returns it unchanged but for the mark.

    >>> import cygrad
    >>> class Model(cygrad.nn.Module):
    ...     def forward(self, x):
    ...         return x
    ...     @cygrad.jit.export
    ...     def reset(self):
    ...         return "reset"
    >>> Model().reset()
    'reset'
    """
    return _marked(fn, FunctionModifiers.EXPORT)


def unused(fn: Any) -> Any:
    """Mark a function as one that compiled code never calls: returns it unchanged but for the mark.

    A property is returned as it is, with its functions marked.

    >>> import cygrad
    >>> @cygrad.jit.unused
    ... def f(x):
    ...     return x
    >>> f(3)
    3
    """
    if builtins.isinstance(fn, property):
        for each in (fn.fget, fn.fset):
            if each is not None:
                _marked(each, FunctionModifiers.UNUSED)
        return fn
    return _marked(fn, FunctionModifiers.UNUSED)


def ignore(drop: Any = False, **kwargs: Any) -> Any:
    """Mark a function as one to leave to Python; used as `@ignore` or `@ignore(drop=True)`.

    Raises RuntimeError if `drop` is neither a function nor a bool.

    >>> import cygrad
    >>> @cygrad.jit.ignore
    ... def f(x):
    ...     return x
    >>> f(3)
    3
    """
    if callable(drop):
        return _marked(drop, FunctionModifiers.IGNORE)
    if not builtins.isinstance(drop, bool):
        raise RuntimeError(f"Argument to @torch.jit.ignore must be a bool or a function but got {drop}")
    return lambda fn: _marked(fn, FunctionModifiers.UNUSED if drop else FunctionModifiers.IGNORE)


def _copy_to_script_wrapper(fn):
    return _marked(fn, FunctionModifiers.COPY_TO_SCRIPT_WRAPPER)


def _drop(fn):
    return _marked(fn, FunctionModifiers._DROP)


def get_torchscript_modifier(fn: Any) -> Any:
    """Return what a function or method is marked as, one of `FunctionModifiers`; None for other objects.

    >>> import cygrad
    >>> from cygrad.jit.annotations import get_torchscript_modifier
    >>> get_torchscript_modifier(cygrad.jit.export(lambda x: x)), get_torchscript_modifier(3)
    ('export', None)
    """
    if not callable(fn):
        return None
    return getattr(getattr(fn, "__func__", fn), "_torchscript_modifier", FunctionModifiers.DEFAULT)


def interface(obj: Any) -> Any:
    """Mark a class as the interface of modules: returns it unchanged. Raises RuntimeError for other objects.

    >>> import cygrad
    >>> @cygrad.jit.interface
    ... class Layer:
    ...     def forward(self, x):
    ...         pass
    >>> Layer.__name__
    'Layer'
    """
    if not builtins.isinstance(obj, type):
        raise RuntimeError("interface must be applied to a class")
    return obj


def _overload(func):
    """Declare a signature of a function that is defined below: returns the declaration."""
    return func


def _overload_method(func):
    """Declare a signature of a method that is defined below: returns the declaration."""
    return func


def boolean_dispatch(
    arg_name: str, arg_index: Any, default: Any, if_true: Any, if_false: Any, module_name: str, func_name: str
) -> Any:
    """Return a function that calls `if_true` or `if_false`, depending on one of its arguments.

    The argument is named `arg_name`, is at position `arg_index`, and has a default.

    >>> import cygrad
    >>> from cygrad.jit.annotations import boolean_dispatch
    >>> def both(x, return_indices=False):
    ...     return x.max(0)
    >>> def largest(x, return_indices=False):
    ...     return x.amax(0)
    >>> pool = boolean_dispatch("return_indices", 1, False, both, largest, "example", "pool")
    >>> pool(cygrad.tensor([1.0, 3.0])), pool(cygrad.tensor([1.0, 3.0]), return_indices=True).indices
    (tensor(3.), tensor(1))
    """

    def fn(*args, **kwargs):
        chosen = kwargs[arg_name] if arg_name in kwargs else args[arg_index] if arg_index < len(args) else default
        return (if_true if chosen else if_false)(*args, **kwargs)

    for each in (if_true, if_false):
        fn.__doc__ = fn.__doc__ or each.__doc__
    if module_name is not None:
        fn.__module__ = module_name
    if func_name is not None:
        fn.__name__ = func_name
    return fn


# -- types --


class Attribute(typing.NamedTuple):
    """A value and its type, for an attribute of a module.

    >>> import cygrad
    >>> cygrad.jit.Attribute({"a": 1}, dict[str, int]).value
    {'a': 1}
    """

    value: Any
    type: Any


class _BroadcastingList:
    """Annotates a list for which one number may stand: `BroadcastingList2[int]` is `List[int]`."""

    def __getitem__(self, kind: Any) -> Any:
        return List[kind]  # noqa: UP006  as typing spells it


BroadcastingList1 = BroadcastingList2 = BroadcastingList3 = _BroadcastingList()
BroadcastingList4 = BroadcastingList5 = BroadcastingList6 = BroadcastingList1


def annotate(the_type: Any, the_value: Any) -> Any:
    """Tell TorchScript the type of a value: returns the value.

    >>> import cygrad
    >>> cygrad.jit.annotate(list[int], [])
    []
    """
    return the_value


def is_optional(ann: Any) -> bool:
    """Whether an annotation is a union of two types one of which is None.

    >>> from typing import List, Optional
    >>> from cygrad.jit.annotations import is_optional
    >>> is_optional(Optional[int]), is_optional(List[int])
    (True, False)
    """
    parts = typing.get_args(ann) if _is_union(ann) else ()
    return len(parts) == 2 and type(None) in parts


def is_tuple(ann: Any) -> bool:
    """Whether an annotation is a tuple with types of its elements. Raises RuntimeError for a plain `Tuple`.

    >>> from cygrad.jit.annotations import is_tuple
    >>> is_tuple(tuple[int, str]), is_tuple(int)
    (True, False)
    """
    return _has_origin(ann, tuple, Tuple)  # noqa: UP006


def is_list(ann: Any) -> bool:
    """Whether an annotation is a list with the type of its elements. Raises RuntimeError for a plain `List`.

    >>> from cygrad.jit.annotations import is_list
    >>> is_list(list[int]), is_list(int)
    (True, False)
    """
    return _has_origin(ann, list, List)  # noqa: UP006


def is_dict(ann: Any) -> bool:
    """Whether an annotation is a dictionary with types. Raises RuntimeError for a plain `Dict`.

    >>> from cygrad.jit.annotations import is_dict
    >>> is_dict(dict[str, int]), is_dict(int)
    (True, False)
    """
    return _has_origin(ann, dict, Dict)  # noqa: UP006


def _has_origin(ann, kind, plain):
    if ann is plain:
        raise RuntimeError(f"Attempted to use {kind.__name__.title()} without a contained type.")
    return typing.get_origin(ann) is kind


def _is_union(ann):
    return typing.get_origin(ann) in (Union, types.UnionType)


def isinstance(obj: Any, target_type: Any) -> bool:
    """Whether a value has a type, including the types of its elements; a tuple of types stands for any of them.

    Raises RuntimeError for a container without types of its elements.

    >>> from typing import Dict, List
    >>> import cygrad
    >>> cygrad.jit.isinstance([1, 2], List[int]), cygrad.jit.isinstance({"a": "b"}, Dict[str, int])
    (True, False)
    """
    if builtins.isinstance(target_type, tuple):
        return any(isinstance(obj, each) for each in target_type)
    if target_type is Any:
        return True
    if _is_union(target_type):
        return any(isinstance(obj, each) for each in typing.get_args(target_type))
    origin, parts = typing.get_origin(target_type), typing.get_args(target_type)
    if origin is None or not parts:
        _check_container(target_type)
        return builtins.isinstance(obj, type(None) if target_type is None else target_type)
    if not builtins.isinstance(obj, origin):
        return False
    if origin is list:
        return all(isinstance(each, parts[0]) for each in obj)
    if origin is dict:
        return all(isinstance(key, parts[0]) and isinstance(value, parts[1]) for key, value in obj.items())
    if origin is tuple:
        return len(obj) == len(parts) and all(map(isinstance, obj, parts))
    return True


def _check_container(target_type):
    if target_type in (list, dict, tuple, List, Dict, Tuple):  # noqa: UP006
        name = target_type.__name__.title()
        raise RuntimeError(
            f"Attempted to use {name} without a contained type. Please add a contained type, e.g. {name}[int]"
        )


def _qualified_name(obj, mangle_name=True):
    """Return the dotted name of a function or class. Raises RuntimeError for lambdas and local objects."""
    name = getattr(obj, "_jit_override_qualname", None) or getattr(obj, "__name__", None)
    if name is None:
        raise RuntimeError(f"Could not get name of python class object: {typename(obj)}")
    if name == "<lambda>":
        name = "_lambda"
    if "." in name:
        raise RuntimeError(f"Could not get qualified name for class '{name}': '{name}' is not a valid identifier")
    if getattr(obj, "__module__", None) is None:
        raise RuntimeError(f"Could not get qualified name for class '{name}': __module__ can't be None.")
    module = "__torch__" if obj.__module__ == "__main__" else obj.__module__
    return f"{module}.{name}" if module.startswith("__torch__") else f"__torch__.{module}.{name}"


def _is_exception(obj):
    return builtins.isinstance(obj, type) and issubclass(obj, Exception)
