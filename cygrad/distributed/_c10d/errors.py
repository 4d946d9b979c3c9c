"""What goes wrong between processes."""

__all__ = ["DistBackendError", "DistError", "DistNetworkError", "DistStoreError", "QueueEmptyError"]


class DistError(RuntimeError):
    """The base of all errors of distributed training."""

    __module__ = "cygrad.distributed"


class DistBackendError(DistError):
    """A back end failed."""

    __module__ = "cygrad.distributed"


class DistNetworkError(DistError):
    """A connection failed."""

    __module__ = "cygrad.distributed"


class DistStoreError(DistError):
    """A store failed, or had no answer in time."""

    __module__ = "cygrad.distributed"


class QueueEmptyError(DistStoreError):
    """A queue of a store is empty."""

    __module__ = "cygrad.distributed"


HOW_TO_INSTALL = (
    "to fix it: pip install 'cygrad[distributed]', which brings mpi4py and mpich; on a cluster, mpi4py with the "
    "cluster's own MPI"
)


def one_process(what: str) -> RuntimeError:
    """The error for what does not work between several processes."""
    return RuntimeError(
        f"{what}: this works in one process for now\n"
        "  to fix it: use it in a world of size 1; collectives, DistributedDataParallel and the like work in any"
    )
