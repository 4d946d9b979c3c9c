"""Functions for code that lets classes take over its calls by `__torch_function__`."""

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
    """Whether the class of one of these arguments takes over calls.

    >>> import cygrad
    >>> cygrad.overrides.has_torch_function((cygrad.ones(2), 1.0))
    False
    """
    return not torch_function.is_taken() and any(map(torch_function.overrides, relevant_args))


def has_torch_function_unary(tensor: Any) -> bool:
    """`has_torch_function((tensor,))`."""
    return has_torch_function((tensor,))


def has_torch_function_variadic(*relevant_args: Any) -> bool:
    """`has_torch_function(relevant_args)`."""
    return has_torch_function(relevant_args)


def handle_torch_function(
    public_api: Callable[..., Any], relevant_args: Iterable[Any], /, *args: Any, **kwargs: Any
) -> Any:
    """What the classes of `relevant_args` make of the call `public_api(*args, **kwargs)`.

    Each class is asked once, from left to right, but a subclass before its base. Raises TypeError if all
    `__torch_function__` give NotImplemented.

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
    """A decorator: classes of what `dispatcher` gives, called with the same arguments, take over a function."""

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
    """Whether this is a tensor, or its class has `__torch_function__`.

    >>> import cygrad
    >>> cygrad.overrides.is_tensor_like(cygrad.ones(2)), cygrad.overrides.is_tensor_like(2)
    (True, False)
    """
    return type(inp) is Tensor or hasattr(inp, "__torch_function__")
