"""The engine on MPI, through mpi4py: non-blocking transfers, which move on in each call of `test`.

Importing this file starts MPI, so that only what connects processes does it (`connection.py`).
"""

import numpy as np
from mpi4py import MPI

from cygrad.distributed._c10d.engines.engine import Engine, Handle
from cygrad.distributed._c10d.engines.shared_memory import LEAST, SharedMemory, is_ordered
from cygrad.distributed._c10d.errors import DistBackendError
from cygrad.distributed._c10d.supervision.launchers import command, launched

__all__ = ["Mpi", "world"]

_OPS = {"sum": "SUM", "product": "PROD", "min": "MIN", "max": "MAX", "band": "BAND", "bor": "BOR", "bxor": "BXOR"}


def world():
    """MPI's communicator of all processes. Raises RuntimeError if a process does not find the others.

    Processes that a launcher has started, but whose MPI library does not know that launcher, would each be rank 0 of 1.
    """
    launch = launched()
    if launch is not None and MPI.COMM_WORLD.size != launch.size:
        library = MPI.Get_library_version().partition("\n")[0].strip().rstrip("\0")
        raise RuntimeError(
            f"init_process_group(): {launch.launcher} has started {launch.size} processes, and MPI sees "
            f"{MPI.COMM_WORLD.size}: each would train alone\n"
            f"  mpi4py uses {library}, which does not know this launcher\n"
            f"  to fix it: start the program with the mpiexec of that library, {command(launch.size)}, or by "
            f"python -m cygrad.distributed.run --nproc-per-node {launch.size}; under Slurm, try srun --mpi=pmi2 or "
            "--mpi=pmix"
        )
    return MPI.COMM_WORLD


class _Transfer(Handle):
    """A request of MPI, with the arrays that must live until it is finished."""

    def __init__(self, request, *arrays):
        self._request, self._arrays = request, arrays

    def test(self):
        try:
            return self._request.Test()
        except Exception as error:
            raise _named(error) from None

    def source(self):
        return None


class _Receipt(_Transfer):
    """A receipt: it has a source, and can be given up."""

    _source = None

    def test(self):
        status = MPI.Status()
        try:
            done = self._request.Test(status)
        except Exception as error:
            raise _named(error) from None
        if done and self._source is None:
            self._source = status.Get_source()
            got, expected = status.Get_count(MPI.BYTE), self._arrays[0].nbytes
            if got != expected:
                raise DistBackendError(f"{got} bytes have come from rank {self._source} for a tensor of {expected}")
        return done

    def source(self):
        return self._source

    def abort(self):
        self._request.Cancel()
        self._request.Free()


def _named(error):
    return DistBackendError(
        f"MPI: {error}\n  to fix it: set CYGRAD_DISTRIBUTED_DEBUG=1, which compares the calls of all ranks before data "
        "moves"
    )


class Mpi(Engine):
    """The processes of a communicator, which is this engine's own."""

    def __init__(self, communicator):
        self._communicator = communicator
        self.rank, self.size = communicator.rank, communicator.size
        self._in_place, self._any = MPI.IN_PLACE, MPI.ANY_SOURCE
        has_memory = self.size > 1 and is_ordered() and _is_on_one_machine(communicator)
        self._memory = SharedMemory(self) if has_memory else None
        self._ops = {name: getattr(MPI, of_mpi) for name, of_mpi in _OPS.items()}

    def all_reduce(self, buffer, op):
        if self._memory is not None and buffer.nbytes >= LEAST and buffer.dtype.char != "e":
            return self._memory.all_reduce(buffer, op)
        return self.all_reduce_by_mpi(buffer, op)

    def all_reduce_by_mpi(self, buffer, op):
        """Reduce by MPI, even if there is shared memory."""
        return _Transfer(self._communicator.Iallreduce(self._in_place, buffer, self._ops[op]), buffer)

    def reduce(self, buffer, root, op):
        send, recv = (self._in_place, buffer) if self.rank == root else (buffer, None)
        return _Transfer(self._communicator.Ireduce(send, recv, self._ops[op], root), buffer)

    def broadcast(self, buffer, root):
        return _Transfer(self._communicator.Ibcast(buffer, root), buffer)

    def all_gather(self, output, input):
        return _Transfer(self._communicator.Iallgather(input, output), input, output)

    def reduce_scatter(self, output, input, op):
        return _Transfer(self._communicator.Ireduce_scatter_block(input, output, self._ops[op]), input, output)

    def all_to_all(self, output, input, output_sizes, input_sizes):
        request = self._communicator.Ialltoallv([input, _layout(input_sizes)], [output, _layout(output_sizes)])
        return _Transfer(request, input, output)

    def gather(self, output, input, root):
        return _Transfer(self._communicator.Igather(input, output, root), input, output)

    def scatter(self, output, input, root):
        return _Transfer(self._communicator.Iscatter(input, output, root), input, output)

    def send(self, buffer, peer, tag):
        return _Transfer(self._communicator.Isend(buffer, peer, tag), buffer)

    def recv(self, buffer, peer, tag):
        return _Receipt(self._communicator.Irecv(buffer, self._any if peer is None else peer, tag), buffer)

    def barrier(self):
        return _Transfer(self._communicator.Ibarrier())

    def split(self, ranks):
        old = self._communicator.Get_group()
        new = old.Incl(ranks)
        made = self._communicator.Create_group(new)
        for group in (old, new):
            group.Free()
        made.Set_errhandler(MPI.ERRORS_RETURN)
        return Mpi(made)

    def close(self):
        self._communicator.Free()


def _is_on_one_machine(communicator):
    """Whether all processes of a communicator share memory; all of them ask."""
    here = communicator.Split_type(MPI.COMM_TYPE_SHARED)
    is_whole = here.size == communicator.size
    here.Free()
    return is_whole


def _layout(sizes):
    """Counts and displacements of parts that follow each other."""
    return list(sizes), [0, *np.cumsum(sizes)[:-1].tolist()]
