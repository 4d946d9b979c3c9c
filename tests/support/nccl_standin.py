"""A stand-in for `cupy.cuda.nccl` whose ranks are threads, on the stand-in for CuPy: pointers are of main memory.

Calls must be made on a stream of their own, which has waited for the current one: `waited` are the streams that have.
"""

import ctypes
import itertools
import threading
import types

import numpy as np

DTYPES = [np.int8, np.uint8, np.int32, np.uint32, np.int64, np.uint64, np.float16, np.float32, np.float64, None]
OPS = [np.add, np.multiply, np.maximum, np.minimum]
_numbers = itertools.count(1)
_worlds: dict = {}
_lock = threading.Lock()
_groups = threading.local()
groups: list = []  # the threads that have ended a group of calls, once for each


class _World:
    def __init__(self, size):
        self.barrier = threading.Barrier(size, timeout=30)
        self.slots = [None] * size
        self.letters = {(a, b): [] for a in range(size) for b in range(size)}
        self.changed = threading.Condition()


class NcclCommunicator:
    """One rank's end; each call is through when it returns."""

    def __init__(self, size, identity, rank):
        assert len(identity) == 128 and isinstance(identity, tuple)
        with _lock:
            self._world = _worlds.setdefault(identity, _World(size))
        self.rank, self.size, self.streams, self.is_open = rank, size, set(), True
        self.failure = self.aborted_by = None  # what `check_async_error` raises, and the thread that has aborted
        self._world.barrier.wait()

    def _meet(self, stream, mine):
        assert stream != 0 and self.is_open
        self.streams.add(stream)
        self._world.slots[self.rank] = mine
        self._world.barrier.wait()
        everyones = list(self._world.slots)
        self._world.barrier.wait()
        return everyones

    def allReduce(self, sent, received, count, dtype, op, stream):
        self._reduce(sent, received, count, dtype, op, stream, slice(None))

    def reduce(self, sent, received, count, dtype, op, root, stream):
        self._reduce(sent, received, count, dtype, op, stream, slice(None) if self.rank == root else None)

    def reduceScatter(self, sent, received, count, dtype, op, stream):
        part = slice(self.rank * count, (self.rank + 1) * count)
        self._reduce(sent, received, count * self.size, dtype, op, stream, part)

    def _reduce(self, sent, received, count, dtype, op, stream, part):
        everyones = self._meet(stream, (view(sent, count, dtype).copy(), dtype, op))
        assert len({each[1:] for each in everyones}) == 1
        total = everyones[0][0].copy()
        for each, _, _ in everyones[1:]:
            total = OPS[op](total, each).astype(total.dtype)
        if part is not None:
            view(received, len(total[part]), dtype)[:] = total[part]

    def broadcast(self, sent, received, count, dtype, root, stream):
        view(received, count, dtype)[:] = self._meet(stream, view(sent, count, dtype).copy())[root]

    def allGather(self, sent, received, count, dtype, stream):
        everyones = self._meet(stream, view(sent, count, dtype).copy())
        view(received, count * self.size, dtype)[:] = np.concatenate(everyones)

    def send(self, sent, count, dtype, peer, stream):
        """Like a kernel, it is through once the other rank has received: so a rank that waits for it blocks others."""
        letter = [view(sent, count, dtype).copy(), False]
        with self._world.changed:
            self._world.letters[self.rank, peer].append(letter)
            self._world.changed.notify_all()
        _now_or_at_the_end(lambda: self._delivered(letter))

    def _delivered(self, letter):
        with self._world.changed:
            assert self._world.changed.wait_for(lambda: letter[1], 5), "a deadlock: nobody receives"

    def recv(self, received, count, dtype, peer, stream):
        _now_or_at_the_end(lambda: self._receive(received, count, dtype, peer), is_first=True)

    def _receive(self, received, count, dtype, peer):
        box = self._world.letters[peer, self.rank]
        with self._world.changed:
            assert self._world.changed.wait_for(lambda: box, 5), "a deadlock: nobody sends"
            letter = box.pop(0)
            view(received, count, dtype)[:] = letter[0]
            letter[1] = True
            self._world.changed.notify_all()

    def check_async_error(self):
        assert self.is_open
        if self.failure is not None:
            raise RuntimeError(self.failure)

    def abort(self):
        self.is_open = False
        self.aborted_by = threading.current_thread().name

    def destroy(self):
        self.is_open = False


def _now_or_at_the_end(call, is_first=False):
    """Call now, or, within a group, at the end of it: receipts first, and then what waits for those of others."""
    if getattr(_groups, "depth", 0):
        _groups.calls[not is_first].append(call)
    else:
        call()


def view(pointer, count, dtype):
    """The array at an address."""
    dtype = np.dtype(DTYPES[dtype])
    memory = (ctypes.c_char * (count * dtype.itemsize)).from_address(pointer)
    return np.frombuffer(memory, dtype)


def group_start():
    _groups.depth = getattr(_groups, "depth", 0) + 1
    if _groups.depth == 1:
        _groups.calls = [], []


def group_end():
    _groups.depth -= 1
    if _groups.depth == 0:
        groups.append(threading.current_thread().name)
        for call in [*_groups.calls[0], *_groups.calls[1]]:
            call()


def module():
    """What `from cupy.cuda import nccl` gives."""
    made = types.ModuleType("cupy.cuda.nccl")
    made.NcclCommunicator = NcclCommunicator
    made.get_unique_id = lambda: tuple(next(_numbers) % 128 for _ in range(128))
    made.groupStart, made.groupEnd = group_start, group_end
    return made
