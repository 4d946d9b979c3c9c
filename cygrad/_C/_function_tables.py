"""The tables in which PyTorch's compiled part keeps the functions of a module, under prefixed names.

Pickles name functions by these tables. Those of a module's own are modules here, too: `_fft`, `_linalg`, ...
"""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import cygrad


class Functions:
    """The functions of a module, by their names with a prefix."""

    def __init__(self, module: ModuleType, prefix: str = "") -> None:
        self._module, self._prefix = module, prefix

    def __getattr__(self, name: str) -> Any:
        function = getattr(self._module, name.removeprefix(self._prefix), None) if self._has(name) else None
        if not callable(function):
            raise AttributeError(f"there is no function {name!r} in {self._module.__name__}", name=name)
        return function

    @classmethod
    def of_module(cls, module: ModuleType, prefix: str) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
        """Return `__getattr__` and `__dir__` for a module that shows the functions of `module`."""
        functions = cls(module, prefix)
        return functions.__getattr__, functions.__dir__

    def _has(self, name: str) -> bool:
        return name.startswith(self._prefix) and not name.startswith("__")

    def __dir__(self) -> list[str]:
        names = dir(self._module)
        return [self._prefix + name for name in names if callable(getattr(self._module, name, None))]


class _ByClass(type):
    """Lets the class of a table answer for its functions, too: pickles ask it for them."""

    def __getattr__(cls, name: str) -> Any:
        return getattr(_VariableFunctions, name)


class _VariableFunctionsClass(Functions, metaclass=_ByClass):
    """The functions of the package. A pickle of `torch.tanh` says: attribute `tanh` of this class."""


_VariableFunctions = _VariableFunctionsClass(cygrad)
