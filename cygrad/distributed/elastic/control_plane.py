"""What a launcher asks of running processes."""

from contextlib import contextmanager

from cygrad.distributed.elastic.multiprocessing.errors import record

__all__ = ["worker_main"]


@record
@contextmanager
def worker_main():
    """The main part of a program that `torchrun` starts: launchers of cygrad ask nothing of it while it runs.

    >>> from cygrad.distributed.elastic.control_plane import worker_main
    >>> with worker_main():
    ...     print("trains")
    trains
    """
    yield
