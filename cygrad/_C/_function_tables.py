"""The tables in which PyTorch's compiled part keeps the functions of a module, under prefixed names."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import cygrad


class _Functions:
    """The functions of a module, by their names with a prefix."""

    def __init__(self, module: ModuleType, prefix: str = "") -> None:
        self._module, self._prefix = module, prefix

    def __getattr__(self, name: str) -> Any:
        function = getattr(self._module, name.removeprefix(self._prefix), None) if self._has(name) else None
        if not callable(function):
            raise AttributeError(f"there is no function {name!r} in {self._module.__name__}", name=name)
        return function

    def _has(self, name: str) -> bool:
        return name.startswith(self._prefix) and not name.startswith("__")

    def __dir__(self) -> list[str]:
        names = dir(self._module)
        return [self._prefix + name for name in names if callable(getattr(self._module, name, None))]


_VariableFunctions = _Functions(cygrad)
_fft = _Functions(cygrad.fft, "fft_")
_linalg = _Functions(cygrad.linalg, "linalg_")
_special = _Functions(cygrad.special, "special_")
