"""The profiler of Apple's GPUs, which cygrad does not use."""

from contextlib import contextmanager

from cygrad.backends import _absent

__all__ = ["is_capturing_metal", "is_metal_capture_enabled", "metal_capture", "profile", "start", "stop"]

_REFUSED = _absent.refusing(
    __name__, _absent.without_backend("MPS", {"start": "profilerStartTrace", "stop": "profilerStopTrace"})
)
start, stop = _REFUSED["start"], _REFUSED["stop"]


def is_metal_capture_enabled():
    """Whether Metal commands can be captured: always False.

    >>> import cygrad
    >>> cygrad.mps.profiler.is_metal_capture_enabled()
    False
    """
    return False


def is_capturing_metal():
    """Whether Metal commands are being captured: always False.

    >>> import cygrad
    >>> cygrad.mps.profiler.is_capturing_metal()
    False
    """
    return False


@contextmanager
def profile(mode="interval", wait_until_completed=False):
    """A context that is profiled. Raises RuntimeError when it is entered.

    >>> import cygrad
    >>> with cygrad.mps.profiler.profile():
    ...     pass
    Traceback (most recent call last):
        ...
    RuntimeError: Cannot execute profilerStartTrace() without MPS backend...
    """
    start(mode, wait_until_completed)
    yield


@contextmanager
def metal_capture(fname):
    """A context whose Metal commands are captured in a file. Raises RuntimeError when it is entered.

    >>> import cygrad
    >>> with cygrad.mps.profiler.metal_capture("trace"):
    ...     pass
    Traceback (most recent call last):
        ...
    RuntimeError: Cannot execute profilerStartTrace() without MPS backend...
    """
    start()
    yield
