"""The CPU as a device, for programs that ask `get_device_module` what a device can do."""

import os
import platform
from typing import Any

from cygrad.cpu import amp

__all__ = [
    "Event",
    "Stream",
    "StreamContext",
    "amp",
    "current_device",
    "current_stream",
    "device_count",
    "get_capabilities",
    "is_available",
    "is_initialized",
    "set_device",
    "stream",
    "synchronize",
]


def is_available():
    """Whether there is a CPU: always True.

    >>> import cygrad
    >>> cygrad.cpu.is_available()
    True
    """
    return True


def is_initialized():
    """Whether the CPU is in use: always True.

    >>> import cygrad
    >>> cygrad.cpu.is_initialized()
    True
    """
    return True


def device_count():
    """Return the number of CPUs as devices: always 1, whatever its processors.

    >>> import cygrad
    >>> cygrad.cpu.device_count()
    1
    """
    return 1


def current_device():
    """Return the current device: always "cpu".

    >>> import cygrad
    >>> cygrad.get_device_module("cpu").current_device()
    'cpu'
    """
    return "cpu"


def set_device(device):
    """Do nothing: there is one CPU.

    >>> import cygrad
    >>> cygrad.cpu.set_device("cpu")
    """


def synchronize(device=None):
    """Do nothing: work on the CPU is done when a call returns.

    >>> import cygrad
    >>> cygrad.cpu.synchronize()
    """


class Stream:
    """A stream of the CPU, on which there is nothing to wait for.

    >>> import cygrad
    >>> stream, event = cygrad.cpu.Stream(), cygrad.cpu.Event()
    >>> stream.wait_event(event)
    >>> stream.wait_stream(cygrad.cpu.current_stream())
    >>> stream.record_event()
    """

    def __init__(self, priority=-1):
        pass

    def wait_stream(self, stream):
        """Do nothing."""

    def record_event(self):
        """Do nothing."""

    def wait_event(self, event):
        """Do nothing."""


class Event:
    """A marker on the CPU, which is always past.

    >>> import cygrad
    >>> event = cygrad.cpu.Event()
    >>> event.record()
    >>> event.query()
    True
    >>> event.wait(), event.synchronize()
    (None, None)
    """

    def query(self):
        """Whether all work before the event has finished: always True."""
        return True

    def record(self, stream=None):
        """Do nothing."""

    def synchronize(self):
        """Do nothing."""

    def wait(self, stream=None):
        """Do nothing."""


_current = Stream()


def current_stream(device=None):
    """Return the current stream of the CPU.

    >>> import cygrad
    >>> isinstance(cygrad.cpu.current_stream(), cygrad.cpu.Stream)
    True
    """
    return _current


class StreamContext:
    """A context in which another stream of the CPU is current.

    >>> import cygrad
    >>> with cygrad.cpu.StreamContext(cygrad.cpu.Stream()):
    ...     cygrad.ones(2) + 1
    tensor([2., 2.])
    """

    def __init__(self, stream):
        self.stream = stream
        self._former: Any = None

    def __enter__(self):
        global _current
        if self.stream is not None:
            self._former, _current = _current, self.stream

    def __exit__(self, *error):
        global _current
        if self.stream is not None:
            _current = self._former


def stream(stream):
    """Return a context in which `stream` is current.

    >>> import cygrad
    >>> with cygrad.cpu.stream(cygrad.cpu.Stream()):
    ...     cygrad.ones(2) + 1
    tensor([2., 2.])
    """
    return StreamContext(stream)


def get_capabilities():
    """Return what is known of the processor: its architecture, and how many it has.

    >>> import cygrad
    >>> sorted(cygrad.cpu.get_capabilities())
    ['architecture', 'num_logical_cores']
    """
    return {"architecture": platform.machine(), "num_logical_cores": os.cpu_count()}
