"""What the stand-in keeps account of: devices, streams' captures, synchronisations, transfers, launches."""

import threading
from contextlib import contextmanager

DEVICES = 2
on_synchronize = []  # called with what has synchronised, a text
watchers = []
local = threading.local()


class CUDARuntimeError(RuntimeError):
    """`cupy.cuda.runtime.CUDARuntimeError`."""

    def __init__(self, status, text):
        super().__init__(f"{status}: {text}")
        self.status = status


class Seen:
    """What happened in a `with watch()` block: texts of synchronisations and launches, (direction, bytes) pairs."""

    def __init__(self):
        self.synchronizations = []
        self.transfers = []
        self.launches = []


@contextmanager
def watch():
    """Notes what happens in the block.

    with watch() as seen:
        ...
    assert not seen.synchronizations
    """
    seen = Seen()
    watchers.append(seen)
    try:
        yield seen
    finally:
        watchers.remove(seen)


def synchronize(what):
    """To be called by whatever lets the host wait for the device."""
    if capturing() is not None:
        raise RuntimeError(f"the current stream is capturing, so synchronous API calls are disallowed ({what})")
    for seen in watchers:
        seen.synchronizations.append(what)
    for callback in list(on_synchronize):
        callback(what)
    if not getattr(local, "may_synchronize", True):
        raise DeviceSynchronized()


class DeviceSynchronized(RuntimeError):
    """`cupyx.DeviceSynchronized`."""

    def __init__(self, message="Device synchronization was detected while disallowed."):
        super().__init__(message)


def transfer(direction, nbytes):
    """`direction` is "to device" or "to host"."""
    if capturing() is not None:
        short = {"to device": "H2D", "to host": "D2H"}[direction]
        raise RuntimeError(f"the current stream is capturing, so {short} transfers are disallowed")
    for seen in watchers:
        seen.transfers.append((direction, nbytes))


# --- Devices -----------------------------------------------------------------------------------


def current_device():
    return getattr(local, "device", 0)


def set_device(index):
    if not 0 <= index < DEVICES:
        raise CUDARuntimeError("cudaErrorInvalidDevice", "invalid device ordinal")
    local.device = index


# --- Launches ----------------------------------------------------------------------------------


def stream():
    """The current stream, or None where it is the null stream."""
    return getattr(local, "streams", {}).get(current_device())


def capturing():
    """The capture that the current stream is in, or None."""
    return getattr(stream(), "_capture", None)


def launch(name, work, memories):
    """Does `work` at once or, in a capture, when its graph is launched. `memories` are those it touches."""
    for seen in watchers:
        seen.launches.append(name)
    capture = capturing()
    if capture is None:
        return work()
    capture.add(name, work, memories)
    return None
