"""Whether PyTorch's compiler of programs is on, and what it has compiled. Here nothing is ever compiled."""

from __future__ import annotations

import os
import weakref
from typing import Any


class EnabledProxy:
    """The switch, which the environment variable PYTORCH_JIT sets first, and `enable` and `disable` change."""

    def __init__(self) -> None:
        self.enabled = os.environ.get("PYTORCH_JIT", "1").lower() not in ("0", "0v", "false", "no")

    def __bool__(self) -> bool:
        return self.enabled


_enabled = EnabledProxy()
_script_classes: weakref.WeakKeyDictionary[type, Any] = weakref.WeakKeyDictionary()
_name_to_pyclass: dict[str, type] = {}


def enable() -> None:
    """Turn the switch on, which changes nothing but its value."""
    _enabled.enabled = True


def disable() -> None:
    """Turn the switch off, which changes nothing but its value."""
    _enabled.enabled = False


def _get_script_class(python_class: type) -> Any:
    """Return the compiled form of a class: None, since there is none."""
    return _script_classes.get(python_class)


def _get_python_class(qualified_name: str) -> type | None:
    """Return the class that was compiled under a name: None, since none was."""
    return _name_to_pyclass.get(qualified_name)


def _clear_class_state() -> None:
    """Forget the compiled classes."""
    _script_classes.clear()
    _name_to_pyclass.clear()
