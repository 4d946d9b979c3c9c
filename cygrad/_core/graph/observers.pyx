"""Observers: who sees the ops that a thread records.

Note [Observers]
----------------
The profiler, forward mode and `vmap` follow every op. The recording functions (record.pyx) know none of them. Each of their
paths describes an op once, as a `Recorded`, and hands it over:

    new results             `begin_op` and `end_op` in record.pyx, which all record functions use if `is_observed`
    changes of a tensor     `begin_write` and `end_write`; `look_otherwise` in `_ops/base/views.pyx` for its geometry alone
    tensors from data       `fresh` and `delivered` in `_ops/base/creation.pyx`

`before_op` is called when all arguments are known and nothing has been recorded or written, `after_op` when the results have
their history. If nobody observes, this costs one test per op.

A new observer derives from Observer and is added by `observe`, in this thread. The profiler is `Events`
(`_core/profiling/profiler_events.pyx`). Forward mode and `vmap` are one observer, `Carrier` (dual.pyx). It is called while
the mode FORWARD is set, since transforms set and clear that bit at each level, and comes last, since what it records belongs
to the op.
"""

cimport cython
from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF, Py_XDECREF

from cygrad._core.graph.node cimport Node
from cygrad._core.graph.tensor cimport Tensor
from cygrad._core.runtime.thread_state cimport FORWARD, ThreadState, current_site, thread_state


@cython.final
@cython.freelist(8)
cdef class Recorded:

    @property
    def args(self):
        """The arguments besides the inputs, as a tuple."""
        return () if self.arguments is None else self.arguments

    @property
    def kept(self):
        """{slot: value} of what the op saved in addition to its inputs."""
        if self.kept_ is None:
            self.kept_ = {}
        return self.kept_

    @property
    def writes(self):
        """Whether the op changes the values of a tensor."""
        return self.kind == IN_PLACE or self.kind == WITH_OUT

    def operands(self):
        """Return all tensors that the op has read."""
        cdef list found = []
        add_tensors(self.inputs, found)
        if self.arguments is not None:
            add_tensors(self.arguments, found)
        if self.kept_:
            add_tensors(tuple(self.kept_.values()), found)
        return found

    def with_inputs(self, tuple inputs):
        """Return a description of the same op with other inputs."""
        cdef Recorded other = described(self.op, self.kind, inputs, self.arguments, self.outs)
        other.label, other.n_differentiable = self.label, self.n_differentiable
        return other


cdef int add_tensors(object values, list found) except -1:
    for value in values:
        if isinstance(value, Tensor):
            found.append(value)
        elif isinstance(value, (tuple, list)):
            add_tensors(value, found)
    return 0


cdef class Observer:
    """Sees the ops that a thread records; see Note [Observers]."""

    cdef int begins(self) except -1:
        return 0

    cdef int before_op(self, Recorded done) except -1:
        return 0

    cdef int after_op(self, Recorded done) except -1:
        return 0

    cdef object enter(self, Node node, int kind, tuple inputs):
        return None

    cdef int leave(self, object entered, Node node, int kind, bint recorded) except -1:
        return 0


@cython.final
cdef class Listener(Observer):
    """Calls `function(recorded)` after each op of this thread between `start` and `stop`."""

    cdef object function

    def __init__(self, function):
        self.function = function

    def start(self):
        """Start listening."""
        observe(self)

    def stop(self):
        """Stop listening."""
        ignore(self)

    cdef int after_op(self, Recorded done) except -1:
        self.function(done)
        return 0


# -- the observers of a thread -----------------------------------------------------------------------------

cdef Observer carrier = None


cdef int carry_by(Observer observer) except -1:
    global carrier
    carrier = observer
    return 0


cdef tuple observers_of(ThreadState* state):
    return () if state.observers == NULL else <tuple>state.observers


cdef int replace(void** place, object value) except -1:
    """Replace the object that a field of the thread's state owns."""
    cdef PyObject* former = <PyObject*>place[0]
    if value is not None:
        Py_INCREF(value)
    place[0] = NULL if value is None else <void*>value
    Py_XDECREF(former)
    return 0


cdef int observe(Observer observer) except -1:
    cdef ThreadState* state = thread_state()
    return replace(&state.observers, observers_of(state) + (observer,))


cdef int ignore(Observer observer) except -1:
    cdef ThreadState* state = thread_state()
    cdef tuple others = tuple([each for each in observers_of(state) if each is not observer])
    forget_changes()
    return replace(&state.observers, others or None)


# -- handing over ------------------------------------------------------------------------------------------

cdef Recorded described(object op, int kind, tuple inputs, tuple args, tuple outs):
    cdef Recorded done = Recorded.__new__(Recorded)
    done.op = op
    done.kind = kind
    done.inputs = inputs
    done.arguments = args
    done.outs = outs
    return done


cdef int before(Recorded done, ThreadState* state) except -1:
    for observer in observers_of(state):
        (<Observer>observer).before_op(done)
    if state.modes & FORWARD:
        carrier.before_op(done)
    return 0


cdef int after(Recorded done, Node node, ThreadState* state) except -1:
    done.node = node
    if node is not None:
        done.code, done.lasti = node.code, node.lasti
    else:
        done.code = current_site(&done.lasti)
    for observer in observers_of(state):
        (<Observer>observer).after_op(done)
    if state.modes & FORWARD:
        carrier.after_op(done)
    return 0


cdef int begin_change(object op, int kind, Tensor out, tuple inputs, tuple args, str label, ThreadState* state) except -1:
    """Hand over an op that is about to change `out`, and keep its description for `end_change`.

    A write that fails leaves its description behind. So that these do not pile up, two are kept: this write's, and that of
    the write during which it may have begun.
    """
    cdef Recorded done = described(op, kind, inputs, args, (out,))
    done.label = label
    done.n_differentiable = 1
    before(done, state)
    if state.changing != NULL:
        done.outer = <Recorded>state.changing
        done.outer.outer = None
    return replace(&state.changing, done)


cdef int end_change(Tensor out, Node node, ThreadState* state) except -1:
    cdef Recorded done = take_change(out, state)
    return 0 if done is None else after(done, node, state)


cdef Recorded take_change(Tensor out, ThreadState* state):
    """Return the description that `begin_change` kept, or None if nobody observed yet when the write began."""
    cdef Recorded done = None if state.changing == NULL else <Recorded>state.changing
    while done is not None and done.outs[0] is not out:
        done = done.outer
    if done is not None:
        replace(&state.changing, done.outer)
        done.outer = None
    return done


cdef int forget_changes() except -1:
    """Drop the descriptions of writes that have failed."""
    return replace(&thread_state().changing, None)


# -- modes and classes of `__torch_dispatch__` ---------------------------------------------------------------

@cython.final
cdef class Seam(Observer):
    """Sees nothing, but lets ops take the path on which they are dispatched."""

cdef Seam seam = Seam()
dispatches = False
cdef object results_by = None, before_change = None, change_by = None


def dispatch_ops(results, before, change):
    """Set the functions of dispatch.py that dispatch an op with new results, and a write, before and after it."""
    global results_by, before_change, change_by, dispatches
    dispatches = True
    results_by, before_change, change_by = results, before, change


def set_dispatching(unsigned int modes):
    """Set how many modes see the ops of this thread, and return their former number."""
    cdef ThreadState* state = thread_state()
    cdef unsigned int former = state.dispatching
    state.dispatching = modes
    state.spare = NULL                  # Note [Spent gradients]: a handler may keep the gradient
    if bool(modes) != bool(former):
        if modes:
            observe(seam)
        else:
            replace(&state.observers, tuple([each for each in observers_of(state) if each is not seam]) or None)
    return former


cdef tuple dispatched(Recorded done, tuple arrays):
    found = None if results_by is None else results_by(done, arrays)
    return arrays if found is None else <tuple?>found


cdef int dispatch_later(Recorded done) except -1:
    if before_change is not None:
        done.former = before_change(done)
    return 0


cdef int dispatch_change(Recorded done) except -1:
    if done.former is not None:
        change_by(done, done.former)
        done.former = None
    return 0


cdef list enter_all(Node node, int kind, tuple inputs, ThreadState* state):
    return [(observer, (<Observer>observer).enter(node, kind, inputs)) for observer in observers_of(state)]


cdef int leave_all(list entered, Node node, int kind, bint recorded) except -1:
    for observer, token in entered:
        (<Observer>observer).leave(token, node, kind, recorded)
    return 0


cdef int mark_all(ThreadState* state) except -1:
    for observer in observers_of(state):
        (<Observer>observer).begins()
    return 0
