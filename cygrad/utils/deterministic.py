"""`fill_uninitialized_memory`: whether `empty` fills its results with NaN while deterministic algorithms are on.

cygrad keeps the setting for programs that read it. Memory of new tensors is not filled: `empty` returns what was there.
"""

import sys
from types import ModuleType

__all__: list[str] = []

_kept = {"fill_uninitialized_memory": True}


class _Deterministic(ModuleType):
    """The class of this module, whose setting is checked when it is set."""

    @property
    def fill_uninitialized_memory(self):
        """The setting."""
        return _kept["fill_uninitialized_memory"]

    @fill_uninitialized_memory.setter
    def fill_uninitialized_memory(self, mode):
        if not isinstance(mode, bool):
            raise TypeError(f"fill_uninitialized_memory must be a bool, not {type(mode).__name__}")
        _kept["fill_uninitialized_memory"] = mode


sys.modules[__name__].__class__ = _Deterministic
