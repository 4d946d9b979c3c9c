"""Many processes as threads of this one: worlds of any size for tests, without a launcher."""

import threading
import time
from collections import defaultdict, deque
from functools import reduce

import numpy as np

from cygrad.distributed._c10d.engines.engine import FINISHED, Engine, Handle
from cygrad.distributed._c10d.errors import DistBackendError

__all__ = ["Fake", "FakeWorld"]

_FUNCTIONS = {
    "sum": np.add, "product": np.multiply, "min": np.minimum, "max": np.maximum,
    "band": np.bitwise_and, "bor": np.bitwise_or, "bxor": np.bitwise_xor,
}  # fmt: skip


class FakeWorld:
    """What the threads of one world share. A thread that fails calls `fail`, and all that wait raise.

    calls: the names of all collectives that rank 0 of some group has begun, with the ranks of the group and bytes.
    """

    def __init__(self, size):
        self.size = size
        self.changed = threading.Condition()
        self.failure = None
        self.meetings: dict = {}
        self.letters: defaultdict = defaultdict(deque)
        self.calls: list = []

    def engine(self, rank):
        """The engine of the group of all, for the thread with this rank."""
        return Fake(self, rank, tuple(range(self.size)), 0)

    def fail(self, rank, error):
        """Tell all threads that one has failed."""
        with self.changed:
            self.failure = self.failure or (rank, error)
            self.changed.notify_all()

    def check(self):
        """Raise if a thread has failed."""
        if self.failure is not None:
            rank, error = self.failure
            raise DistBackendError(f"rank {rank} has failed: {type(error).__name__}: {error}") from error


class _Meeting(Handle):
    """A collective of one group: the last thread to come carries it out for all."""

    def __init__(self, world, ranks, name):
        self.world, self.ranks, self.name = world, ranks, name
        self.arguments: dict = {}
        self.done, self.error = False, None

    def test(self):
        if self.error is not None:
            raise DistBackendError(self.error)
        if not self.done:
            self.world.check()
        return self.done

    def wait(self, timeout=None, watch=None):
        begin = time.monotonic()
        with self.world.changed:
            while not self.test():
                left = None if timeout is None else begin + timeout - time.monotonic()
                if left is not None and left <= 0:
                    raise TimeoutError(f"these ranks have not come: {self._missing()}")
                self.world.changed.wait(left)

    def _missing(self):
        return [rank for index, rank in enumerate(self.ranks) if index not in self.arguments]


class Fake(Engine):
    """The engine of one thread."""

    def __init__(self, world, rank, ranks, key):
        self.rank, self.size = rank, len(ranks)
        self.world, self._ranks, self._key = world, ranks, key
        self._count = 0
        self._splits: defaultdict = defaultdict(int)

    def _meet(self, name, *arguments):
        """Take part in the next collective; the last to come carries it out by the function of its name."""
        world, self._count = self.world, self._count + 1
        where = (self._ranks, self._key, self._count)
        with world.changed:
            world.check()
            meeting = world.meetings.setdefault(where, _Meeting(world, self._ranks, name))
            if meeting.name != name:
                meeting.error = f"rank {self._ranks[self.rank]} calls {name}, others of its group {meeting.name}"
            meeting.arguments[self.rank] = arguments
            if self.rank == 0:
                world.calls.append((name, self._ranks, sum(getattr(each, "nbytes", 0) for each in arguments)))
            if len(meeting.arguments) == self.size:
                del world.meetings[where]
                self._carry_out(meeting)
            if meeting.done or meeting.error:
                world.changed.notify_all()
        return meeting

    def _carry_out(self, meeting):
        if meeting.error is None:
            try:
                globals()["_" + meeting.name](*zip(*(meeting.arguments[rank] for rank in range(self.size))))
                meeting.done = True
            except Exception as error:
                meeting.error = f"{meeting.name} of different arrays: {error}"
        meeting.arguments.clear()

    def all_reduce(self, buffer, op):
        return self._meet("all_reduce", buffer, op)

    def reduce(self, buffer, root, op):
        return self._meet("reduce", buffer, root, op)

    def broadcast(self, buffer, root):
        return self._meet("broadcast", buffer, root)

    def all_gather(self, output, input):
        return self._meet("all_gather", output, input)

    def reduce_scatter(self, output, input, op):
        return self._meet("reduce_scatter", output, input, op)

    def all_to_all(self, output, input, output_sizes, input_sizes):
        return self._meet("all_to_all", output, input, tuple(output_sizes), tuple(input_sizes))

    def gather(self, output, input, root):
        return self._meet("gather", output, input, root)

    def scatter(self, output, input, root):
        return self._meet("scatter", output, input, root)

    def barrier(self):
        return self._meet("barrier")

    def send(self, buffer, peer, tag):
        world = self.world
        with world.changed:
            world.check()
            world.letters[self._ranks, self._key, peer].append((self.rank, tag, buffer.copy()))
            world.changed.notify_all()
        return FINISHED

    def recv(self, buffer, peer, tag):
        return _Letter(self.world, self.world.letters[self._ranks, self._key, self.rank], buffer, peer, tag)

    def split(self, ranks):
        members = tuple(self._ranks[rank] for rank in ranks)
        self._splits[members] += 1
        return Fake(self.world, list(ranks).index(self.rank), members, (self._key, self._ranks, self._splits[members]))


class _Letter(Handle):
    """What another thread sends, or will send."""

    def __init__(self, world, box, buffer, peer, tag):
        self._world, self._box, self._buffer, self._peer, self._tag = world, box, buffer, peer, tag
        self._source = None

    def test(self):
        with self._world.changed:
            return self._source is not None or self._taken()

    def _taken(self):
        for place, (sender, tag, array) in enumerate(self._box):
            if tag == self._tag and self._peer in (None, sender):
                if array.nbytes > self._buffer.nbytes:
                    raise DistBackendError(f"{array.nbytes} bytes have come for a tensor of {self._buffer.nbytes}")
                del self._box[place]
                self._buffer[: len(array)] = array
                self._source = sender
                return True
        self._world.check()
        return False

    def wait(self, timeout=None, watch=None):
        begin = time.monotonic()
        with self._world.changed:
            while not self.test():
                left = None if timeout is None else begin + timeout - time.monotonic()
                if left is not None and left <= 0:
                    raise TimeoutError("nothing has been sent")
                self._world.changed.wait(left)

    def source(self):
        return self._source


# --- What the last thread does: each argument is a tuple of those of all threads -----------------


def _same(values):
    if any(value != values[0] for value in values):
        raise ValueError(f"one has {values[0]}, another {next(value for value in values if value != values[0])}")
    return values[0]


def _reduced(buffers, ops):
    """The sum and the like, in the order of ranks."""
    function = _FUNCTIONS[_same(ops)]
    _same([(len(each), each.dtype.str) for each in buffers])
    return reduce(lambda total, each: function(total, each, out=total), buffers[1:], buffers[0].copy())


def _all_reduce(buffers, ops):
    result = _reduced(buffers, ops)
    for each in buffers:
        each[...] = result


def _reduce(buffers, roots, ops):
    buffers[_same(roots)][...] = _reduced(buffers, ops)


def _broadcast(buffers, roots):
    root = _same(roots)
    _same([each.nbytes for each in buffers])
    for rank, each in enumerate(buffers):
        if rank != root:
            each[...] = buffers[root]


def _all_gather(outputs, inputs):
    _same([each.nbytes for each in inputs])
    joined = np.concatenate(inputs)
    for each in outputs:
        each[...] = joined


def _reduce_scatter(outputs, inputs, ops):
    for part, each in zip(np.split(_reduced(inputs, ops), len(outputs)), outputs):
        each[...] = part


def _all_to_all(outputs, inputs, output_sizes, input_sizes):
    parts = [np.split(each, np.cumsum(sizes)[:-1]) for each, sizes in zip(inputs, input_sizes)]
    for receiver, sizes in enumerate(output_sizes):
        _same([tuple(sizes), tuple(sent[receiver] for sent in input_sizes)])
        outputs[receiver][...] = np.concatenate([each[receiver] for each in parts])


def _gather(outputs, inputs, roots):
    outputs[_same(roots)][...] = np.concatenate(inputs)


def _scatter(outputs, inputs, roots):
    for part, each in zip(np.split(inputs[_same(roots)], len(outputs)), outputs):
        each[...] = part


def _barrier():
    pass
