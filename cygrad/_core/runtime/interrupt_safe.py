"""Interrupt-safe context managers: a KeyboardInterrupt can never leave one half entered or half exited."""

from functools import partial
from typing import TYPE_CHECKING, Any

from cygrad._core.runtime.thread_state import begin_block, end_block


class Block:
    """A context manager whose entry and exit are single calls of compiled functions, chosen by `_plan`."""

    _plans: Any = None  # of the blocks entered so far, innermost first
    _context: Any = None  # the value of `with ... as`
    _ended: Any = None  # called after the exit

    def _plan(self):
        """Return (compiled function, argument on entry, argument on exit[, different function for the exit])."""
        raise NotImplementedError

    if TYPE_CHECKING:

        def __enter__(self) -> Any: ...
        def __exit__(self, *error: object) -> None: ...

    else:
        __enter__ = begin_block
        __exit__ = end_block


def putting(place, key, value):
    """Return the plan that sets a dictionary item and restores it on exit."""
    return partial(dict.__setitem__, place, key), value, place[key]
