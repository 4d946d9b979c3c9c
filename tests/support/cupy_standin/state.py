"""Global state of the stand-in: devices, stream captures, synchronizations, transfers, launches."""

import threading
from contextlib import contextmanager

DEVICES = 2
on_synchronize = []  # called with the name of whatever has synchronized
watchers = []
local = threading.local()


class CUDARuntimeError(RuntimeError):
    """`cupy.cuda.runtime.CUDARuntimeError`."""

    TEXTS = {700: "cudaErrorIllegalAddress: an illegal memory access was encountered"}

    def __init__(self, status):
        super().__init__(self.TEXTS[status])
        self.status = status


def cuda_error(name, text):
    """Create a CUDA error identified by name instead of by number."""
    error = CUDARuntimeError.__new__(CUDARuntimeError)
    RuntimeError.__init__(error, f"{name}: {text}")
    error.status = name
    return error


class Seen:
    """The events of a `with watch()` block: names of synchronizations and launches, (direction, bytes) of transfers."""

    def __init__(self):
        self.synchronizations = []
        self.transfers = []
        self.launches = []


@contextmanager
def watch():
    """Record the events in the block.

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
    """Record a synchronization. Everything that makes the host wait for the device must call this."""
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
    """Record a transfer; `direction` is "to device" or "to host"."""
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
        raise cuda_error("cudaErrorInvalidDevice", "invalid device ordinal")
    local.device = index


# --- Stream order ------------------------------------------------------------------------------
#
# Each stream counts its work items. `known[stream]` is the count of every other stream that it has waited for.

counts: dict = {}
known: dict = {}
non_blocking: set = set()
host: dict = {}  # known to every stream, because the host has waited for it


def key():
    """The current stream, as its device and handle."""
    return current_device(), getattr(stream(), "ptr", 0)


def tick(own):
    counts[own] = counts.get(own, 0) + 1
    return own, counts[own]


def waited(own, seen):
    """Record that stream `own` (None: the host) has waited for everything that `seen` covers."""
    into = host if own is None else known.setdefault(own, {})
    for other, count in seen.items():
        into[other] = max(into.get(other, 0), count)


def made_now():
    """The time stamp for new memory: None in a capture, where nothing has been executed yet."""
    now = tick(key())
    return None if capturing() is not None else now


def seen_by(own):
    """A snapshot of all work submitted to the stream so far, and of all work that precedes it."""
    return {**known.get(own, {}), own: counts.get(own, 0)}


def is_after(own, made):
    if made is None:
        return True
    other, count = made
    if other == own or (other[0] == own[0] and 0 in (own[1], other[1]) and not {own, other} & non_blocking):
        return True  # the default stream and other blocking streams wait for each other
    return max(known.get(own, {}).get(other, 0), host.get(other, 0)) >= count


def check_order(name, memories):
    """Check that the current stream has waited for the streams that produced the memory it uses."""
    own = key()
    now = tick(own)
    if capturing() is not None:  # nothing runs, and completed work is waited for before a launch
        return
    for mem in memories:
        made = getattr(mem, "_made", None)
        if made is not None and not is_after(own, made):
            raise AssertionError(f"{name} in stream {own} uses what stream {made[0]} makes, without waiting for it")
        mem._used = now
        if made is None:
            mem._made = now


# --- Launches ----------------------------------------------------------------------------------


def stream():
    """The current stream, or None for the null stream."""
    return getattr(local, "streams", {}).get(current_device())


def capturing():
    """The capture that the current stream takes part in, or None."""
    return getattr(stream(), "_capture", None)


def launch(name, work, memories):
    """Do `work` now or, in a capture, when the graph is launched. `memories` are the blocks it accesses."""
    for seen in watchers:
        seen.launches.append(name)
    if name != "copy":  # a copy between devices waits for both
        check_order(name, memories)
    capture = capturing()
    if capture is None:
        return work()
    capture.add(name, work, memories)
    return None
