"""What moves and reduces arrays between the processes of a group: by MPI or NCCL, or within one process."""

from cygrad.distributed._c10d.errors import HOW_TO_INSTALL

__all__ = ["start_mpi"]


def start_mpi():
    """Start MPI. Raises RuntimeError if mpi4py or its library is missing."""
    try:
        import mpi4py.MPI  # noqa: F401, it starts MPI, which only programs of several processes want
    except (ImportError, RuntimeError) as error:  # RuntimeError: mpi4py is there, and no library
        raise RuntimeError(f"Distributed package doesn't have MPI built in\n  {error}\n  {HOW_TO_INSTALL}") from None
