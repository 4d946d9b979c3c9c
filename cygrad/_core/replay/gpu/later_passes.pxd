"""Backward passes that come after a captured step on a GPU. See later_passes.pyx."""

from cygrad._core.graph.tensor cimport Tensor
from cygrad._core.replay.graphs cimport Graph
from cygrad._core.replay.histories cimport CompiledFunctionBackward, Pass, Past

cdef class Values:                  # what one call has left for its backward pass
    cdef list given                 # the arrays of arguments and results that passes read, in the order of Memory.sources
    cdef list copies                # of Memory.inner, if another call has come in between; else None
    cdef object __weakref__

cdef class Memory:                  # of a step's graph
    cdef object work
    cdef object tenant              # weak reference to the Values that are in it, or None
    cdef readonly list inner        # arrays of bytes: what passes read besides arguments and results
    cdef list sources               # the graph's own arrays for arguments and results
    cdef bint is_busy               # whether one of its graphs is being launched
    cdef int vacate(self) except -1
    cdef int admit(self, Values values) except -1

cdef class GpuPast(Past):
    cdef readonly Memory memory_of_graph
    cdef object work, settings, default
    cdef list places                # (kind, number) of each of `Memory.sources`
    cdef dict changed               # memory outside that the step changes: arrays of bytes by the id of the memory
    cdef dict mutable               # the same of what it may change: all that it uses but leaves of its graph
    cdef list counts                # its version counters, and how they change
    cdef int device
    cdef tuple state_before(self)
    cdef int note_memory(self, list before) except -1
    cdef int capture_all(self, Graph graph, list leaves, list arguments, list before, list twins, tuple layouts) except -1
    cdef Pass recorded(self, tuple key, Graph graph, list outputs, list arguments, list before)
    cdef int enter_memory(self, Graph graph, list leaves, list arguments, list twins) except -1
    cdef int enter_reads(self, Pass each) except -1
    cdef str compare(self, list leaves, list twins, list arguments)
