"""Streams and events of Intel's GPUs, which cygrad does not use."""

from cygrad.backends import _absent

__all__ = ["Event", "Stream"]

Event, Stream = (
    _absent.class_refusing(__name__, name, RuntimeError, f"Tried to instantiate dummy base class {name}")
    for name in __all__
)
