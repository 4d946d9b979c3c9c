"""Whether programs are to be compiled, which programs switch: they run as plain Python in any case."""

import os


class EnabledProxy:
    """The switch, which the environment variable `PYTORCH_JIT` sets first."""

    def __init__(self):
        self.enabled = os.environ.get("PYTORCH_JIT", "1") not in ("0", "")

    def __bool__(self):
        return self.enabled


_enabled = EnabledProxy()


def disable():
    """Switch compiling off."""
    _enabled.enabled = False


def enable():
    """Switch compiling on."""
    _enabled.enabled = True


def _clear_class_state():
    """Forget the classes that have been compiled: none ever are."""
