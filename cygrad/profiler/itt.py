"""Marks in the timeline of Intel's VTune, as a build of PyTorch without Intel's library answers: there are none."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

__all__ = ["is_available", "mark", "range", "range_pop", "range_push"]


def is_available() -> bool:
    """Whether marks can be made: False.

    >>> import cygrad
    >>> cygrad.profiler.itt.is_available()
    False
    """
    return False


def _fail() -> NoReturn:
    raise RuntimeError(
        "ITT functions not installed. Are you sure you have a ITT build?\n"
        "  profiler.profile() and export_chrome_trace() do not need them"
    )


def range_push(msg: str) -> int:
    """Raise RuntimeError: there is no range to begin.

    >>> import cygrad
    >>> cygrad.profiler.itt.range_push("step")
    Traceback (most recent call last):
        ...
    RuntimeError: ITT functions not installed. Are you sure you have a ITT build?...
    """
    _fail()


def range_pop() -> int:
    """Raise RuntimeError: there is no range to end.

    >>> import cygrad
    >>> cygrad.profiler.itt.range_pop()
    Traceback (most recent call last):
        ...
    RuntimeError: ITT functions not installed. Are you sure you have a ITT build?...
    """
    _fail()


def mark(msg: str) -> None:
    """Raise RuntimeError: there is no timeline to mark.

    >>> import cygrad
    >>> cygrad.profiler.itt.mark("here")
    Traceback (most recent call last):
        ...
    RuntimeError: ITT functions not installed. Are you sure you have a ITT build?...
    """
    _fail()


@contextmanager
def range(msg: str, *args: Any, **kwargs: Any) -> Iterator[None]:
    """Raise RuntimeError on entry: there is no range to begin.

    >>> import cygrad
    >>> with cygrad.profiler.itt.range("step"):
    ...     pass
    Traceback (most recent call last):
        ...
    RuntimeError: ITT functions not installed. Are you sure you have a ITT build?...
    """
    range_push(msg.format(*args, **kwargs))
    yield
