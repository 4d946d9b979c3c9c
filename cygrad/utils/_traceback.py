"""Where a program is: stacks that are kept and shown later, and short forms of tracebacks."""

from __future__ import annotations

import contextlib
import linecache
import os
import sys
import traceback
from collections.abc import Iterator, Sequence
from types import FrameType, TracebackType
from typing import Any

import cygrad

__all__ = [
    "CapturedTraceback",
    "format_frame",
    "format_traceback_short",
    "report_compile_source_on_error",
    "shorten_filename",
]

_SOURCE = "__compile_source__"  # the global variable in which generated code keeps its own text


@contextlib.contextmanager
def report_compile_source_on_error() -> Iterator[None]:
    """Show lines of generated code in the traceback of an error in the block.

    The code must keep its text in the global variable `__compile_source__`.

    >>> import traceback
    >>> text, scope = "raise ValueError  # on purpose", {}
    >>> try:
    ...     with report_compile_source_on_error():
    ...         exec(text, {"__compile_source__": text})
    ... except ValueError as error:
    ...     "on purpose" in "".join(traceback.format_exception(error))
    True
    """
    try:
        yield
    except Exception as error:
        step = error.__traceback__
        while step is not None:
            source = step.tb_frame.f_globals.get(_SOURCE)
            if isinstance(source, str):
                lines = source.splitlines(keepends=True)
                linecache.cache[step.tb_frame.f_code.co_filename] = (len(source), None, lines, "")
            step = step.tb_next
        raise


def shorten_filename(fn: str, *, base: str | None = None) -> str:
    """Return a path relative to `base`, by default the folder of the package, if it is below that.

    >>> shorten_filename("/home/me/program.py", base="/home/me")
    'program.py'
    """
    base = os.path.dirname(os.path.dirname(cygrad.__file__)) if base is None else base
    try:
        common = os.path.commonpath([base, fn])
    except ValueError:  # on different drives
        return fn
    return os.path.relpath(fn, base) if common == os.path.normpath(base) else fn


def format_frame(frame: traceback.FrameSummary, *, base: str | None = None, line: bool = False) -> str:
    """Return "file:number in function" for an entry of a stack, after its line of code with `line`."""
    code = f"{frame.line}  # " if line else ""
    return f"{code}{shorten_filename(frame.filename, base=base)}:{frame.lineno} in {frame.name}"


def format_traceback_short(tb: TracebackType | None) -> str:
    """Return "file:number in function" for the last entry of a traceback."""
    return format_frame(traceback.extract_tb(tb)[-1])


class CapturedTraceback:
    """The stack of the caller, which `extract` takes and `format` shows.

    >>> def here():
    ...     return CapturedTraceback.extract()
    >>> "in here" in "".join(here().format())
    True
    """

    __slots__ = ("_summary",)

    def __init__(self, summary: traceback.StackSummary | None) -> None:
        self._summary = summary

    @staticmethod
    def extract(*, script: bool = False, cpp: bool = False, skip: int = 0) -> CapturedTraceback:
        """Return the stack of the caller without its `skip` innermost calls."""
        frame: FrameType | None = sys._getframe(1)
        for _ in range(skip):
            frame = frame and frame.f_back
        found = traceback.StackSummary.extract(traceback.walk_stack(frame), lookup_lines=False) if frame else None
        if found is not None:
            found.reverse()
        return CapturedTraceback(found)

    def cleanup(self) -> None:
        """Forget the stack."""
        self._summary = None

    def summary(self) -> traceback.StackSummary:
        """Return the entries of the stack, outermost first; none after `cleanup`."""
        return traceback.StackSummary() if self._summary is None else self._summary

    def format(self) -> list[str]:
        """Return the lines that show the stack."""
        return traceback.format_list(self.summary())

    @staticmethod
    def format_all(tbs: Sequence[CapturedTraceback]) -> list[list[str]]:
        """Return the lines of several stacks."""
        return [tb.format() for tb in tbs]

    def __getstate__(self) -> tuple[None, dict[str, Any]]:
        return (None, {"_summary": None})  # a stack says nothing in another process
