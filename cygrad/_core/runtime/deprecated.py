"""Attributes of the package that only old programs read, with PyTorch's warnings."""

from __future__ import annotations

import sys
from operator import attrgetter
from typing import Any

from cygrad._core.errors.sites import warn

_FUNCTIONS = {
    "has_cuda": "backends.cuda.is_built",
    "has_cudnn": "backends.cudnn.is_available",
    "has_mkldnn": "backends.mkldnn.is_available",
    "has_mps": "backends.mps.is_built",
}
NAMES = frozenset({*_FUNCTIONS, "set_vital"})


def _do_nothing(*args: Any) -> None:
    """In place of `set_vital`, which PyTorch has given up."""


def read(name: str) -> Any:
    """Return the value of one of these attributes, with a warning."""
    if name == "set_vital":
        warn("'set_vital' is deprecated, please do not call")
        return _do_nothing
    function = _FUNCTIONS[name]
    warn(f"'{name}' is deprecated, please use 'torch.{function}()'")
    return attrgetter(function)(sys.modules["cygrad"])()
