"""The engine on NCCL, through CuPy: transfers between GPUs, on a stream of the group's own.

Its arrays are one-dimensional tensors on the GPU. The stream waits for what the current stream has computed; waiting
for a transfer lets the current stream wait, not the program. It has not run on several GPUs yet: tests have a stand-in.
"""

from typing import Any

import numpy as np

from cygrad import complex64, complex128, cuda, float32, float64, int16, int32, uint16
from cygrad.cuda.nccl import DTYPES, OPS, communicator, group, unique_id
from cygrad.distributed._c10d.engine import Engine, Handle
from cygrad.distributed._c10d.errors import DistBackendError

__all__ = ["Nccl"]

_OF_BYTES = {"bor": "max", "band": "min"}  # of bools, which are 0 and 1
_WIDER = {int16: int32, uint16: int32}  # dtypes that NCCL lacks
_PARTS = {complex64: float32, complex128: float64}


class _Transfer(Handle):
    """What is under way on the group's stream, up to an event."""

    def __init__(self, engine, event, source, *tensors):
        self._engine, self._event, self._source, self._tensors = engine, event, source, tensors

    def test(self):
        self._engine.check()
        return self._event.query()

    def wait(self, timeout=None, watch=None):
        self._engine.check()
        self._event.wait()  # the current stream does

    def abort(self):
        self._engine.abort()

    def source(self):
        return self._source


class Nccl(Engine):
    """The GPUs of the processes that `host`, an engine for the main memory, connects."""

    on_device = True

    def __init__(self, host):
        self._host = host
        self.rank, self.size = host.rank, host.size
        self._communicator: Any = None  # made, as the stream is, when the first tensor tells the GPU
        self._stream: Any = None

    def _prepare(self, tensor):
        if self._communicator is not None:
            return
        identity = np.zeros(128, np.int8)
        if self.rank == 0:
            identity[:] = unique_id()
        self._host.broadcast(identity.view(np.uint8), 0).wait()
        with cuda.device(tensor.device):
            self._communicator = communicator(self.size, tuple(identity.tolist()), self.rank)
            self._stream = cuda.Stream(tensor.device)

    def check(self):
        """Raise if NCCL has failed since the last call."""
        try:
            self._communicator.check_async_error()
        except Exception as error:
            raise DistBackendError(f"NCCL: {error}") from None

    def abort(self):
        """End all transfers, here and, by that, in the other processes."""
        self._communicator.abort()

    def _begin(self, tensors, call, source=None):
        """Let the group's stream call NCCL once it may; returns the handle, which keeps the tensors."""
        self._prepare(tensors[0])
        self._stream.wait_stream(cuda.current_stream(tensors[0].device))
        with cuda.device(tensors[0].device):
            call(self._communicator, self._stream.cuda_stream)
        return _Transfer(self, self._stream.record_event(), source, *tensors)

    # --- Reductions ------------------------------------------------------------------------------

    def all_reduce(self, buffer, op):
        def call(nccl, stream, data=buffer):
            nccl.allReduce(data.data_ptr(), data.data_ptr(), data.numel(), *_of(data, op), stream)

        return self._reduced(buffer, buffer, call, op)

    def reduce(self, buffer, root, op):
        def call(nccl, stream, data=buffer):
            nccl.reduce(data.data_ptr(), data.data_ptr(), data.numel(), *_of(data, op), root, stream)

        return self._reduced(buffer, buffer if self.rank == root else None, call, op)

    def reduce_scatter(self, output, input, op):
        wide = _wide(input, op)
        part = _wide(output, op)

        def call(nccl, stream):
            nccl.reduceScatter(wide.data_ptr(), part.data_ptr(), part.numel(), *_of(part, op), stream)

        handle = self._begin([part, wide], call)
        if part.data_ptr() != output.data_ptr():
            handle.wait()
            output.copy_(part)
        return handle

    def _reduced(self, buffer, into, call, op):
        """Reduce in place; a dtype that NCCL lacks as a wider copy, which is written back."""
        wide = _wide(buffer, op)
        handle = self._begin([wide], lambda nccl, stream: call(nccl, stream, wide))
        if into is not None and wide.data_ptr() != buffer.data_ptr():
            handle.wait()
            into.copy_(wide)
        return handle

    # --- Moves, of bytes -------------------------------------------------------------------------

    def broadcast(self, buffer, root):
        def call(nccl, stream):
            nccl.broadcast(buffer.data_ptr(), buffer.data_ptr(), buffer.numel(), DTYPES["uint8"], root, stream)

        return self._begin([buffer], call)

    def all_gather(self, output, input):
        def call(nccl, stream):
            nccl.allGather(input.data_ptr(), output.data_ptr(), input.numel(), DTYPES["uint8"], stream)

        return self._begin([output, input], call)

    def all_to_all(self, output, input, output_sizes, input_sizes):
        def call(nccl, stream):
            with group():
                for peer, (incoming, outgoing) in enumerate(zip(output.split(output_sizes), input.split(input_sizes))):
                    _send(nccl, outgoing, peer, stream)
                    _recv(nccl, incoming, peer, stream)

        return self._begin([output, input], call)

    def gather(self, output, input, root):
        def call(nccl, stream):
            with group():
                _send(nccl, input, root, stream)
                for peer, part in enumerate(output.chunk(self.size) if self.rank == root else ()):
                    _recv(nccl, part, peer, stream)

        return self._begin([input] if output is None else [input, output], call)

    def scatter(self, output, input, root):
        def call(nccl, stream):
            with group():
                for peer, part in enumerate(input.chunk(self.size) if self.rank == root else ()):
                    _send(nccl, part, peer, stream)
                _recv(nccl, output, root, stream)

        return self._begin([output] if input is None else [output, input], call)

    def send(self, buffer, peer, tag):
        return self._begin([buffer], lambda nccl, stream: _send(nccl, buffer, peer, stream))

    def recv(self, buffer, peer, tag):
        if peer is None:
            raise RuntimeError("ProcessGroupNCCL does not support recvAnysource\n  to fix it: name the source rank")
        return self._begin([buffer], lambda nccl, stream: _recv(nccl, buffer, peer, stream), peer)

    def barrier(self):
        if self._stream is not None:
            self._stream.synchronize()
        return self._host.barrier()

    def split(self, ranks):
        return Nccl(self._host.split(ranks))

    def close(self):
        if self._communicator is not None:
            self._stream.synchronize()
            self._communicator.destroy()
            self._communicator = None


def _of(tensor, op):
    """NCCL's numbers for a dtype and a reduction."""
    name = str(tensor.dtype).rpartition(".")[2]
    op = _OF_BYTES.get(op, op) if name == "uint8" else op
    if op not in OPS:
        raise ValueError(f"Cannot use ReduceOp.{op.upper()} with NCCL\n  to fix it: reduce on the CPU")
    return DTYPES[name], OPS[op]


def _wide(tensor, op):
    """The tensor in a dtype that NCCL has: itself, its parts for a sum of complex numbers, or a wider copy."""
    if tensor.dtype in _PARTS:
        return tensor.view(_PARTS[tensor.dtype])
    return tensor.to(_WIDER[tensor.dtype]) if tensor.dtype in _WIDER else tensor


def _send(nccl, part, peer, stream):
    if part.numel():
        nccl.send(part.data_ptr(), part.numel(), DTYPES["uint8"], peer, stream)


def _recv(nccl, part, peer, stream):
    if part.numel():
        nccl.recv(part.data_ptr(), part.numel(), DTYPES["uint8"], peer, stream)
