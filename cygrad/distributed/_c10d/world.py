"""The groups that exist: those of this process, or of a thread that stands for a process."""

import threading

__all__ = ["World", "current", "enter"]


class World:
    """The groups of one process, and how many there have been.

    connection: how the process is connected to the others, once there is a group of all (`connection.py`).
    engine: of a thread that stands for a process: what `init_process_group` connects it by.
    """

    def __init__(self, engine=None, store=None):
        self.default = None
        self.groups: list = []
        self.count = 0
        self.connection = None
        self.engine, self.store = engine, store
        self.shards = None  # of `deterministic`
        self.coalescing = None  # collects what is called within `_coalescing_manager`


class _Local(threading.local):
    world: World | None = None


_OF_PROCESS = World()
_LOCAL = _Local()


def current():
    """The world of this thread: that of the process, unless the thread stands for a process of its own."""
    return _LOCAL.world or _OF_PROCESS


def enter(world):
    """Let this thread stand for a process with this world, or, for None, belong to this process again."""
    _LOCAL.world = world
