"""Resolves sites (code object, instruction offset) to `file:line` (see Note [Sites] in thread_state.pyx)."""

import contextlib
import os
import sys
import warnings
from _thread import get_ident
from collections.abc import Callable
from itertools import islice
from types import FrameType

from cygrad import _library

_OUR_FILES = os.path.dirname(os.path.abspath(_library.__file__)) + os.sep
_BETWEEN = {  # files of the standard library through which a user's line reaches ours
    contextlib.contextmanager.__code__.co_filename,
    "<frozen importlib._bootstrap>",
    "<frozen importlib._bootstrap_external>",
}


def is_ours(code):
    """Whether a code object belongs to this package."""
    return code.co_filename.startswith(_OUR_FILES)


def line_of(code, offset):
    """Return the line number of an instruction, or None."""
    for start, end, line in code.co_lines():
        if start <= offset < end:
            return line
    return None


def place(code, offset):
    """Return `file:line` of a site, or 'an unknown line' if no Python code was running."""
    if code is None:
        return "an unknown line"
    return f"{_file(code.co_filename)}:{line_of(code, offset)}"


def _file(name):
    """Return a file's name. A notebook's cell, compiled from a temporary file, is `Cell In[3]`, as in the notebook."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    words = getattr(getattr(shell, "compile", None), "format_code_name", lambda name: None)(name)
    return " ".join(words) if words else name


def source(code, offset):
    """Return the source line of a site, or an empty string if it is unavailable."""
    return "" if code is None else _line(code, line_of(code, offset) or 0).strip()


def _line(code, number):
    import linecache  # takes a millisecond to import and is needed only for errors

    return linecache.getline(code.co_filename, number)


def expression(code, offset):
    """Return the source text of a site's instruction: a call, a changed element, `x += y`; empty if unavailable."""
    if code is None:
        return ""
    first, last, start, end = next(islice(code.co_positions(), offset // 2, None), (None,) * 4)
    if first is None or last is None or start is None or end is None:  # e.g. with `python -X no_debug_ranges`
        return ""
    lines = [_line(code, number).encode() for number in range(first, last + 1)]
    lines[-1] = lines[-1][:end]  # columns count bytes
    lines[0] = lines[0][start:]
    if any(b"#" in line for line in lines[:-1]):  # joined on one line, it would comment out the rest
        return ""
    return b" ".join(line.strip() for line in lines).decode(errors="replace")


def at(code, offset):
    """Return `file:line: source line`, as far as available."""
    if code is None:
        return "an unknown line"
    text = source(code, offset)
    return place(code, offset) + (f": `{text}`" if text else "")


def warn(text, category=UserWarning):
    """Issue a warning attributed to the user's line: the innermost Python line outside cygrad.

    Counting frames for `stacklevel` would not do: `warnings.warn` skips those of imports, and a block made by
    `contextlib` has frames of the standard library between the user's line and ours.
    """
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and (is_ours(frame.f_code) or frame.f_code.co_filename in _BETWEEN):
        frame = frame.f_back
    if frame is None:  # a thread of our own
        warnings.warn(text, category, stacklevel=2)
        return
    module = frame.f_globals.get("__name__") or "<string>"
    registry = frame.f_globals.setdefault("__warningregistry__", {})
    call = text, category, frame.f_code.co_filename, frame.f_lineno, module, registry
    listener = _listeners.get(get_ident())
    if listener is None or listener(call):
        warnings.warn_explicit(*call)


_listeners: dict[int, Callable[..., bool]] = {}  # by thread


def listen(listener):
    """Have `listener(arguments of warn_explicit)` called with each of our warnings in this thread; it tells whether to
    issue it. Return the listener before."""
    former = _listeners.pop(get_ident(), None)
    if listener is not None:
        _listeners[get_ident()] = listener
    return former


class Heard:
    """A block in which our warnings of this thread are collected, and issued only if `issues`."""

    def __init__(self, issues):
        self.issues, self.calls = issues, []

    def __enter__(self):
        self._former = listen(self._hear)
        return self

    def __exit__(self, *error):
        listen(self._former)

    def _hear(self, call):
        self.calls.append(call)
        return self.issues
