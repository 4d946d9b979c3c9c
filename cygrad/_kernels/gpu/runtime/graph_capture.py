"""Captures of graphs: which memory what is captured takes, and what the graph keeps.

Note [Captures]
---------------
While a stream captures, nothing runs: CUDA notes the launches, which use the same memory at each replay. So memory
comes from a pool of the graph's own, whose blocks nobody else gets as long as the graph lives. What is copied from the
CPU's memory (tables, constants) is copied at once, by another stream, and kept by the graph, as is what caches gave.
Numbers of a generator start at a place that is read on the GPU, where each replay writes it.
"""

import sys
import weakref
from _thread import _local as local  # `threading` takes longer to import than all of this package

import numpy as np

from cygrad._kernels.device.cupy_library import cupy, current_device, is_loaded

_of_thread = local()
pools: weakref.WeakSet = weakref.WeakSet()  # those of all graphs


class Pool:
    """Memory for graphs. Blocks are the driver's, and kept: CuPy's pool may give back what is free at the moment."""

    def __init__(self):
        cuda, blocks = cupy().cuda, []

        def allocate(size):
            try:
                block = cuda.Memory(size)
            except cuda.runtime.CUDARuntimeError:
                cupy().get_default_memory_pool().free_all_blocks()
                block = cuda.Memory(size)
            blocks.append(block)
            return cuda.MemoryPointer(block, 0)

        self._blocks, self._device = blocks, cuda.Device
        self.pool = cuda.MemoryPool(allocate)
        pools.add(self)

    def __del__(self):
        for index in () if sys.is_finalizing() else {block.device_id for block in self._blocks}:
            with self._device(index):
                self.pool.free_all_blocks()


class Capture:
    """What this thread captures, from `begin` to `end`."""

    def __init__(self, pool):
        self.pool = pool
        self.kept = []  # arrays that the graph reads
        self.workspaces = {}  # of its products, by stream
        self.drawn = {}  # by stream of random numbers: where it begins, on the GPU, and how many are drawn
        self._allocating = cupy().cuda.using_allocator(pool.pool.malloc)
        self._beside = {}  # for each GPU the stream that copies

    def begin(self):
        """Let memory of this thread come from the pool, and begin."""
        self._allocating.__enter__()
        self._stream = cupy().cuda.get_current_stream()
        try:
            # CUDA's other modes would forbid that the pool grows
            self._stream.begin_capture()
        except BaseException:
            self._allocating.__exit__(None, None, None)
            raise
        _of_thread.capture = self

    def end(self):
        """The graph."""
        _of_thread.capture = None
        self._allocating.__exit__(None, None, None)
        graph = self._stream.end_capture()
        for stream in self._beside.values():
            stream.synchronize()
        return graph

    def beside(self):
        """A stream that does not capture, as a context."""
        index = current_device()
        if index not in self._beside:
            self._beside[index] = cupy().cuda.Stream(non_blocking=True)
        return self._beside[index]

    def draw(self, numbers, count):
        """(array with seed and first counter, how many of this capture come before) of so many counters."""
        if numbers not in self.drawn:
            with self.beside():
                self.drawn[numbers] = [cupy().empty(2, np.uint64), 0]
        found = self.drawn[numbers]
        first = found[1]
        found[1] += count
        return found[0], np.uint64(first)


def current():
    """The capture of this thread, or None."""
    return getattr(_of_thread, "capture", None)


def is_capturing():
    """Does the stream that this thread uses capture, for us or for another?"""
    return is_loaded() and bool(cupy().cuda.get_current_stream().is_capturing())


def uploaded(array):
    """An array of the CPU's memory on the current GPU, for kernels to read."""
    capture = current()
    if capture is None:
        return cupy().array(array)
    with capture.beside():
        found = cupy().array(array)
    capture.kept.append(found)
    return found


def place():
    """The current GPU and stream. What is kept by it was made there before, so that no stream has to wait for it."""
    return current_device(), cupy().cuda.get_current_stream().ptr


def kept(value):
    """What a cache gave, an array or a tuple of such: a capture keeps it."""
    capture = current()
    if capture is not None:
        capture.kept.append(value)
    return value
