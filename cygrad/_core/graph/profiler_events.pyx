"""Events of the profiler: what ran when in a thread, as an array of structs.

`ThreadState.events` is NULL unless profiling is on, and recording an op tests only that. An event allocates nothing
beyond its struct; names, lines and the call tree are computed when the user requests them.

An op is noted when it ends, by the common path of all ops (record.pyx). Its start is taken from a mark that entry points
set when they check their arguments (`mark_start`; of several marks at one line, the first counts).
"""

cimport cython
from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF, Py_XDECREF
from libc.stdlib cimport free, realloc
from libc.string cimport memset

import sys

from numpy cimport PyArray_BASE, PyArray_NBYTES, ndarray

from cygrad._core.graph.node cimport Node
from cygrad._core.graph.saved_slots cimport SavedSlots
from cygrad._core.runtime.thread_state cimport ThreadState, current_site, thread_state
from cygrad._core.graph.tensor cimport Tensor

cdef extern from "clock.h":
    long long cygrad_ticks() noexcept
    long long cygrad_nanoseconds() noexcept

cdef unsigned long long NO_NODE = <unsigned long long>-1


@cython.final
cdef class Events:
    """The events of this thread between `start` and `stop`, for `cygrad.autograd.profiler`."""

    def __cinit__(self, bint with_shapes=False, bint with_stack=False):
        self.with_shapes = with_shapes
        self.with_stack = with_stack
        self.detailed = with_shapes or with_stack
        self.shapes = {}
        self.stacks = {}

    def __dealloc__(self):
        cdef Py_ssize_t i
        for i in range(self.n):
            Py_XDECREF(self.events[i].owner)
            Py_XDECREF(self.events[i].code)
        free(self.events)

    def start(self):
        """Start collecting the events of this thread."""
        cdef ThreadState* state = thread_state()
        self.outer = None if state.events == NULL else <object>state.events
        Py_INCREF(self)
        state.events = <void*>self
        self.started = cygrad_nanoseconds()
        self.first_tick = cygrad_ticks()
        return self.started

    def stop(self):
        """Stop collecting, and resume the collection that was active before."""
        cdef ThreadState* state = thread_state()
        if state.events != <void*>self:
            raise RuntimeError("the profiler was not started in this thread, or another that was started later still runs")
        state.events = NULL if self.outer is None else <void*>self.outer
        Py_XDECREF(<PyObject*>self)
        self.outer = None
        self.last_tick = cygrad_ticks()
        self.stopped = cygrad_nanoseconds()
        return self.stopped

    def rows(self):
        """Return (start, end, owner, kind, node, sequence, saved, allocated, code, lasti, shapes, stack) of each event.

        Times are in microseconds since the start.
        """
        cdef Py_ssize_t i
        cdef Event* e
        cdef double tick = (self.stopped - self.started) / 1e3 / max(1, self.last_tick - self.first_tick)
        rows = []
        for i in range(self.n):
            e = &self.events[i]
            rows.append((
                (e.start - self.first_tick) * tick, ((e.end or self.last_tick) - self.first_tick) * tick,
                <object>e.owner, e.kind, <size_t>e.node,
                -1 if <long long>e.sequence < 0 else <long long>e.sequence, e.saved, e.allocated,
                None if e.code == NULL else <object>e.code, e.lasti, self.shapes.get(i), self.stacks.get(i)))
        return rows

    cdef Py_ssize_t add(self, object owner, int kind, long long start) except -1:
        cdef Event* e
        if self.n == self.capacity:
            e = <Event*>realloc(self.events, max(256, 2 * self.capacity) * sizeof(Event))
            if e == NULL:
                raise MemoryError("no memory for the profiler's events")
            self.events = e
            self.capacity = max(256, 2 * self.capacity)
        e = &self.events[self.n]
        memset(e, 0, sizeof(Event))
        Py_INCREF(owner)
        e.owner = <PyObject*>owner
        e.kind = kind
        e.start = start
        e.sequence = NO_NODE
        self.n += 1
        return self.n - 1

    cdef int describe(self, Py_ssize_t event, tuple inputs) except -1:
        """Record the shapes of the inputs and the stack of Python functions."""
        if self.with_shapes:
            self.shapes[event] = [list(getattr(value, "shape", ())) for value in inputs]
        if self.with_stack:
            frame, stack = sys._getframe(), []
            while frame is not None:
                stack.append((frame.f_code, frame.f_lineno))
                frame = frame.f_back
            self.stacks[event] = stack
        return 0


cdef Py_ssize_t begin_event(Events events, object owner, int kind, tuple inputs) except -1:
    cdef Py_ssize_t event = events.add(owner, kind, cygrad_ticks())
    if events.detailed:
        events.describe(event, inputs)
    events.mark = 0
    if events.watcher is not None and kind != NODE:
        events.watcher.begin(event, owner, kind, -1)
    return event


cdef int end_event(Events events, Py_ssize_t event) except -1:
    events.events[event].end = cygrad_ticks()
    events.mark = 0
    if events.watcher is not None:
        events.watcher.end(event)
    return 0


cdef int set_node(Events events, Py_ssize_t event, Node node, bint recorded, long long saved) except -1:
    """Record which node an event ran, or was recorded as."""
    cdef Event* e = &events.events[event]
    e.node = <void*>node
    e.saved = saved
    if recorded:
        e.sequence = node.sequence_nr
    return set_site(e, node.code, node.lasti)


cdef inline int set_site(Event* e, object code, int lasti) except -1:
    if code is not None:
        Py_INCREF(code)
        e.code = <PyObject*>code
        e.lasti = lasti
    return 0


cdef int note_op(ThreadState* state, object owner, int kind, Node node, object out, tuple inputs) except -1:
    cdef Events events = <Events>state.events
    cdef long long now = cygrad_ticks()
    cdef Py_ssize_t event = events.add(owner, kind, events.mark or now)
    cdef int lasti
    events.events[event].end = now
    events.mark = 0
    if events.watcher is not None:
        events.watcher.note(event, out)
    if events.detailed:
        events.describe(event, inputs)
    if kind == OP:
        events.events[event].allocated = sum([new_bytes(x) for x in <list>out]) if type(out) is list else new_bytes(out)
    if node is not None:
        return set_node(events, event, node, True, saved_bytes(<SavedSlots>node))
    code = current_site(&lasti)
    return set_site(&events.events[event], code, lasti)


cdef inline long long new_bytes(object result) except -1:
    """Return the size in bytes of a result that owns its memory, 0 for views."""
    array = (<Tensor>result).array
    if type(array) is ndarray:
        return PyArray_NBYTES(<ndarray>array) if PyArray_BASE(<ndarray>array) == NULL else 0
    return array.nbytes


cdef inline long long bytes_of(object value) except -1:
    if not isinstance(value, Tensor):
        return 0
    array = (<Tensor>value).array
    return PyArray_NBYTES(<ndarray>array) if type(array) is ndarray else <long long>array.nbytes


cdef long long saved_bytes(SavedSlots node) except -1:
    cdef Py_ssize_t i
    cdef long long found = 0
    with cython.critical_section(node.lock()):
        for i in range(node.n_places()):
            found += bytes_of(node.value_in(i))
    return found


cdef int mark_line(ThreadState* state) except -1:
    cdef Events events = <Events>state.events
    cdef int lasti = 0
    code = current_site(&lasti)
    if events.mark == 0 or events.mark_code != <PyObject*>code or events.mark_lasti != lasti:
        if events.watcher is not None:
            events.watcher.mark()
        events.mark = cygrad_ticks()
        events.mark_code = <PyObject*>code
        events.mark_lasti = lasti
    return 0


def begin_range(str name):
    """Begin a user-named range; return the argument for `end_range`."""
    cdef ThreadState* state = thread_state()
    if state.events == NULL:
        return None
    return <object>state.events, begin_event(<Events>state.events, name, RANGE, ())


def end_range(range):
    """End a user-named range."""
    if range is not None:
        end_event(<Events?>range[0], range[1])
