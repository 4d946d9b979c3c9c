"""Captures of CUDA graphs: where captured work allocates, and what a graph keeps alive.

Note [Captures]
---------------
While a stream captures, nothing runs: CUDA records the launches, and each replay uses the same memory. Memory therefore
comes from a pool owned by the graph, whose blocks nobody else gets while the graph lives. Memory from elsewhere that
captured work uses, of tensors made before, is kept by the graph (`keep`), which may outlive these tensors.
Copies from host memory (tables, constants) are made at once, on another stream; the graph keeps them alive, as it does
results of caches.
Random numbers start at a counter that is read on the GPU; each replay writes it there.
"""

import sys
import weakref
from _thread import _local as local  # importing `threading` takes longer than importing this whole package
from typing import Any

import numpy as np

from cygrad._kernels.device.cupy_library import cupy, current_device, gpu_class, is_loaded
from cygrad._kernels.device.gpu_forms import captures
from cygrad._library import later

allocator = later("cygrad._kernels.gpu.runtime.allocator")  # which imports this module

_of_thread = local()
pools: weakref.WeakSet = weakref.WeakSet()  # the pools of all graphs


class Pool:
    """Memory for graphs. Its blocks come from the driver and are kept: CuPy's pool may free blocks that are unused."""

    def __init__(self):
        cuda, blocks = cupy().cuda, []

        def allocate(size):
            try:
                block = cuda.Memory(size)
            except cuda.runtime.CUDARuntimeError:
                allocator.pool().free_all_blocks()
                block = cuda.Memory(size)
            blocks.append(block)
            return cuda.MemoryPointer(block, 0)

        self._blocks, self._device = blocks, cuda.Device
        self.pool = cuda.MemoryPool(allocate)
        pools.add(self)

    def owns(self, address):
        """Whether memory at an address is the pool's."""
        return any(block.ptr <= address < block.ptr + block.size for block in self._blocks)

    def __del__(self):
        for index in () if sys.is_finalizing() else {block.device_id for block in self._blocks}:
            with self._device(index):
                self.pool.free_all_blocks()


class Capture:
    """The capture of this thread, from `begin` to `end`."""

    def __init__(self, pool):
        self.pool = pool
        self._used: dict[int, Any] = {}  # memory from elsewhere that the graph uses, by the id of its object
        self.kept = [self._used]  # what the graph needs
        self.workspaces = {}  # cuBLAS workspaces, by stream
        self.plans = {}  # cuFFT's plans, by GPU, stream and arguments
        self.drawn = {}  # by random number stream: [its start, on the GPU, how many counters are drawn so far]
        self.groups: Any = None  # what waits to be launched together (Note [Groups]), in compiled steps
        self._allocating = cupy().cuda.using_allocator(allocator.for_graphs(pool.pool.malloc))
        self.is_handed_on = False  # whether the next kernel is called by `hand_on`
        self._beside = {}  # by GPU: the stream for copies

    def begin(self):
        """Switch this thread's allocations to the pool, and begin to capture."""
        self._allocating.__enter__()
        self._stream = cupy().cuda.get_current_stream()
        try:
            # CUDA's other modes would forbid the pool to grow
            self._stream.begin_capture()
        except BaseException:
            self._allocating.__exit__(None, None, None)
            raise
        _of_thread.capture = self
        captures.add(self)

    def end(self):
        """End the capture and return the graph."""
        _of_thread.capture = None
        captures.discard(self)
        self._allocating.__exit__(None, None, None)
        graph = self._stream.end_capture()
        for stream in self._beside.values():
            stream.synchronize()
        return graph

    def keep(self, value):
        """Keep the memory of arrays in `value`, and in lists, tuples and dicts of it, unless it is the pool's."""
        if isinstance(value, gpu_class()):
            mem = value.data.mem
            if id(mem) not in self._used and not self.pool.owns(mem.ptr):
                self._used[id(mem)] = mem
        elif isinstance(value, (list, tuple)):
            for part in value:
                self.keep(part)
        elif isinstance(value, dict):
            self.keep(list(value.values()))

    def beside(self):
        """Return a stream that is not capturing, usable as a context manager."""
        index = current_device()
        if index not in self._beside:
            self._beside[index] = cupy().cuda.Stream(non_blocking=True)
        return self._beside[index]

    def uploaded_numbers(self, array):
        """Copy numbers to the GPU that each launch of the graph may find replaced there."""
        found = cupy().array(array)
        self.kept.append(found)
        return found

    def draw(self, numbers, count):
        """Reserve `count` counters; return (array of seed and first counter, how many this capture drew before)."""
        if numbers not in self.drawn:
            with self.beside():
                self.drawn[numbers] = [cupy().empty(2, np.uint64), 0]
        found = self.drawn[numbers]
        first = found[1]
        found[1] += count
        return found[0], np.uint64(first)


def current():
    """Return the capture of this thread, or None."""
    return getattr(_of_thread, "capture", None)


def is_capturing():
    """Whether this thread's current stream is capturing, for us or for anyone else."""
    return is_loaded() and bool(cupy().cuda.get_current_stream().is_capturing())


def uploaded(array):
    """Copy an array from host memory to the current GPU, for kernels to read."""
    capture = current()
    if capture is None:
        return cupy().array(array)
    with capture.beside():
        found = cupy().array(array)
    capture.kept.append(found)
    return found


def place():
    """Return the current GPU and stream, as a cache key: entries made on the same stream need no synchronization."""
    return current_device(), cupy().cuda.get_current_stream().ptr


def keep(*values):
    """Have a running capture, if there is one in this thread, keep the memory of arrays that its work uses."""
    capture = current() if captures else None
    if capture is not None:
        capture.keep(values)


def used(*values):
    """Tell a running capture that arrays are about to be used directly: it keeps them, and launches what waits."""
    if captures:
        keep(*values)
        settle()


def join(form, operands, args=()):
    """Let the call of a GPU form wait to be launched together with others, and return its result.

    None if it cannot wait: then all that waits has been launched.
    """
    capture = current()
    if capture is None or capture.groups is None or getattr(form, "hands_on", False):
        return None
    return capture.groups.take(form, operands, args)


def hand_on(form, *args):
    """Call a function that hands its arguments on to a kernel, and the results to its caller, without using them."""
    capture = current()
    if capture is None:
        return form(*args)
    capture.is_handed_on = True
    try:
        return form(*args)
    finally:
        capture.is_handed_on = False


def is_handed_on():
    """Whether the kernel that is being called may wait, since `hand_on` calls it; true once."""
    capture = current()
    found = capture is not None and capture.is_handed_on
    if found:
        capture.is_handed_on = False
    return found


def settle():
    """Launch what waits in the capture of this thread."""
    capture = current()
    if capture is not None and capture.groups is not None:
        capture.groups.launch()


def kept(value):
    """Return a cached array, or tuple of arrays, after a running capture has taken a reference to it."""
    capture = current()
    if capture is not None:
        capture.kept.append(value)
    return value
