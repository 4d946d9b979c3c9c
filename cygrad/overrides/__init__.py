"""Support for code that lets classes and modes override its functions by `__torch_function__`."""

from collections.abc import Callable, Iterable
from functools import wraps
from typing import Any

from cygrad._core.graph.opdef import has_modes
from cygrad._core.graph.tensor import Tensor
from cygrad._core.registry import torch_function
from cygrad.overrides._functions import (
    _get_overridable_functions as _get_overridable_functions,
)
from cygrad.overrides._functions import (
    get_default_nowrap_functions,
    get_ignored_functions,
    get_overridable_functions,
    get_testing_overrides,
    is_tensor_method_or_property,
    resolve_name,
)
from cygrad.overrides._modes import (
    BaseTorchFunctionMode,
    TorchFunctionMode,
    enable_reentrant_dispatch,
)
from cygrad.overrides._modes import _get_current_function_mode as _get_current_function_mode
from cygrad.overrides._modes import _get_current_function_mode_stack as _get_current_function_mode_stack
from cygrad.overrides._modes import _len_torch_function_stack as _len_torch_function_stack
from cygrad.overrides._modes import _pop_mode as _pop_mode
from cygrad.overrides._modes import _pop_mode_temporarily as _pop_mode_temporarily
from cygrad.overrides._modes import _push_mode as _push_mode

__all__ = [
    "BaseTorchFunctionMode",
    "TorchFunctionMode",
    "enable_reentrant_dispatch",
    "get_default_nowrap_functions",
    "get_ignored_functions",
    "get_overridable_functions",
    "get_testing_overrides",
    "handle_torch_function",
    "has_torch_function",
    "has_torch_function_unary",
    "has_torch_function_variadic",
    "is_tensor_like",
    "is_tensor_method_or_property",
    "resolve_name",
    "wrap_torch_function",
]


_begin_asking = torch_function.begin_asking  # for proxies
_enable_torch_function = enable_reentrant_dispatch


def has_torch_function(relevant_args: Iterable[Any]) -> bool:
    """Whether a mode is active, or the class of one of these arguments overrides calls.

    >>> import cygrad
    >>> cygrad.overrides.has_torch_function((cygrad.ones(2), 1.0))
    False
    """
    if not isinstance(relevant_args, Iterable):
        raise TypeError(f"expected a sequence\n  relevant_args is {type(relevant_args).__name__}: put it in a tuple")
    return has_modes() or not torch_function.is_taken() and any(map(torch_function.overrides, relevant_args))


def has_torch_function_unary(tensor: Any) -> bool:
    """Return `has_torch_function((tensor,))`.

    >>> import cygrad
    >>> from cygrad.overrides import has_torch_function_unary
    >>> has_torch_function_unary(cygrad.ones(2))
    False
    """
    return has_torch_function((tensor,))


def has_torch_function_variadic(*relevant_args: Any) -> bool:
    """Return `has_torch_function(relevant_args)`.

    >>> import cygrad
    >>> from cygrad.overrides import has_torch_function_variadic
    >>> has_torch_function_variadic(cygrad.ones(2), 3)
    False
    """
    return has_torch_function(relevant_args)


def handle_torch_function(
    public_api: Callable[..., Any], relevant_args: Iterable[Any], /, *args: Any, **kwargs: Any
) -> Any:
    """Dispatch the call `public_api(*args, **kwargs)` to the innermost mode, then to the classes of `relevant_args`.

    Each class is tried once, from left to right, but a subclass before its base. Raises TypeError if every
    `__torch_function__` returns NotImplemented.

    >>> import cygrad
    >>> from cygrad.overrides import handle_torch_function, has_torch_function_unary
    >>> class Named:
    ...     @classmethod
    ...     def __torch_function__(cls, func, types, args=(), kwargs=None):
    ...         return func.__name__
    >>> def double(x):
    ...     if has_torch_function_unary(x):
    ...         return handle_torch_function(double, (x,), x)
    ...     return 2 * x
    >>> double(Named()), double(cygrad.ones(1))
    ('double', tensor([2.]))
    """
    relevant_args = list(relevant_args)
    result = torch_function.ask(public_api, relevant_args, args, kwargs)
    if result is NotImplemented:
        private = f"{public_api.__module__}.{public_api.__name__}".replace("cygrad", "torch")
        name = resolve_name(public_api) or private
        kinds = [type(value) for value in torch_function.overriders(relevant_args)]
        modes = [f" nor in mode {mode}" for mode in torch_function.function_modes.modes()[-1:]]
        raise TypeError(
            f"no implementation found for '{name}' on types that implement __torch_function__: {kinds}{''.join(modes)}"
        )
    return result


def wrap_torch_function(dispatcher: Callable[..., Iterable[Any]]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Decorator that lets the classes of the values that `dispatcher(*args, **kwargs)` returns override a function.

    >>> import cygrad
    >>> from cygrad.overrides import wrap_torch_function
    >>> @wrap_torch_function(lambda x: (x,))
    ... def double(x):
    ...     return x * 2
    >>> class Named(cygrad.Tensor):
    ...     @classmethod
    ...     def __torch_function__(cls, func, types, args=(), kwargs=None):
    ...         return func.__name__
    >>> double(cygrad.ones(2)), double(cygrad.ones(2).as_subclass(Named))
    (tensor([2., 2.]), 'double')
    """

    def decorator(function: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(function)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            relevant = tuple(dispatcher(*args, **kwargs))
            if has_torch_function(relevant):
                return handle_torch_function(wrapped, relevant, *args, **kwargs)
            return function(*args, **kwargs)

        return wrapped

    return decorator


def is_tensor_like(inp: Any) -> bool:
    """Whether `inp` is a tensor, or its class has `__torch_function__`.

    >>> import cygrad
    >>> cygrad.overrides.is_tensor_like(cygrad.ones(2)), cygrad.overrides.is_tensor_like(2)
    (True, False)
    """
    return type(inp) is Tensor or hasattr(inp, "__torch_function__")
