"""Events of the profiler; see profiler_events.pyx."""

from cpython.object cimport PyObject

from cygrad._core.graph.observers cimport Observer

cdef struct Event:
    long long start, end        # ticks (clock.h); end is 0 while the event is running
    PyObject* owner             # owned: the op's row, a name, or a class that has the name
    PyObject* code              # owned, or NULL: the site of the op, or of the op that recorded the node
    void* node                  # not owned; only identifies the node
    unsigned long long sequence  # of the node; NO_NODE if there is none
    long long saved             # bytes that the node saves for backward
    long long allocated         # bytes of newly allocated results
    int lasti
    int kind                    # OP, NODE, ... (observers.pxd)

cdef class Events(Observer):
    cdef Event* events
    cdef Py_ssize_t n, capacity
    cdef bint with_shapes, with_stack, detailed     # `detailed`: either of the two
    cdef readonly long long started, stopped        # in nanoseconds; 0: not yet
    cdef long long first_tick, last_tick            # at those times
    cdef dict shapes            # {index of the event: shapes of its inputs}
    cdef dict stacks
    cdef dict algorithms        # {index of the event: the algorithm that its kernel has chosen}
    cdef public object watcher  # None, or notified when events begin and end (autograd/_profiler_gpu.py)
    cdef object outer           # the collection that was active when this one started
    cdef long long mark         # when the running op began
    cdef PyObject* mark_code    # its site; not owned, only compared
    cdef int mark_lasti

    cdef Py_ssize_t add(self, object owner, int kind, long long start) except -1
    cdef int describe(self, Py_ssize_t event, tuple inputs) except -1
