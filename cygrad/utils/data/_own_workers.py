"""What libraries import for worker processes of their own: messages, and how such a worker ends with its program.

The loader here notices by itself that a worker has died, so nothing has to be told of the processes.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class _IterableDatasetStopIteration:
    """A worker's answer if its part of an iterable dataset is exhausted."""

    worker_id: int


@dataclass(frozen=True)
class _ResumeIteration:
    """Tells a persistent worker that another iteration begins."""

    seed: int | None = None


class ManagerWatchdog:
    """Tells a worker whether the process that started it is alive."""

    def __init__(self) -> None:
        self.manager_pid = os.getppid()
        self.manager_dead = False

    def is_alive(self) -> bool:
        """Whether the process is alive: orphans get another parent."""
        self.manager_dead = self.manager_dead or os.getppid() != self.manager_pid
        return not self.manager_dead


def _set_worker_signal_handlers() -> None:
    """Do nothing: crashes of workers are reported where they are noticed."""


def _set_worker_pids(loader_id: int, pids: Iterable[int]) -> None:
    """Do nothing."""


def _remove_worker_pids(loader_id: int) -> None:
    """Do nothing."""


def _set_SIGCHLD_handler() -> None:
    """Do nothing."""


def _error_if_any_worker_fails() -> None:
    """Do nothing."""


def _sharding_worker_init_fn(worker_init_fn: Any, world_size: int, rank_id: int, worker_id: int) -> None:
    """Give each worker of each process its share of a pipe, and call the program's function."""
    from cygrad.utils.data import graph_settings  # needed only for pipes
    from cygrad.utils.data._worker import get_worker_info  # which imports this module

    info = get_worker_info()
    assert info is not None, "called outside of a worker"
    graph_settings.apply_sharding(info.dataset, info.num_workers * world_size, worker_id * world_size + rank_id)
    if worker_init_fn is not None:
        worker_init_fn(worker_id)
