"""Stubs for distributed training, which cygrad does not support, for programs that check for it."""

from __future__ import annotations

from typing import Any

__all__ = ["destroy_process_group", "init_process_group", "is_available", "is_initialized", "is_torchelastic_launched"]


def is_available() -> bool:
    """Whether distributed training is available: always False. Programs that check this run in one process.

    >>> import cygrad
    >>> dist = cygrad.distributed
    >>> dist.get_rank() if dist.is_available() and dist.is_initialized() else 0
    0
    """
    return False


def is_initialized() -> bool:
    """Whether this process belongs to a group: always False."""
    return False


def is_torchelastic_launched() -> bool:
    """Whether `torchrun` started this process: always False."""
    return False


def init_process_group(*args: Any, **kwargs: Any) -> None:
    """Raises RuntimeError. Scripts import this name whether or not they run as several processes."""
    raise RuntimeError(
        "cygrad trains in one process: start the script without torchrun, and without its options for it"
    )


def destroy_process_group(group: Any = None) -> None:
    """Raises ValueError, since there is no group."""
    raise ValueError("Default process group has not been initialized, please make sure to call init_process_group.")


def __getattr__(name: str) -> Any:
    raise AttributeError(
        f"module 'cygrad.distributed' has no attribute {name!r}"
        + ("" if name.startswith("__") else "\n  cygrad uses one process: check `distributed.is_available()` first")
    )
