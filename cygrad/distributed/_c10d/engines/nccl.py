"""The engine on NCCL, through CuPy: transfers between GPUs, on a stream of the group's own.

Its arrays are one-dimensional tensors on the GPU. The stream waits for what the current stream has computed; waiting
for a transfer lets the current stream wait, not the program. It has not run on several GPUs yet: tests have a stand-in.
"""

import sys
import threading
import time
from collections import deque
from contextlib import contextmanager, nullcontext
from typing import Any

import numpy as np

from cygrad import complex64, complex128, cuda, float32, float64, int16, int32, uint16
from cygrad.cuda.nccl import DTYPES, OPS, communicator, group, unique_id
from cygrad.distributed._c10d.engines.engine import Engine, Handle
from cygrad.distributed._c10d.errors import DistBackendError
from cygrad.distributed._c10d.supervision.guard import program_line

__all__ = ["Nccl"]

_LOOK = 0.1  # seconds between two looks at the transfers under way
_OF_BYTES = {"bor": "max", "band": "min"}  # of bools, which are 0 and 1
_WIDER = {int16: int32, uint16: int32}  # dtypes that NCCL lacks
_PARTS = {complex64: float32, complex128: float64}


class _Transfer(Handle):
    """What is under way on the group's stream, up to an event; that is there once NCCL has been called."""

    event: Any = None
    deadline = watch = None  # once someone waits

    def __init__(self, engine, text, source, tensors, finish):
        self.text, self.begun = text, time.monotonic()
        self._engine, self._source, self._tensors, self._finish = engine, source, tensors, finish

    def is_over(self):
        """Whether the GPU is through with it."""
        return self.event is not None and self.event.query()

    def test(self):
        self._engine.check()
        if not self.is_over():
            return False
        self._end()
        return True

    def wait(self, timeout=None, watch=None):
        self._engine.check()
        self.watch = watch
        self.deadline = None if timeout is None else time.monotonic() + timeout
        self._end()

    def _end(self):
        """Let the current stream wait for it, and then finish what NCCL has not done."""
        if self.event is None:
            raise RuntimeError(f"{self.text} has not begun: wait for it behind the block of `_coalescing_manager`")
        self.event.wait()
        if self._finish is not None:
            self._finish()
        self._finish, self._tensors = None, ()

    def abort(self):
        self._engine.abort()

    def source(self):
        return self._source


class Nccl(Engine):
    """The GPUs of the processes that `host`, an engine for the main memory, connects.

    NCCL begins a transfer and returns; if another process does not come, the GPU waits for ever, and with it whoever
    waits for the GPU. So a thread looks after transfers (`_Watchdog`): it aborts them when NCCL has failed, another
    process has failed or left, or the time is up. What the GPU has then is worth nothing: all further calls raise, and
    unless the program ends by that within some seconds, the job is ended (`guard`, if there is one).
    """

    on_device = True

    def __init__(self, host, guard=None):
        self._host, self._guard = host, guard
        self.rank, self.size = host.rank, host.size
        self._communicator: Any = None  # made, as the stream is, when the first tensor tells the GPU
        self._stream: Any = None
        self._together: Any = None  # [(transfer, call)] within `together`
        self._under_way: deque = deque()
        self._lock = threading.Lock()
        self.error: Any = None

    @property
    def host(self):
        return self._host

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
        """Raise if a transfer of this group has failed."""
        if self.error is None and self._communicator is not None:
            self._ask()
        if self.error is not None:
            raise self.error

    def _ask(self):
        """Ask NCCL whether it has failed, and abort then."""
        try:
            self._communicator.check_async_error()
        except Exception as error:
            self._fail(f"NCCL: {error}")

    def abort(self):
        """End all transfers, here and, by that, in the other processes."""
        self._fail("aborted")

    def _fail(self, why):
        with self._lock:
            if self.error is None:
                first = next((each.text for each in list(self._under_way)), "between two collectives")
                self.error = DistBackendError(f"[rank {self.rank}] {first}: {why}")
                self._communicator.abort()

    @contextmanager
    def together(self):
        if self._together is not None:  # within another
            yield
            return
        self._together = []
        try:
            yield
            calls, self._together = self._together, None
            if calls:
                self._issue(calls)
        finally:
            self._together = None

    def _begin(self, name, tensors, call, source=None, finish=None):
        """Let the group's stream call NCCL once it may; returns the handle, which keeps the tensors."""
        if self.error is not None:
            raise self.error
        text = f"{name} of {sum(each.nbytes for each in tensors)} bytes at {program_line(sys._getframe(1))}"
        transfer = _Transfer(self, text, source, tensors, finish)
        if self._together is not None:
            self._together.append((transfer, tensors, call))
        else:
            self._issue([(transfer, tensors, call)])
        return transfer

    def _issue(self, calls):
        """Call NCCL, in one group if there are several calls, on the group's stream."""
        first = calls[0][1][0]
        self._prepare(first)
        self._stream.wait_stream(cuda.current_stream(first.device))
        with cuda.device(first.device), group() if len(calls) > 1 else nullcontext():
            for _, _, call in calls:
                call(self._communicator, self._stream.cuda_stream)
        event = self._stream.record_event()
        for transfer, _, _ in calls:
            transfer.event = event
            self._under_way.append(transfer)
        _WATCHDOG.watch(self)

    def look(self):
        """Called by the watchdog: fail if a transfer has, or will; returns whether any is under way."""
        while self._under_way and self._under_way[0].is_over():
            self._under_way.popleft()
        if not self._under_way or self.error is not None or self._communicator is None:
            return False
        self._ask()
        first, now = self._under_way[0], time.monotonic()
        if first.deadline is not None and now > first.deadline:
            self._fail(f"timed out after {now - first.begun:.1f} s")
        elif first.watch is not None:
            try:
                first.watch(now - first.begun)
            except DistBackendError as error:
                self._fail(str(error))
        if self.error is not None and self._guard is not None:
            self._guard.end_later(self.error)
        return self.error is None

    # --- Reductions ------------------------------------------------------------------------------

    def all_reduce(self, buffer, op):
        def call(nccl, stream, data=buffer):
            nccl.allReduce(data.data_ptr(), data.data_ptr(), data.numel(), *_of(data, op), stream)

        return self._reduced("all_reduce", buffer, buffer, call, op)

    def reduce(self, buffer, root, op):
        def call(nccl, stream, data=buffer):
            nccl.reduce(data.data_ptr(), data.data_ptr(), data.numel(), *_of(data, op), root, stream)

        return self._reduced("reduce", buffer, buffer if self.rank == root else None, call, op)

    def reduce_scatter(self, output, input, op):
        wide = _wide(input, op)
        part = _wide(output, op)

        def call(nccl, stream):
            nccl.reduceScatter(wide.data_ptr(), part.data_ptr(), part.numel(), *_of(part, op), stream)

        is_copy = part.data_ptr() != output.data_ptr()
        finish = (lambda: output.copy_(part)) if is_copy else None
        return self._begin("reduce_scatter", [part, wide], call, finish=finish)

    def _reduced(self, name, buffer, into, call, op):
        """Reduce in place; a dtype that NCCL lacks as a wider copy, which is written back."""
        wide = _wide(buffer, op)
        is_copy = into is not None and wide.data_ptr() != buffer.data_ptr()
        finish = (lambda: into.copy_(wide)) if is_copy else None
        return self._begin(name, [wide], lambda nccl, stream: call(nccl, stream, wide), finish=finish)

    # --- Moves, of bytes -------------------------------------------------------------------------

    def broadcast(self, buffer, root):
        def call(nccl, stream):
            nccl.broadcast(buffer.data_ptr(), buffer.data_ptr(), buffer.numel(), DTYPES["uint8"], root, stream)

        return self._begin("broadcast", [buffer], call)

    def all_gather(self, output, input):
        def call(nccl, stream):
            nccl.allGather(input.data_ptr(), output.data_ptr(), input.numel(), DTYPES["uint8"], stream)

        return self._begin("all_gather", [output, input], call)

    def all_to_all(self, output, input, output_sizes, input_sizes):
        def call(nccl, stream):
            with group():
                for peer, (incoming, outgoing) in enumerate(zip(output.split(output_sizes), input.split(input_sizes))):
                    _send(nccl, outgoing, peer, stream)
                    _recv(nccl, incoming, peer, stream)

        return self._begin("all_to_all", [output, input], call)

    def gather(self, output, input, root):
        def call(nccl, stream):
            with group():
                _send(nccl, input, root, stream)
                for peer, part in enumerate(output.chunk(self.size) if self.rank == root else ()):
                    _recv(nccl, part, peer, stream)

        return self._begin("gather", [input] if output is None else [input, output], call)

    def scatter(self, output, input, root):
        def call(nccl, stream):
            with group():
                for peer, part in enumerate(input.chunk(self.size) if self.rank == root else ()):
                    _send(nccl, part, peer, stream)
                _recv(nccl, output, root, stream)

        return self._begin("scatter", [output] if input is None else [output, input], call)

    def send(self, buffer, peer, tag):
        return self._begin("send", [buffer], lambda nccl, stream: _send(nccl, buffer, peer, stream))

    def recv(self, buffer, peer, tag):
        if peer is None:
            raise RuntimeError("ProcessGroupNCCL does not support recvAnysource\n  to fix it: name the source rank")
        return self._begin("recv", [buffer], lambda nccl, stream: _recv(nccl, buffer, peer, stream), peer)

    def barrier(self):
        if self._stream is not None:
            self._stream.synchronize()
        return self._host.barrier()

    def split(self, ranks):
        return Nccl(self._host.split(ranks))

    def close(self):
        _WATCHDOG.forget(self)
        if self._communicator is not None:
            if self.error is None:
                self._stream.synchronize()
                self._communicator.destroy()
            self._communicator = None


class _Watchdog:
    """Looks after the engines with transfers under way, in one thread, which ends when there are none."""

    def __init__(self):
        self._engines: set = set()
        self._lock = threading.Lock()
        self._thread: Any = None

    def watch(self, engine):
        """Look after an engine until its transfers are through."""
        with self._lock:
            self._engines.add(engine)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="cygrad.distributed NCCL", daemon=True)
                self._thread.start()

    def forget(self, engine):
        """Look after it no more."""
        with self._lock:
            self._engines.discard(engine)

    def _run(self):
        while True:
            time.sleep(_LOOK)
            for engine in list(self._engines):
                with self._lock:  # so that an engine which is closed is not looked at
                    if engine in self._engines and not engine.look():
                        self._engines.discard(engine)
            with self._lock:
                if not self._engines:
                    self._thread = None
                    return


_WATCHDOG = _Watchdog()


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
