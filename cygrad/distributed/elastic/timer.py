"""Times by which parts of a program must be through, told to whoever watches over the process."""

import sys
import time
from abc import ABC, abstractmethod
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from cygrad.distributed._c10d.module_names import also_named

__all__ = ["TimerClient", "TimerRequest", "configure", "expires"]


@dataclass
class TimerRequest:
    """The time, as of `time.time()`, by which a process must have left a part of its program; negative: it has.

    >>> from cygrad.distributed.elastic.timer import TimerRequest
    >>> TimerRequest(4711, "loading", 1700000000.0).scope_id
    'loading'
    """

    worker_id: Any
    scope_id: str
    expiration_time: float


class TimerClient(ABC):
    """What tells a watcher of the times: `acquire` when a part begins, `release` when it is through.

    >>> from cygrad.distributed.elastic import timer
    >>> class Printing(timer.TimerClient):
    ...     def acquire(self, scope_id, expiration_time):
    ...         print(scope_id, "begins")
    ...     def release(self, scope_id):
    ...         print(scope_id, "is through")
    >>> with timer.expires(after=60, scope="loading", client=Printing()):
    ...     pass
    loading begins
    loading is through
    """

    @abstractmethod
    def acquire(self, scope_id, expiration_time):
        """A part of the program begins."""

    @abstractmethod
    def release(self, scope_id):
        """It is through."""


_clients: list[TimerClient] = []  # the one that `expires` tells, if there is one


def configure(timer_client):
    """Set whom `expires` tells, unless it is given a client.

    >>> from cygrad.distributed.elastic import timer
    >>> class Silent(timer.TimerClient):
    ...     def acquire(self, scope_id, expiration_time): ...
    ...     def release(self, scope_id): ...
    >>> timer.configure(Silent())
    """
    _clients[:] = [timer_client]


@contextmanager
def expires(after, scope=None, client=None):
    """Within this context a watcher ends the process after so many seconds.

    scope: the name of the part, by default its file and line. Raises RuntimeError if there is no client.

    >>> from cygrad.distributed.elastic import timer
    >>> class Silent(timer.TimerClient):
    ...     def acquire(self, scope_id, expiration_time): ...
    ...     def release(self, scope_id): ...
    >>> with timer.expires(after=60, client=Silent()):
    ...     print("loads")
    loads
    """
    if client is None and not _clients:
        raise RuntimeError("Configure timer client before using countdown timers.")
    client = client or _clients[0]
    if scope is None:
        frame = sys._getframe(2)  # above this generator and the context manager
        scope = f"{frame.f_code.co_filename}#{frame.f_lineno}"
    client.acquire(scope, time.time() + after)
    try:
        yield
    finally:
        client.release(scope)


also_named(__name__, api=sys.modules[__name__])
