"""Support for code that lets classes override its functions by `__torch_function__`."""

from collections.abc import Callable, Iterable
from functools import wraps
from typing import Any

from cygrad._core.graph.tensor import Tensor
from cygrad._core.registry import torch_function

__all__ = [
    "handle_torch_function",
    "has_torch_function",
    "has_torch_function_unary",
    "has_torch_function_variadic",
    "is_tensor_like",
    "wrap_torch_function",
]


def has_torch_function(relevant_args: Iterable[Any]) -> bool:
    """Whether the class of one of these arguments overrides calls.

    >>> import cygrad
    >>> cygrad.overrides.has_torch_function((cygrad.ones(2), 1.0))
    False
    """
    return not torch_function.is_taken() and any(map(torch_function.overrides, relevant_args))


def has_torch_function_unary(tensor: Any) -> bool:
    """Return `has_torch_function((tensor,))`."""
    return has_torch_function((tensor,))


def has_torch_function_variadic(*relevant_args: Any) -> bool:
    """Return `has_torch_function(relevant_args)`."""
    return has_torch_function(relevant_args)


def handle_torch_function(
    public_api: Callable[..., Any], relevant_args: Iterable[Any], /, *args: Any, **kwargs: Any
) -> Any:
    """Dispatch the call `public_api(*args, **kwargs)` to the classes of `relevant_args`.

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
    return torch_function.call(public_api, args, kwargs, relevant_args)


def wrap_torch_function(dispatcher: Callable[..., Iterable[Any]]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Decorator that lets the classes of the values that `dispatcher(*args, **kwargs)` returns override a function."""

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
