"""PyTorch's fast path of attention in evaluation. Here one way serves all: what is set is kept, and changes nothing."""

__all__ = ["get_fastpath_enabled", "set_fastpath_enabled"]

_enabled = True


def get_fastpath_enabled():
    """What was set, at first True."""
    return _enabled


def set_fastpath_enabled(value):
    """Set it."""
    global _enabled
    _enabled = value
