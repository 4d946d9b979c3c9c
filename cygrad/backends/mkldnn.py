"""Intel's library of layers, which is not in use. What is set here is kept, and changes nothing."""

from contextlib import nullcontext

__all__ = ["deterministic", "enabled", "flags", "is_available", "verbose"]

enabled = True
deterministic = False


def is_available():
    """Whether it is in use: no."""
    return False


def flags(enabled=False, deterministic=False, allow_tf32=True, fp32_precision="none"):
    """A block that changes nothing."""
    return nullcontext()


def verbose(level):
    """A block that changes nothing."""
    return nullcontext()
