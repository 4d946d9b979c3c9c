"""`HigherOrderOperator`: base class of ops that take functions."""

from collections.abc import Callable
from typing import Any

import cygrad

_ORDER = ("CompositeExplicitAutograd", "CompositeImplicitAutograd", "Autograd", "AutogradCPU", "CPU", "CUDA")


class HigherOrderOperator:
    """An op that takes functions: `torch.ops.higher_order.<name>`. A subclass checks the arguments in `__call__`.

    `py_impl(key)` is a decorator that registers what `super().__call__` runs.

    >>> from cygrad._ops import HigherOrderOperator
    >>> class Twice(HigherOrderOperator):
    ...     def __call__(self, f, x):
    ...         return super().__call__(f, x)
    >>> twice = Twice("docs_twice")
    >>> @twice.py_impl("CPU")
    ... def on_cpu(f, x):
    ...     return f(f(x))
    >>> twice.fallthrough("Autograd")
    >>> twice.name()
    'docs_twice'
    """

    namespace = "higher_order"

    def __init__(self, name: str, *, cacheable: bool = False) -> None:
        self._name = self.__name__ = name
        self._cacheable = cacheable
        self.py_kernels: dict[str, Callable[..., Any]] = {}
        setattr(cygrad.ops.higher_order, name, self)

    def py_impl(self, k: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        """Decorator that registers a function for a dispatch key, a mode or a class."""

        def register(function: Callable[..., Any]) -> Callable[..., Any]:
            self.py_kernels[str(getattr(k, "name", k)).rpartition(".")[2]] = function
            return function

        return register

    def fallthrough(self, dispatch_key: Any) -> None:
        """Leave calls to the functions of other dispatch keys."""

    def name(self) -> str:
        """Return the name."""
        return self._name

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        for key in _ORDER:
            if key in self.py_kernels:
                return self.py_kernels[key](*args, **kwargs)
        known = ", ".join(self.py_kernels) or "none"
        raise NotImplementedError(
            f"could not find kernel for HigherOrderOperator {self._name} at dispatch key CPU (resolved from none)\n"
            f"  it has functions for: {known}"
        )

    def __str__(self) -> str:
        return self._name

    __repr__ = __str__
