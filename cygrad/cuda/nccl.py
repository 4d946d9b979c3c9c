"""NCCL through CuPy: communicators, and the numbers that NCCL's header gives dtypes and reductions."""

from cygrad._kernels.device import cupy_library

__all__ = ["DTYPES", "OPS", "communicator", "group", "unique_id"]

DTYPES = {
    "int8": 0, "uint8": 1, "int32": 2, "uint32": 3, "int64": 4, "uint64": 5, "float16": 6, "float32": 7, "float64": 8,
    "bfloat16": 9,
}  # fmt: skip
OPS = {"sum": 0, "product": 1, "max": 2, "min": 3}


def _nccl():
    """CuPy's module. Raises RuntimeError if CuPy was built or installed without NCCL."""
    cupy_library.cupy()
    try:
        from cupy.cuda import nccl  # only programs of several GPUs need it
    except ImportError as error:
        raise RuntimeError(
            f"Distributed package doesn't have NCCL built in\n  CuPy cannot load it: {error}\n"
            "  to fix it: pip install nvidia-nccl-cu12 (or -cu13), which CuPy's wheels load"
        ) from None
    return nccl


def unique_id():
    """What the processes of a new communicator must all have: one makes it, the others get it.

    Raises RuntimeError without NCCL, ImportError without CuPy.

    >>> import cygrad
    >>> if cygrad.distributed.is_nccl_available():
    ...     identity = cygrad.cuda.nccl.unique_id()
    """
    return tuple(_nccl().get_unique_id())


def communicator(size, identity, rank):
    """This process's end of a communicator of `size` processes, on the current GPU; waits for the others.

    >>> import cygrad
    >>> if cygrad.distributed.is_nccl_available():
    ...     alone = cygrad.cuda.nccl.communicator(1, cygrad.cuda.nccl.unique_id(), 0)
    """
    return _nccl().NcclCommunicator(size, identity, rank)


class group:
    """A block whose calls NCCL begins together, so that sends and receipts do not wait for each other.

    >>> import cygrad
    >>> if cygrad.distributed.is_nccl_available():
    ...     with cygrad.cuda.nccl.group():
    ...         pass
    """

    def __enter__(self):
        _nccl().groupStart()

    def __exit__(self, *error):
        _nccl().groupEnd()
