"""The profiler of Apple's GPUs, of which there are none."""

from contextlib import contextmanager

from cygrad.backends import _absent

__all__ = ["is_capturing_metal", "is_metal_capture_enabled", "metal_capture", "profile", "start", "stop"]

_HOOKS = {"start": "profilerStartTrace", "stop": "profilerStopTrace"}
globals().update(_absent.refusing(__name__, _absent.without_backend("MPS", _HOOKS)))
globals().update(_absent.answering(__name__, dict.fromkeys(("is_capturing_metal", "is_metal_capture_enabled"), False)))


@contextmanager
def profile(mode="interval", wait_until_completed=False):
    """A context that is profiled. Raises RuntimeError when it is entered."""
    globals()["start"](mode, wait_until_completed)
    yield


@contextmanager
def metal_capture(fname):
    """A context whose Metal commands are captured in a file. Raises RuntimeError when it is entered."""
    globals()["start"]()
    yield
