"""What goes wrong between processes."""

__all__ = ["DistBackendError", "DistError", "DistNetworkError", "DistStoreError", "QueueEmptyError"]


class DistError(RuntimeError):
    """The base of all errors of distributed training.

    >>> import cygrad.distributed as dist
    >>> try:
    ...     dist.HashStore().queue_pop("tasks", block=False)
    ... except dist.DistError as error:
    ...     print(type(error).__name__)
    QueueEmptyError
    """

    __module__ = "cygrad.distributed"


class DistBackendError(DistError):
    """A back end failed.

    >>> import cygrad.distributed as dist
    >>> issubclass(dist.DistBackendError, dist.DistError)
    True
    """

    __module__ = "cygrad.distributed"


class DistNetworkError(DistError):
    """A connection failed.

    >>> import cygrad.distributed as dist
    >>> try:
    ...     dist.TCPStore("localhost", 1)  # no server
    ... except dist.DistNetworkError:
    ...     print("make the server first")
    make the server first
    """

    __module__ = "cygrad.distributed"


class DistStoreError(DistError):
    """A store failed, or had no answer in time.

    >>> from datetime import timedelta
    >>> import cygrad.distributed as dist
    >>> try:
    ...     dist.HashStore().wait(["key"], timedelta(milliseconds=20))
    ... except dist.DistStoreError:
    ...     print("nobody has set the key")
    nobody has set the key
    """

    __module__ = "cygrad.distributed"


class QueueEmptyError(DistStoreError):
    """A queue of a store is empty.

    >>> import cygrad.distributed as dist
    >>> try:
    ...     dist.HashStore().queue_pop("tasks", block=False)
    ... except dist.QueueEmptyError:
    ...     print("nothing to do")
    nothing to do
    """

    __module__ = "cygrad.distributed"


HOW_TO_INSTALL = (
    "to fix it: pip install mpi4py mpich; on a cluster, install mpi4py alone and let it use the cluster's own MPI"
)


def one_process(what: str) -> RuntimeError:
    """The error for what does not work between several processes."""
    return RuntimeError(
        f"{what}: this works in one process for now\n"
        "  to fix it: use it in a world of size 1; collectives, DistributedDataParallel and the like work in any"
    )
