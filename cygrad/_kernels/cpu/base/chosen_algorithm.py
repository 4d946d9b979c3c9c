"""Which of its algorithms a kernel has run, for the profiler."""

from _thread import _local  # importing `threading` takes as long as importing an op family


class _Thread(_local):
    name: str | None = None


_thread = _Thread()


def note(name):
    """Note the algorithm that this thread's kernel has run."""
    _thread.name = name


def take():
    """Return the algorithm noted since the last call, or None."""
    name, _thread.name = _thread.name, None
    return name
