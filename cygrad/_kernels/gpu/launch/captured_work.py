"""The work of a compiled step on a GPU: captured once as a graph, then launched with what each call gives.

The graph reads and writes memory of its own, see Note [Captures]. What a call gives is copied into `taken`, and what it
makes is copied out again, so that no array that anybody holds is overwritten by the next launch.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from cygrad._kernels.device.cupy_library import cupy, gpu_class
from cygrad._kernels.device.gpu_forms import extent
from cygrad._kernels.gpu.launch.groups import Groups
from cygrad._kernels.gpu.random.random import set_start
from cygrad._kernels.gpu.runtime.graph_capture import Capture, Pool, settle

_POISON = 0xFF  # as bytes of a number, NaN or -1


def has_room(a):
    """Whether the elements of an array fill most of the memory that they span, so that it may be copied as a whole."""
    low, high = extent(a)
    return high - low <= 4 * a.nbytes and all(stride >= 0 for stride in a.strides)


def room_for(a):
    """Return an uninitialized array like `a`, with its strides, in memory of its own."""
    low, high = extent(a)
    if low == high:
        return cupy().empty(a.shape, a.dtype)
    return cupy().ndarray(a.shape, a.dtype, cupy().cuda.alloc(high - low), a.strides)


def copy(target, source):
    """Copy the memory that an array spans to another one that is `room_for` it."""
    low, high = extent(source)
    if low != high:
        target.data.copy_from_device_async(source.data, high - low)


def copied(a):
    """Return a copy of an array in memory of its own, with its strides."""
    found = room_for(a)
    copy(found, a)
    return found


def are_equal(a, b):
    """Whether two arrays have one dtype, shape and strides, and the same bits. Waits for the GPU."""
    if a.dtype != b.dtype or a.shape != b.shape or a.strides != b.strides and a.size > 1:
        return False
    return not a.size or bool((_bytes(a) == _bytes(b)).all())


def _bytes(a):
    a = cupy().ascontiguousarray(a).reshape(-1)
    return cupy().ndarray((a.nbytes,), np.uint8, a.data)


def expanded(a):
    """Return an array of the dtype and shape of `a` whose memory is one element."""
    return cupy().ndarray(a.shape, a.dtype, cupy().zeros(1, a.dtype).data, (0,) * a.ndim)


def on_gpu(a):
    """Copy an array that steps forward through the whole of its base to the GPU, with its strides."""
    return cupy().ndarray(a.shape, a.dtype, cupy().asarray(a.base).data, a.strides)


def part_of(given, own, a):
    """Return the array on the memory of `given` that lies there as `a` does in that of `own`."""
    return cupy().ndarray(a.shape, a.dtype, given.data + (a.data.ptr - own.data.ptr), a.strides)


def bytes_of(mem):
    """Return a block of memory as an array of bytes."""
    return cupy().ndarray((mem.size,), np.uint8, _whole(mem))


class Room:
    """A stretch of a graph's memory, of which each call gets a copy, and with it the arrays in it."""

    def __init__(self, a):
        self._mem = a.data.mem
        self._low, self._high = extent(a)

    def widen(self, a):
        """Have a further array on the same memory be part of it."""
        low, high = extent(a)
        self._low, self._high = min(low, self._low), max(high, self._high)

    def fresh(self):
        """Return uninitialized memory for a call."""
        return cupy().cuda.alloc(self._high - self._low)

    def fill(self, memory):
        """Copy it to the memory of a call."""
        source = _whole(self._mem) + (self._low - self._mem.ptr)
        memory.copy_from_device_async(source, self._high - self._low)

    def part(self, memory, a):
        """Return the array of a call that lies in its memory as `a` does in the graph's."""
        return cupy().ndarray(a.shape, a.dtype, memory + (a.data.ptr - self._low), a.strides)


class CapturedWork:
    """A graph on the GPU `device`, made in a `capturing()` block.

    `taken` are the arrays that it reads what is given from. `joins`: launch elementwise functions together, see
    Note [Groups]. `after`: other work, which leaves values in its memory that this work reads.
    """

    def __init__(self, device, joins=True, after=None):
        self.device, self.joins = device, joins
        self.taken: list[Any] = []
        self.host: Any = None  # the `HostWork` whose numbers the graph reads, if there is any
        self._after = after
        self._order = _Order() if after is None else after._order
        self._on: Any = None if after is None else after._on
        self._pool = Pool()
        self._capture = Capture(self._pool)
        self._graph: Any = None
        self._groups = self._capture.groups = Groups() if joins else None

    @contextmanager
    def capturing(self, given) -> Iterator[None]:
        """Capture what the block does; `given` are arrays like those of each call."""
        self._on = self._on or cupy().cuda.Stream()
        with self._on:
            self._capture.begin()
            try:
                self.taken = [room_for(a) for a in given]
                yield
                settle()
            except BaseException:
                self._abandon()
                raise
            self._graph = self._capture.end()

    def _abandon(self) -> None:
        if self._groups is not None:
            self._groups.forget()
        try:
            self._capture.end()
        except Exception:  # a consequence of the error in the block
            pass

    def owns(self, a):
        """Whether an array is in the graph's memory, and not what a call gives."""
        return self._pool.owns(a.data.ptr) and all(a.data.mem is not taken.data.mem for taken in self.taken)

    @property
    def used(self):
        """The memory from elsewhere that the graph reads or writes, by the id of its object."""
        return {key: mem for key, mem in self._capture._used.items() if not self._is_inherited(mem)}

    @property
    def inherited(self):
        """The memory of the work before that the graph reads, by the id of its object."""
        return {key: mem for key, mem in self._capture._used.items() if self._is_inherited(mem)}

    @property
    def draws(self):
        """Whether it draws random numbers."""
        return bool(self._capture.drawn)

    def _is_inherited(self, mem):
        return self._after is not None and self._after._pool.owns(mem.ptr)

    @property
    def lines(self):
        """What was launched together: (kind, names of the functions, bytes read, bytes written)."""
        return [] if self._groups is None else self._groups.lines

    @property
    def size(self):
        """The bytes that the graph holds."""
        return sum(block.size for block in self._pool._blocks)

    def launch(self, given) -> None:
        """Do the work in the current stream, with these arrays."""
        self.wait_for_last()
        for own, array in zip(self.taken, given):
            copy(own, array)
        for numbers, (start, count) in self._capture.drawn.items():
            set_start(numbers, count, start)
        if self.host is not None:
            self.host.send()
        self._graph.launch()

    def wait_for_last(self) -> None:
        """Have the current stream wait for the last launch, which used the same memory."""
        stream, last = cupy().cuda.get_current_stream(), self._order.stream
        if last is not None and last != stream:
            stream.wait_event(last.record(cupy().cuda.Event(disable_timing=True)))
        self._order.stream = stream

    # -- for a launch whose effects are looked at --

    def positions(self):
        """Return where the random numbers stand that the work draws."""
        return [(numbers, numbers.seed, numbers.offset) for numbers in self._capture.drawn]

    def set_back(self, positions) -> None:
        """Let random numbers go on from where they stood."""
        for numbers, seed, offset in positions:
            numbers.restart(seed, offset)

    def poison(self) -> None:
        """Overwrite all of the graph's memory but its constants, so that what it reads too early is seen."""
        self.wait_for_last()
        starts = [start for start, _ in self._capture.drawn.values()]
        constants = [a for a in (*_arrays(self._capture.kept), *starts) if a.size]
        kept = [copied(a) for a in constants]
        for block in self._pool._blocks:
            cupy().cuda.MemoryPointer(block, 0).memset_async(_POISON, block.size)
        for constant, former in zip(constants, kept):
            copy(constant, former)

    def snapshot(self):
        """Return copies of all memory from elsewhere that the graph uses."""
        return {key: _copy_of(mem) for key, mem in self.used.items()}

    def exchange(self, former):
        """Put back what a `snapshot` holds, and replace it there by what has taken its place."""
        for key, mem in self.used.items():
            present = _copy_of(mem)
            _whole(mem).copy_from_device_async(former[key].data, mem.size)
            former[key] = present

    def changes(self, snapshot):
        """Return the memory from elsewhere that is not as in a snapshot, as arrays of bytes by the id of its object.

        Waits for the GPU.
        """
        now = {key: bytes_of(mem) for key, mem in self.used.items()}
        return {key: a for key, a in now.items() if not are_equal(a, snapshot[key])}

    def is_as(self, snapshot):
        """Whether the memory from elsewhere is as in a snapshot. Waits for the GPU."""
        return not self.changes(snapshot)


class _Order:
    """The stream of the last launch among graphs that share memory."""

    stream: Any = None


def _whole(mem):
    return cupy().cuda.MemoryPointer(mem, 0)


def _copy_of(mem):
    return copied(bytes_of(mem))


def _arrays(values):
    """Yield the GPU arrays among the values that a capture keeps."""
    for value in values:
        if isinstance(value, gpu_class()):
            yield value
        elif isinstance(value, (tuple, list)):
            yield from _arrays(value)
