"""Context managers that Ctrl-C leaves as it finds them: before they begin, or ended."""

from functools import partial
from typing import Any

from cygrad._core.runtime.thread_state import begin_block, end_block


class Block:
    """A context manager whose beginning and end are each one call of a compiled function: `_plan` tells which."""

    _plans: Any = None  # of the blocks that were begun, the last first
    _context: Any = None  # what `with` gives
    _ended: Any = None  # called after the end

    def _plan(self):
        """(compiled function, its argument now, its argument in the end[, another function for the end])."""
        raise NotImplementedError

    __enter__ = begin_block
    __exit__ = end_block


def putting(place, key, value):
    """The plan to put a value into a dictionary."""
    return partial(dict.__setitem__, place, key), value, place[key]
