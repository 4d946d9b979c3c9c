"""Reductions of large arrays between processes of one machine, through memory that all of them see.

Each process owns a slot there, and each array is cut into one part for each process. A process copies the other parts
of its array to its slot; once all have, it reduces its own part from all slots, in the order of ranks, into its slot,
whence the others fetch it. So each number is computed once, and is the same everywhere. Long arrays go chunk by chunk,
small enough for the caches, through two slots in turn: who has arrived at a chunk is through with the last but one.

Next to its count of chunks, each process writes what it reduces, so that a process that reduces something else is
found.

Processes count their steps in memory next to the slots. This relies on writes being seen in the order they are made,
which holds for x86; elsewhere `is_ordered` is False, and MPI does it all.
"""

import mmap
import os
import platform
import tempfile
from collections import deque

import numpy as np

from cygrad.distributed._c10d.engines.engine import Handle
from cygrad.distributed._c10d.errors import DistBackendError

__all__ = ["FUNCTIONS", "LEAST", "SharedMemory", "is_ordered"]

LEAST = 1 << 16  # bytes from which on this is quicker than MPI
_CHUNK = 1 << 20  # bytes of a slot
_LINE = 64  # bytes between counters, so that each has a cache line of its own
FUNCTIONS = {
    "sum": np.add, "product": np.multiply, "min": np.minimum, "max": np.maximum,
    "band": np.bitwise_and, "bor": np.bitwise_or, "bxor": np.bitwise_xor,
}  # fmt: skip


def is_ordered():
    """Whether this machine's processors show writes to each other in the order they are made."""
    return platform.machine() in ("x86_64", "AMD64")


class SharedMemory:
    """The slots of the processes of a group, all on this machine. `engine` is what connects them before."""

    def __init__(self, engine):
        self._engine, self._rank, self._size = engine, engine.rank, engine.size
        self._memory = None
        self._count = 0  # of chunks, over all arrays
        self._queue: deque = deque()

    def all_reduce(self, buffer, op):
        """Reduce over all processes, in place."""
        transfer = _Transfer(self, self._all_reduce(buffer, op))
        self._queue.append(transfer)
        transfer.test()
        return transfer

    def advance(self):
        """Move on as far as possible, one transfer after the other: they share the slots."""
        while self._queue and self._queue[0].step():
            self._queue.popleft()

    # --- Steps: generators that yield where they would wait --------------------------------------

    def _all_reduce(self, buffer, op):
        if self._memory is None and not (yield from self._meet()):
            yield from _through(self._engine.all_reduce_by_mpi(buffer, op))
            return
        function = FUNCTIONS[op]
        self._what = _signature(buffer, op)
        length = _CHUNK // buffer.itemsize
        slots = [half.view(buffer.dtype) for half in self._slots]
        for begin in range(0, len(buffer), length):
            chunk = buffer[begin : begin + length]
            yield from self._reduce_chunk(chunk, [half[:, : len(chunk)] for half in slots][self._count % 2], function)

    def _reduce_chunk(self, chunk, slots, function):
        rank, size = self._rank, self._size
        bounds = [len(chunk) * part // size for part in range(size + 1)]
        mine = slice(bounds[rank], bounds[rank + 1])
        slot = slots[rank]
        slot[: mine.start] = chunk[: mine.start]
        slot[mine.stop :] = chunk[mine.stop :]
        yield from self._begin()
        parts = [chunk[mine] if each == rank else slots[each][mine] for each in range(size)]
        result = function(parts[0], parts[1], out=slot[mine])
        for part in parts[2:]:
            function(result, part, out=result)
        yield from self._arrive(1)
        for each in range(size):
            part = slice(bounds[each], bounds[each + 1])
            chunk[part] = slots[each][part]

    def _begin(self):
        """Say that this process has filled its slot, wait until all have, and check that they reduce the same."""
        self._count += 1
        counters, what, line = self._counters[0], self._what, _LINE // 8
        at = 1 + self._count % 2  # who is through writes the next one while others still look at this one
        counters[self._rank * line + at] = what
        yield from self._arrive(0)
        for each in range(self._size):
            if counters[each * line + at] != what:
                raise DistBackendError(
                    f"all_reduce: rank {each} of the group calls it with another size, dtype or operation than rank "
                    f"{self._rank}\n"
                    "  to fix it: set CYGRAD_DISTRIBUTED_DEBUG=1, which names both lines before data moves"
                )

    def _arrive(self, step):
        """Say that this process is through with a step, and wait until all are."""
        counters, count = self._counters[step], self._count
        counters[self._rank * (_LINE // 8)] = count
        for each in range(self._size):
            at = each * (_LINE // 8)
            while counters[at] < count:
                yield

    def _meet(self):
        """Share a file, which has no name any more once all have it open; returns whether there is room for one."""
        size, counters = self._size, 2 * self._size * _LINE
        name, file = np.zeros(256, np.uint8), None
        if self._rank == 0:
            file, path = _file(counters + 2 * size * _CHUNK)
            name[: len(path)] = np.frombuffer(path, np.uint8)
        yield from _through(self._engine.broadcast(name, 0))
        path = bytes(name).rstrip(b"\0")
        if not path:
            return False
        if file is None:
            file = os.open(path, os.O_RDWR)
        memory = mmap.mmap(file, counters + 2 * size * _CHUNK)
        os.close(file)
        yield from _through(self._engine.barrier())
        if self._rank == 0:
            os.unlink(path)
        half = counters // 2
        self._counters = [memoryview(memory)[each * half : (each + 1) * half].cast("q") for each in range(2)]
        slots = np.frombuffer(memory, np.uint8, 2 * size * _CHUNK, counters)
        self._slots = slots.reshape(2, size, _CHUNK)
        self._memory = memory
        return True


def _signature(buffer, op):
    """A number of what all processes must agree in."""
    return len(buffer) << 16 | buffer.dtype.num << 8 | list(FUNCTIONS).index(op)


def _file(length):
    """A file of this length in memory, or else on disk, and its name; without room (None, b"").

    Only Linux promises room for a file; elsewhere a process could be ended when it writes to its memory.
    """
    if not hasattr(os, "posix_fallocate"):
        return None, b""
    for folder in ("/dev/shm", tempfile.gettempdir()):
        if not os.path.isdir(folder):
            continue
        file, path = tempfile.mkstemp(prefix="cygrad-", dir=folder)
        try:
            os.posix_fallocate(file, 0, length)
            return file, path.encode()
        except OSError:
            os.close(file)
            os.unlink(path)
    return None, b""


def _through(handle):
    while not handle.test():
        yield


class _Transfer(Handle):
    def __init__(self, memory, steps):
        self._memory, self._steps = memory, steps
        self._is_done, self._error = False, None

    def step(self):
        """Move on; returns whether it is finished. An error is raised where this transfer is looked at."""
        try:
            for _ in self._steps:
                return False
        except DistBackendError as error:
            self._error = error
        self._is_done = True
        return True

    def test(self):
        if not self._is_done:
            self._memory.advance()
        if self._error is not None:
            raise self._error
        return self._is_done
