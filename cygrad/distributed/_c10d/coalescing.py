"""Collectives that are begun together."""

from contextlib import ExitStack, contextmanager

from cygrad.distributed._c10d.membership import _get_group
from cygrad.distributed._c10d.world import current

__all__: list[str] = []


class _CoalescingManager:
    """What `_coalescing_manager` yields: the collectives that were called in it."""

    def __init__(self):
        self.works = []

    def append(self, work):
        """Add a collective."""
        if work:
            self.works.append(work)

    def wait(self):
        """Wait for all."""
        for work in self.works:
            work.wait()


@contextmanager
def _coalescing_manager(group=None, device=None, async_ops=False):
    """Within this context collectives are called, and begun together at its end, with NCCL as one group of calls.

    At the end it waits for all, or, with `async_ops`, leaves that to the object that it yields.
    """
    group, world = _get_group(group), current()
    manager = _CoalescingManager()
    before, world.coalescing = world.coalescing, manager
    try:
        with ExitStack() as stack:
            for engine in set(group._engines.values()):
                stack.enter_context(engine.together())
            yield manager
    finally:
        world.coalescing = before
    if not async_ops:
        manager.wait()
