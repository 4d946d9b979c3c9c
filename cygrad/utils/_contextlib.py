"""Context managers that also decorate functions, for libraries that derive their own from PyTorch's."""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable
from typing import Any

__all__ = ["_DecoratorContextManager", "_NoParamDecoratorContextManager", "context_decorator"]


def context_decorator(ctx: Any, func: Any) -> Any:
    """Wrap a function so that each call runs in a context: `ctx`, or what `ctx()` returns. A generator function runs
    in it whenever it is resumed. Classes are not wrapped.
    """
    if inspect.isclass(func):
        raise RuntimeError(
            f"Cannot decorate classes; it is ambiguous whether or not only the constructor or all methods should have "
            f"the context manager applied; additionally, decorating a class at definition-site will prevent use of the "
            f"identifier as a conventional type.  To specify which methods to decorate, decorate each of them "
            f"individually: {func}"
        )
    factory = (lambda: ctx) if hasattr(ctx, "__enter__") else ctx
    if inspect.isgeneratorfunction(func):
        return _of_generator(factory, func)

    @functools.wraps(func)
    def in_context(*args: Any, **kwargs: Any) -> Any:
        with factory():
            return func(*args, **kwargs)

    return in_context


def _of_generator(factory: Callable[[], Any], func: Callable) -> Callable:
    @functools.wraps(func)
    def resumed_in_context(*args: Any, **kwargs: Any) -> Any:
        generator = func(*args, **kwargs)
        send, value = generator.send, None
        while True:
            try:
                with factory():
                    result = send(value)
            except StopIteration as end:
                return end.value
            try:
                send, value = generator.send, (yield result)
            except GeneratorExit:
                with factory():
                    generator.close()
                raise
            except BaseException:
                send, value = generator.throw, sys.exc_info()[1]

    return resumed_in_context


class _DecoratorContextManager:
    """Base of context managers that also decorate: a subclass defines `__enter__` and `__exit__`.

    >>> class Loud(_DecoratorContextManager):
    ...     def __enter__(self):
    ...         print("begin")
    ...     def __exit__(self, *error):
    ...         print("end")
    >>> @Loud()
    ... def work():
    ...     print("work")
    >>> work()
    begin
    work
    end
    """

    def __call__(self, orig_func: Any) -> Any:
        return context_decorator(self.clone, orig_func)

    def __enter__(self) -> Any:
        raise NotImplementedError

    def __exit__(self, *error: Any) -> Any:
        raise NotImplementedError

    def clone(self) -> Any:
        """Return a fresh instance, for one call of a decorated function."""
        return type(self)()


class _NoParamDecoratorContextManager(_DecoratorContextManager):
    """The same for subclasses without arguments: `@Subclass` is equivalent to `@Subclass()`."""

    def __new__(cls, orig_func: Any = None) -> Any:
        return super().__new__(cls) if orig_func is None else cls()(orig_func)
