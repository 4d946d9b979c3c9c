"""Engines for quantized tensors, of which cygrad has none: `engine` is "none", and nothing else can be set.

>>> import cygrad
>>> cygrad.backends.quantized.engine, cygrad.backends.quantized.supported_engines
('none', ['none'])
"""

import sys
from types import ModuleType

_ENGINES = ("none", "fbgemm", "qnnpack", "onednn", "x86")  # those of PyTorch

supported_engines = ["none"]


class _Settings(ModuleType):
    """The class of this module, whose engine is checked when it is set."""

    @property
    def engine(self):
        """The engine in use."""
        return "none"

    @engine.setter
    def engine(self, value):
        if value not in _ENGINES:
            raise RuntimeError(f"{value} is not a valid value for quantized engine")
        if value not in supported_engines:
            raise RuntimeError(f"quantized engine {value.upper()} is not supported\n  cygrad has no quantized tensors")


sys.modules[__name__].__class__ = _Settings
