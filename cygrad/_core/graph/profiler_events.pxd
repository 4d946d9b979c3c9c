"""Events of the profiler; see profiler_events.pyx."""

from cpython.object cimport PyObject

from cygrad._core.graph.node cimport Node
from cygrad._core.graph.saved_slots cimport SavedSlots
from cygrad._core.runtime.thread_state cimport ThreadState, thread_state

cpdef enum:                     # kinds of events
    OP = 0                      # a built-in op
    IN_PLACE = 1                # its in-place form
    WITH_OUT = 2                # the form that writes into `out`
    FUNCTION = 3                # forward of a custom function
    NODE = 4                    # a node of a backward pass
    RANGE = 5                   # named by the user

cdef struct Event:
    long long start, end        # ticks (clock.h); end is 0 while the event is running
    PyObject* owner             # owned: the op's row, a name, or a class that has the name
    PyObject* code              # owned, or NULL: the site of the op, or of the op that recorded the node
    void* node                  # not owned; only identifies the node
    unsigned long long sequence  # of the node; NO_NODE if there is none
    long long saved             # bytes that the node saves for backward
    long long allocated         # bytes of newly allocated results
    int lasti
    int kind

cdef class Events:
    cdef Event* events
    cdef Py_ssize_t n, capacity
    cdef bint with_shapes, with_stack, detailed     # `detailed`: either of the two
    cdef readonly long long started, stopped        # in nanoseconds; 0: not yet
    cdef long long first_tick, last_tick            # at those times
    cdef dict shapes            # {index of the event: shapes of its inputs}
    cdef dict stacks
    cdef public object watcher  # None, or notified when events begin and end (autograd/_profiler_gpu.py)
    cdef object outer           # the collection that was active when this one started
    cdef long long mark         # when the running op began
    cdef PyObject* mark_code    # its site; not owned, only compared
    cdef int mark_lasti

    cdef Py_ssize_t add(self, object owner, int kind, long long start) except -1
    cdef int describe(self, Py_ssize_t event, tuple inputs) except -1

cdef Py_ssize_t begin_event(Events events, object owner, int kind, tuple inputs) except -1
cdef int end_event(Events events, Py_ssize_t event) except -1
cdef int set_node(Events events, Py_ssize_t event, Node node, bint recorded, long long saved) except -1
cdef long long saved_bytes(SavedSlots node) except -1
# An op with result `out` (or a list of results) ends now; `owner` is its row or another name.
cdef int note_op(ThreadState* state, object owner, int kind, Node node, object out, tuple inputs) except -1
cdef int mark_line(ThreadState* state) except -1        # an op begins, or has already begun; only while profiling


cdef inline bint is_detailed(ThreadState* state) noexcept:
    """Whether the inputs are needed for the event."""
    return (<Events>state.events).detailed


cdef inline int mark_start() except -1:
    """Mark the start of an op, when it begins to check its arguments."""
    cdef ThreadState* state = thread_state()
    return 0 if state.events == NULL else mark_line(state)
