"""Accelerators besides the CPU, for programs that choose a device: there are none."""

from __future__ import annotations

from cygrad import device

__all__ = ["current_accelerator", "device_count", "is_available"]


def is_available() -> bool:
    """Whether there is an accelerator: always False.

    >>> import cygrad
    >>> cygrad.accelerator.current_accelerator().type if cygrad.accelerator.is_available() else "cpu"
    'cpu'
    """
    return False


def current_accelerator(check_available: bool = False) -> device | None:
    """Return the type of accelerator in use: always None."""
    return None


def device_count() -> int:
    """Return the number of accelerators: always 0."""
    return 0
