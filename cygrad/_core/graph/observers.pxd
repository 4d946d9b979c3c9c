"""Observers of the ops that a thread records: Note [Observers] in observers.pyx."""

from cygrad._core.graph.node cimport Node
from cygrad._core.graph.tensor cimport Tensor
from cygrad._core.runtime.thread_state cimport FORWARD, ThreadState, thread_state

cpdef enum:                     # kinds of what observers see
    OP = 0                      # a built-in op that returns new tensors
    IN_PLACE = 1                # its in-place form
    WITH_OUT = 2                # the form that writes into `out`
    FUNCTION = 3                # forward of a custom function
    NODE = 4                    # a node of a backward pass
    RANGE = 5                   # named by the user; for the profiler only
    GEOMETRY = 6                # an op that changes only the shape and strides of a tensor, in place

cdef class Recorded:
    """One op: what it was called with, and what it returned."""
    cdef readonly object op     # its row, or the name of a function without a row
    cdef readonly int kind
    cdef readonly tuple inputs  # tensors, numbers and None
    cdef tuple arguments        # the other arguments, or None; `args` in Python
    cdef readonly tuple outs    # the results, or the tensor that is changed; None until the results exist
    cdef readonly str label     # what the change in place is called, if not by the name of the op
    cdef readonly int n_differentiable      # the number of results that have gradients
    cdef readonly Node node     # the node in the history; None if there is none
    cdef readonly object code   # the site
    cdef readonly int lasti
    cdef public object hint     # what the op will keep, or its function's arguments, for those who see it before; or None
    cdef object former          # what a dispatched write changed, from before it; None if it is not dispatched
    cdef dict kept_             # {slot: value saved in addition to the inputs}, or None
    cdef Recorded outer         # the write during which this one began

cdef class Observer:
    cdef int begins(self) except -1                     # an op begins to check its arguments, or has already begun
    cdef int before_op(self, Recorded done) except -1   # an op is about to be recorded, or to write
    cdef int after_op(self, Recorded done) except -1
    cdef object enter(self, Node node, int kind, tuple inputs)      # a node or a custom function begins to run
    cdef int leave(self, object entered, Node node, int kind, bint recorded) except -1      # `entered` is from `enter`

cdef int observe(Observer observer) except -1           # add to the observers of this thread, or remove
cdef int ignore(Observer observer) except -1
cdef tuple observers_of(ThreadState* state)
cdef int carry_by(Observer observer) except -1          # forward mode and `vmap`, which observe in the mode FORWARD

# Describe an op and hand it over.
cdef Recorded described(object op, int kind, tuple inputs, tuple args, tuple outs)
cdef int before(Recorded done, ThreadState* state) except -1
cdef int after(Recorded done, Node node, ThreadState* state) except -1
# The same for a change of `out`, in two steps.
cdef int begin_change(object op, int kind, Tensor out, tuple inputs, tuple args, str label, ThreadState* state) except -1
cdef int end_change(Tensor out, Node node, ThreadState* state) except -1
cdef Recorded take_change(Tensor out, ThreadState* state)
cdef int forget_changes() except -1
# Modes and classes of `__torch_dispatch__`, which may replace results: see dispatch.py.
cdef bint dispatches                                    # whether there has been such a mode or class
cdef tuple dispatched(Recorded done, tuple arrays)      # the results, as tensors, or the arrays if nobody has seen the op
cdef int dispatch_later(Recorded done) except -1        # before a write
cdef int dispatch_change(Recorded done) except -1       # after it
# The same for running a node or a custom function; `leave_all` takes what `enter_all` returned.
cdef list enter_all(Node node, int kind, tuple inputs, ThreadState* state)
cdef int leave_all(list entered, Node node, int kind, bint recorded) except -1
cdef int mark_all(ThreadState* state) except -1


cdef inline bint is_observed(ThreadState* state) noexcept:
    """Whether anyone must be told of an op."""
    return state.modes & FORWARD or state.observers != NULL


cdef inline int mark_start() except -1:
    """An op begins to check its arguments."""
    cdef ThreadState* state = thread_state()
    return 0 if state.observers == NULL else mark_all(state)
