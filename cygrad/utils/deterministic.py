"""`fill_uninitialized_memory`: whether `empty` fills its results with NaN while deterministic algorithms are on.

So a program that reads what it has not written gives the same result each time, and shows it.
"""

import sys
from types import ModuleType

from cygrad._core.runtime import settings

__all__: list[str] = []


class _Deterministic(ModuleType):
    """The class of this module, whose setting is checked when it is set."""

    @property
    def fill_uninitialized_memory(self):
        """The setting."""
        return settings.fills_new_memory()

    @fill_uninitialized_memory.setter
    def fill_uninitialized_memory(self, mode):
        if not isinstance(mode, bool):
            raise RuntimeError(f"expected a bool, but got {type(mode).__name__}")
        settings.set_fills_new_memory(mode)


sys.modules[__name__].__class__ = _Deterministic
