"""Context managers that also decorate functions, for libraries that derive their own from PyTorch's."""

from __future__ import annotations

from typing import Any

from cygrad._core.runtime.in_contexts import in_context

__all__ = ["_DecoratorContextManager", "_NoParamDecoratorContextManager", "context_decorator"]


def context_decorator(ctx: Any, func: Any) -> Any:
    """Wrap a function so that each call runs in a context: `ctx`, or what `ctx()` returns. A generator function runs
    in it whenever it is resumed. Classes are not wrapped.
    """
    return in_context((lambda: ctx) if hasattr(ctx, "__enter__") else ctx, func)


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
