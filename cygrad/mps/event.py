"""Events of Apple's GPUs, which cygrad does not use."""

from cygrad.backends import _absent

__all__ = ["Event"]

Event = _absent.class_refusing(
    "cygrad.mps.event", "Event", RuntimeError, "Cannot execute acquireEvent() without MPS backend."
)
