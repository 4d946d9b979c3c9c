"""Streams and events of any device: `cygrad.Stream` and `cygrad.Event`.

On the CPU all work is done when a call returns. For a GPU they make the objects of `cygrad.cuda`, whose classes are
derived from these.
"""

from __future__ import annotations

from typing import Any

import cygrad
from cygrad._core.types.device import check_device
from cygrad._core.types.device import device as device_of

_NO_EVENTS = "backend doesn't support events."
_NUMBERS = {"cpu": 0, "cuda": 1, "meta": 14}  # PyTorch's enumeration of device types


class _OfDevice(type):
    """The metaclass of both: calling either makes an object for the device that is asked for."""

    def __call__(cls, *args: Any, **named: Any) -> Any:
        if cls.__module__ != "cygrad":  # a class of one kind of device
            return super().__call__(*args, **named)
        device = device_of(args[0] if args else named.get("device") or "cpu")
        if device.type != "cuda":
            return super().__call__(*args, **named)
        flags = {name: value for name, value in named.items() if name != "device"}
        of_gpu: Any = getattr(cygrad.cuda, cls.__name__)
        check_device(device)
        with cygrad.cuda.device(device):  # where the object is made
            return of_gpu(**flags)


class Stream(metaclass=_OfDevice):
    """A queue of work on a device; on the CPU there is one, whose work is done when a call returns.

    >>> import cygrad
    >>> stream = cygrad.Stream("cpu")
    >>> stream, stream.query()
    (torch.Stream device_type=cpu, device_index=-1, stream_id=0, True)
    """

    __module__ = "cygrad"
    device_index: int
    stream_id = 0

    def __init__(self, device: Any = None, *, priority: int = 0) -> None:
        self._device = _without_streams(device)
        self.device_index = -1 if self._device.index is None else self._device.index

    @property
    def device(self) -> Any:
        """The device."""
        return self._device

    @property
    def device_type(self) -> int:
        """The number of the device's type in PyTorch."""
        return _NUMBERS[self.device.type]

    def query(self) -> bool:
        """Whether all work in the stream has finished.

        >>> import cygrad
        >>> cygrad.Stream("cpu").query()
        True
        """
        return True

    def synchronize(self) -> None:
        """Wait until all work in the stream has finished.

        >>> import cygrad
        >>> cygrad.Stream("cpu").synchronize()
        """

    def record_event(self, event: Any = None) -> Any:
        """Record an event at this point of the stream. Raises RuntimeError on the CPU, which has none.

        >>> import cygrad
        >>> cygrad.Stream("cpu").record_event()
        Traceback (most recent call last):
            ...
        RuntimeError: cpu backend doesn't support events.
        """
        raise RuntimeError(f"{self.device.type} {_NO_EVENTS}")

    def wait_event(self, event: Any) -> None:
        """Make future work in this stream wait for an event.

        >>> import cygrad
        >>> cygrad.Stream("cpu").wait_event(cygrad.Event("cpu"))
        """

    def wait_stream(self, stream: Any) -> None:
        """Make future work in this stream wait for the current work of another. Raises RuntimeError on the CPU.

        >>> import cygrad
        >>> cygrad.Stream("cpu").wait_stream(cygrad.Stream("cpu"))
        Traceback (most recent call last):
            ...
        RuntimeError: cpu backend doesn't support events.
        """
        self.wait_event(stream.record_event())

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *error: Any) -> None:
        """The stream of this thread stays the only one."""

    def __eq__(self, other: Any) -> bool:
        return isinstance(other, Stream) and repr(self) == repr(other)

    def __hash__(self) -> int:
        return hash((self.device, self.stream_id))

    def __repr__(self) -> str:
        return (
            f"torch.Stream device_type={self.device.type}, device_index={self.device_index}, stream_id={self.stream_id}"
        )


class Event(metaclass=_OfDevice):
    """A marker in a stream; on the CPU it cannot be recorded, and all work before it has finished.

    >>> import cygrad
    >>> cygrad.Event("cpu").query()
    True
    """

    __module__ = "cygrad"
    event_id = 0

    def __init__(
        self, device: Any = None, *, enable_timing: bool = False, blocking: bool = False, interprocess: bool = False
    ) -> None:
        self._device, self._timing = _without_streams(device), enable_timing

    @property
    def device(self) -> Any:
        """The device."""
        return self._device

    def record(self, stream: Any = None) -> None:
        """Record the event in a stream. Raises RuntimeError on the CPU.

        >>> import cygrad
        >>> cygrad.Event("cpu").record()
        Traceback (most recent call last):
            ...
        RuntimeError: cpu backend doesn't support events.
        """
        raise RuntimeError(f"{self.device.type} {_NO_EVENTS}")

    def wait(self, stream: Any = None) -> None:
        """Make a stream wait for the event.

        >>> import cygrad
        >>> cygrad.Event("cpu").wait()
        """

    def query(self) -> bool:
        """Whether all work before the event has finished.

        >>> import cygrad
        >>> cygrad.Event("cpu").query()
        True
        """
        return True

    def synchronize(self) -> None:
        """Wait until all work before the event has finished.

        >>> import cygrad
        >>> cygrad.Event("cpu").synchronize()
        """

    def elapsed_time(self, end_event: Any) -> float:
        """Return the milliseconds to another event. Raises unless both have `enable_timing` and were recorded.

        >>> import cygrad
        >>> event = cygrad.Event("cpu")
        >>> event.elapsed_time(event)
        Traceback (most recent call last):
            ...
        ValueError: Both events must be created with argument 'enable_timing=True'.
        """
        if not (self._timing and end_event._timing):
            raise ValueError("Both events must be created with argument 'enable_timing=True'.")
        raise ValueError("Both events must be recorded before calculating elapsed time.")

    def __repr__(self) -> str:
        index = -1 if self.device.index is None else self.device.index
        return (
            f"torch.Event device_type={self.device.type}, device_index={index}, event_flag={int(self._timing)}, "
            f"event_id={self.event_id}"
        )


def _without_streams(device: Any) -> Any:
    found = device_of("cpu" if device is None else device)
    if found.type not in ("cpu", "meta"):
        check_device(found, moving=True)  # which raises
    return found
