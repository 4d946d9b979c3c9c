"""Calls that a compiler of scripts may run at the same time: they run one after the other here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from cygrad.futures import Future

__all__ = ["fork", "wait"]


def fork(func: Callable[..., Any], *args: Any, **kwargs: Any) -> Future[Any]:
    """Call a function, and return its result as a `Future`, which `wait` takes.

    >>> import cygrad
    >>> future = cygrad.jit.fork(cygrad.add, cygrad.ones(2), 1)
    >>> cygrad.jit.wait(future)
    tensor([2., 2.])
    """
    future: Future[Any] = Future()
    future.set_result(func(*args, **kwargs))
    return future


def wait(future: Future[Any]) -> Any:
    """Return the result of `fork`.

    >>> import cygrad
    >>> cygrad.jit.wait(cygrad.jit.fork(lambda: 3))
    3
    """
    if future is None:
        raise RuntimeError("Future can't be None")
    return future.wait()
