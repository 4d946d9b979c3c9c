"""Events of the profiler: what ran when in a thread, as an array of structs.

Events are an observer (Note [Observers] in observers.pyx), so recording an op costs one test while nobody profiles. An event
allocates nothing beyond its struct; names, lines and the call tree are computed when the user requests them.

An op is noted when it ends. Its start is taken from a mark that entry points set when they check their arguments
(`mark_start`; of several marks at one line, the first counts).
"""

cimport cython
from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF, Py_XDECREF
from libc.stdlib cimport free, realloc
from libc.string cimport memset

import sys

from numpy cimport PyArray_BASE, PyArray_NBYTES, ndarray

from cygrad._core.graph.node cimport Node
from cygrad._core.graph.observers cimport (
    FUNCTION, GEOMETRY, NODE, OP, RANGE, Observer, Recorded, ignore, observe, observers_of)
from cygrad._core.graph.opdef cimport OpDef
from cygrad._core.graph.saved_slots cimport value_in
from cygrad._core.runtime.thread_state cimport current_site, thread_state
from cygrad._core.graph.tensor cimport Tensor
from cygrad._kernels.cpu.base import chosen_algorithm

cdef extern from "clock.h":
    long long cygrad_ticks() noexcept
    long long cygrad_nanoseconds() noexcept

cdef unsigned long long NO_NODE = <unsigned long long>-1


@cython.final
cdef class Events(Observer):
    """The events of this thread between `start` and `stop`, for `cygrad.autograd.profiler`."""

    def __cinit__(self, bint with_shapes=False, bint with_stack=False):
        self.with_shapes = with_shapes
        self.with_stack = with_stack
        self.detailed = with_shapes or with_stack
        self.shapes = {}
        self.stacks = {}
        self.algorithms = {}

    def __dealloc__(self):
        cdef Py_ssize_t i
        for i in range(self.n):
            Py_XDECREF(self.events[i].owner)
            Py_XDECREF(self.events[i].code)
        free(self.events)

    def start(self):
        """Start collecting the events of this thread."""
        self.outer = collecting()
        if self.outer is not None:
            ignore(self.outer)
        observe(self)
        chosen_algorithm.take()         # that of an earlier op; after `observe`, since Ctrl-C may interrupt Python code
        self.started = cygrad_nanoseconds()
        self.first_tick = cygrad_ticks()
        return self.started

    def stop(self):
        """Stop collecting, and resume the collection that was active before."""
        if collecting() is not self:
            raise RuntimeError("the profiler was not started in this thread, or another that was started later still runs")
        ignore(self)
        if self.outer is not None:
            observe(self.outer)
        self.outer = None
        self.last_tick = cygrad_ticks()
        self.stopped = cygrad_nanoseconds()
        return self.stopped

    def rows(self):
        """Return a tuple for each event, with times in microseconds since the start.

        Its items are start, end, owner, kind, node, sequence, saved, allocated, code, lasti, shapes, stack and algorithm.
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
                None if e.code == NULL else <object>e.code, e.lasti, self.shapes.get(i), self.stacks.get(i),
                self.algorithms.get(i)))
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

    # -- as an observer ------------------------------------------------------------------------------------

    cdef int begins(self) except -1:
        cdef int lasti = 0
        code = current_site(&lasti)
        if self.mark == 0 or self.mark_code != <PyObject*>code or self.mark_lasti != lasti:
            if self.watcher is not None:
                self.watcher.mark()
            self.mark = cygrad_ticks()
            self.mark_code = <PyObject*>code
            self.mark_lasti = lasti
        return 0

    cdef int after_op(self, Recorded done) except -1:
        cdef long long now = cygrad_ticks()
        cdef Py_ssize_t event
        if done.kind == GEOMETRY:
            return 0
        event = self.add(done.op if done.label is None else done.label, done.kind, self.mark or now)
        self.events[event].end = now
        self.mark = 0
        if self.watcher is not None:
            self.watcher.note(event, done.outs)
        if self.detailed:
            self.describe(event, done.inputs)
        if type(done.op) is OpDef and (<OpDef>done.op).ufunc is None:
            algorithm = chosen_algorithm.take()
            if algorithm is not None:
                self.algorithms[event] = algorithm
        if done.kind == OP:
            for out in done.outs:
                self.events[event].allocated += new_bytes(out)
        if done.node is not None:
            return set_node(self, event, done.node, True, saved_bytes(done.node))
        return set_site(&self.events[event], done.code, done.lasti)

    cdef object enter(self, Node node, int kind, tuple inputs):
        cdef object label = node.label()
        cdef Py_ssize_t event = begin_event(self, label, kind, inputs)
        if kind == NODE:
            set_node(self, event, node, True, 0)
            if self.watcher is not None:
                self.watcher.begin(event, label, NODE, node.sequence_nr)
        return event

    cdef int leave(self, object entered, Node node, int kind, bint recorded) except -1:
        cdef Py_ssize_t event = entered
        end_event(self, event)
        if kind == FUNCTION:
            set_node(self, event, node, recorded, saved_bytes(node))
        return 0


cdef Events collecting():
    """Return the events that this thread collects, or None."""
    for observer in observers_of(thread_state()):
        if type(observer) is Events:
            return <Events>observer
    return None


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


cdef long long saved_bytes(Node node) except -1:
    cdef Py_ssize_t i
    cdef long long found = 0
    with cython.critical_section(node.lock()):
        for i in range(node.n_places()):
            found += bytes_of(value_in(node, i))
    return found


def begin_range(str name):
    """Begin a user-named range; return the argument for `end_range`."""
    cdef Events events = collecting()
    return None if events is None else (events, begin_event(events, name, RANGE, ()))


def end_range(range):
    """End a user-named range."""
    if range is not None:
        end_event(<Events?>range[0], range[1])
