"""Python's `multiprocessing` under PyTorch's name, `spawn`, and tensors that processes share.

Tensors whose memory was shared (`share_memory_()`) use the same memory in all processes: those that are forked, those
that are started with them as arguments, and those that get them through a queue or a pipe. A tensor that was not shared
moves to shared memory when it is sent, so that its sender sees what the receiver writes. It does not move if it is a
view, or if other tensors or arrays use its memory; then the receiver gets a copy. Tensors on GPUs are copied, and all
tensors are where the system has no files without names, which only Linux has.
"""

from __future__ import annotations

import multiprocessing as _processes
from multiprocessing import *  # noqa: F403

from cygrad.multiprocessing.reductions import init_reductions
from cygrad.multiprocessing.spawn import (
    ProcessContext,
    ProcessException,
    ProcessExitedException,
    ProcessRaisedException,
    spawn,
    start_processes,
)

__all__ = [
    *_processes.__all__,
    "ProcessContext",
    "ProcessException",
    "ProcessExitedException",
    "ProcessRaisedException",
    "get_all_sharing_strategies",
    "get_sharing_strategy",
    "set_sharing_strategy",
    "spawn",
    "start_processes",
]

init_reductions()


def get_all_sharing_strategies() -> set[str]:
    """Return the names of the strategies for sharing memory: only anonymous files.

    >>> import cygrad
    >>> cygrad.multiprocessing.get_all_sharing_strategies()
    {'file_descriptor'}
    """
    return {"file_descriptor"}


def get_sharing_strategy() -> str:
    """Return the current strategy for sharing memory.

    >>> import cygrad
    >>> cygrad.multiprocessing.get_sharing_strategy()
    'file_descriptor'
    """
    return "file_descriptor"


def set_sharing_strategy(new_strategy: str) -> None:
    """Set the strategy for sharing memory. Accepts those of PyTorch and has no effect.

    >>> import cygrad
    >>> cygrad.multiprocessing.set_sharing_strategy("file_system")
    """
    if new_strategy not in ("file_descriptor", "file_system"):
        raise AssertionError(f"expected 'file_descriptor' or 'file_system', got {new_strategy!r}")
