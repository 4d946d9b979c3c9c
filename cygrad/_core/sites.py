"""From a site (code object, instruction offset) to `file:line` (see Note [Sites] in state.pyx)."""

import linecache
import os
import sys
import warnings
from types import FrameType

_OUR_FILES = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep


def is_ours(code):
    """Whether a code object belongs to this package."""
    return code.co_filename.startswith(_OUR_FILES)


def line_of(code, offset):
    """The line number of an instruction, or None."""
    for start, end, line in code.co_lines():
        if start <= offset < end:
            return line
    return None


def place(code, offset):
    """`file:line` of a site; 'an unknown line' where Python code took no part."""
    if code is None:
        return "an unknown line"
    return f"{code.co_filename}:{line_of(code, offset)}"


def source(code, offset):
    """The source text of a site's line; empty if it can not be had."""
    return "" if code is None else linecache.getline(code.co_filename, line_of(code, offset) or 0).strip()


def at(code, offset):
    """`file:line: the source text there`, as far as it can be had."""
    if code is None:
        return "an unknown line"
    text = source(code, offset)
    return place(code, offset) + (f": `{text}`" if text else "")


def warn(text, category=UserWarning):
    """Warn, and name the innermost Python line outside cygrad."""
    depth = 2
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and is_ours(frame.f_code):
        depth, frame = depth + 1, frame.f_back
    warnings.warn(text, category, stacklevel=depth)
