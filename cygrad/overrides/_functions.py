"""Lists of the functions that `__torch_function__` receives, and of those that it does not, and their names."""

import inspect
from collections.abc import Callable
from functools import cache
from operator import attrgetter
from types import ModuleType
from typing import Any

import cygrad
from cygrad._core.graph.opdef import is_seen
from cygrad._core.graph.tensor import Tensor
from cygrad._core.registry.torch_function import _METHODS

_SPACES = ("", "functional", "nn.functional", "linalg", "fft", "special")
_DESCRIPTORS = (type(Tensor.size), type(object.__repr__))  # methods and operators of a compiled class
# Functions that modes receive, but no classes
_CREATING = frozenset(
    """arange as_tensor asarray bartlett_window blackman_window empty empty_permuted empty_strided eye from_file
    from_numpy frombuffer full hamming_window hann_window kaiser_window linspace logspace normal ones rand rand_like
    randint randint_like randn randn_like randperm range scalar_tensor sparse_bsc_tensor sparse_bsr_tensor
    sparse_compressed_tensor sparse_coo_tensor sparse_csc_tensor sparse_csr_tensor tensor tril_indices triu_indices
    zeros fft.fftfreq fft.rfftfreq""".split()
)
_OF_OBJECTS = {*dir(object), "__getattr__", "__setattr__", "__delattr__", "__reduce_ex__"}


def _space(name: str) -> Any:
    found = cygrad
    for part in filter(None, name.split(".")):
        found = getattr(found, part)
    return found


def _callables(space: Any) -> dict[str, Any]:
    """Return the functions of a module, or the methods and properties of a class, by name."""
    names = getattr(space, "__all__", None) or dir(space)
    found = {name: getattr(space, name, None) for name in names}
    return {
        name: value for name, value in found.items() if callable(value) and not isinstance(value, (type, ModuleType))
    }


def _is_overridden(name: str, value: Any) -> bool:
    """Whether calls of a method of Tensor are passed to modes and classes."""
    if is_seen(value) or hasattr(value, "asks") or name in _METHODS:
        return True
    return isinstance(value, _DESCRIPTORS) and name not in _OF_OBJECTS


@cache
def _get_overridable_functions() -> tuple[dict[Any, list[Callable[..., Any]]], dict[Callable[..., Any], str]]:
    """Return {module or class: overridable functions} and {function: name}."""
    overridable: dict[Any, list[Callable[..., Any]]] = {}
    names: dict[Callable[..., Any], str] = {}
    for title in _SPACES:
        space = _space(title)
        for name, value in _callables(space).items():
            if is_seen(value) or hasattr(value, "asks"):
                overridable.setdefault(space, []).append(value)
                _name(names, value, ".".join(filter(None, ("torch", title))), name)
    for name, value in _callables(cygrad.functional).items():  # where PyTorch defines them
        names[value] = f"torch.functional.{name}"
    for name, value in _callables(Tensor).items():
        if _is_overridden(name, value):
            overridable.setdefault(Tensor, []).append(value)
            _name(names, value, "torch.Tensor", name)
    return overridable, names


def _name(names: dict[Callable[..., Any], str], function: Any, space: str, name: str) -> None:
    """Enter the name of a function into `names`: its own name in the first namespace that has it, if it has several."""
    known = names.get(function)
    is_own = known is not None and known.rpartition(".")[0] == space and name == getattr(function, "__name__", None)
    is_private = known is not None and known.rpartition(".")[2].startswith("_") and not name.startswith("_")
    if known is None or is_own or is_private:
        names[function] = f"{space}.{name}"


def get_overridable_functions() -> dict[Any, list[Callable[..., Any]]]:
    """Return {module or class: list of its functions that `__torch_function__` receives}.

    >>> import cygrad
    >>> cygrad.add in cygrad.overrides.get_overridable_functions()[cygrad]
    True
    """
    ignored = get_ignored_functions()
    found = _get_overridable_functions()[0]
    return {
        space: [function for function in functions if function not in ignored] for space, functions in found.items()
    }


@cache
def get_ignored_functions() -> set[Callable[..., Any]]:
    """Return the public functions that `__torch_function__` never receives.

    >>> import cygrad
    >>> cygrad.is_tensor in cygrad.overrides.get_ignored_functions()
    True
    """
    names = _get_overridable_functions()[1]
    found = {
        value for title in _SPACES for name, value in _callables(_space(title)).items() if not name.startswith("_")
    }
    creating = {attrgetter(name)(cygrad) for name in _CREATING}
    return creating | {value for value in found | set(_callables(Tensor).values()) if value not in names}


def get_default_nowrap_functions() -> set[Callable[..., Any]]:
    """Return the getters whose results `Tensor.__torch_function__` leaves as they are: of `grad` and `_base`.

    >>> import cygrad
    >>> from cygrad.overrides import get_default_nowrap_functions
    >>> cygrad.Tensor.grad.__get__ in get_default_nowrap_functions()
    True
    """
    return {Tensor._base.__get__, Tensor.grad.__get__}


def get_testing_overrides() -> dict[Callable[..., Any], Callable[..., Any]]:
    """Return {overridable function: a function with the same arguments that returns -1}.

    >>> import cygrad
    >>> cygrad.overrides.get_testing_overrides()[cygrad.add](1, 2)
    -1
    """
    ignored = get_ignored_functions()
    return {function: _testing(function) for function in _get_overridable_functions()[1] if function not in ignored}


def _testing(function: Callable[..., Any]) -> Callable[..., Any]:
    def override(*args: Any, **kwargs: Any) -> int:
        if signature is not None:
            signature.bind(*args, **kwargs)
        return -1

    try:
        signature: inspect.Signature | None = inspect.signature(function)
    except ValueError:  # a compiled method that does not state one
        signature = None
    else:
        override.__signature__ = signature  # type: ignore[attr-defined]
    return override


def _attribute_of(f: Any) -> str | None:
    """Return the name of the function that reads, sets or deletes an attribute of tensors; None for others."""
    owner = getattr(f, "__self__", None)
    if getattr(f, "__name__", "") not in ("__get__", "__set__", "__delete__") or not hasattr(type(owner), "__get__"):
        return None
    known = (name for name, value in vars(cygrad.Tensor).items() if owner in (value, getattr(value, "plain", None)))
    name = getattr(owner, "__name__", None) or next(known, None)
    return None if name is None else f"torch.Tensor.{name}.{f.__name__}"


def resolve_name(f: Callable[..., Any]) -> str | None:
    """Return the public name of a function that `__torch_function__` received; None if it is unknown.

    >>> import cygrad
    >>> cygrad.overrides.resolve_name(cygrad.nn.functional.relu)
    'torch.nn.functional.relu'
    """
    from cygrad.ops import OpOverload, OpOverloadPacket  # which imports the package

    if isinstance(f, (OpOverload, OpOverloadPacket)):
        return str(f)
    attribute = _attribute_of(f)
    if attribute is not None:
        return attribute
    try:
        return _get_overridable_functions()[1].get(f)
    except TypeError:  # not hashable
        return None


def is_tensor_method_or_property(func: Callable[..., Any]) -> bool:
    """Whether a function is a method of Tensor, or the getter of one of its attributes.

    >>> import cygrad
    >>> is_method = cygrad.overrides.is_tensor_method_or_property
    >>> is_method(cygrad.Tensor.view), is_method(cygrad.stack)
    (True, False)
    """
    return getattr(func, "__name__", None) == "__get__" or func in _methods()


@cache
def _methods() -> frozenset[Callable[..., Any]]:
    return frozenset(_callables(Tensor).values())
