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


class CapturedWork:
    """A graph on the GPU `device`, made in a `capturing()` block.

    `taken` are the arrays that it reads what is given from. `joins`: launch elementwise functions together, see
    Note [Groups].
    """

    def __init__(self, device, joins=True):
        self.device = device
        self.taken: list[Any] = []
        self._pool = Pool()
        self._capture = Capture(self._pool)
        self._graph: Any = None
        self._stream: Any = None  # of the last launch
        self._groups = self._capture.groups = Groups() if joins else None

    @contextmanager
    def capturing(self, given) -> Iterator[None]:
        """Capture what the block does; `given` are arrays like those of each call."""
        with cupy().cuda.Stream():
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
        return self._capture._used

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
        self._wait_for_last()
        for own, array in zip(self.taken, given):
            copy(own, array)
        for numbers, (start, count) in self._capture.drawn.items():
            set_start(numbers, count, start)
        self._graph.launch()

    def _wait_for_last(self) -> None:
        """Have the current stream wait for the last launch, which used the same memory."""
        stream, last = cupy().cuda.get_current_stream(), self._stream
        if last is not None and last != stream:
            stream.wait_event(last.record(cupy().cuda.Event(disable_timing=True)))
        self._stream = stream

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
        self._wait_for_last()
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

    def is_as(self, snapshot):
        """Whether the memory from elsewhere is as in a snapshot. Waits for the GPU."""
        return all(are_equal(_bytes_of(mem), snapshot[key]) for key, mem in self.used.items())


def _whole(mem):
    return cupy().cuda.MemoryPointer(mem, 0)


def _bytes_of(mem):
    return cupy().ndarray((mem.size,), np.uint8, _whole(mem))


def _copy_of(mem):
    return copied(_bytes_of(mem))


def _arrays(values):
    """Yield the GPU arrays among the values that a capture keeps."""
    for value in values:
        if isinstance(value, gpu_class()):
            yield value
        elif isinstance(value, (tuple, list)):
            yield from _arrays(value)
