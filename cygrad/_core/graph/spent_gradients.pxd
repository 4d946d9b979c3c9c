"""Reuse of the memory of gradients that nobody will read again: Note [Spent gradients] in spent_gradients.pyx."""

from numpy cimport ndarray

from cygrad._core.graph.node cimport Node
from cygrad._core.graph.opdef cimport OpDef, is_op_node
from cygrad._core.graph.tensor cimport Tensor
from cygrad._core.runtime.thread_state cimport FORWARD, NO_GRAD, ThreadState

cdef bint is_unshared(Tensor t, Py_ssize_t held) except -1
cpdef bint is_spare(Tensor g) noexcept
cdef Tensor spend(OpDef op, Tensor g, object other)         # op(g, other), for a rule that will not read `g` again
cdef Tensor add_gradients(Tensor a, Tensor b)               # a + b; may reuse the memory of an unshared operand
cdef ndarray add_arrays(ndarray a, ndarray b, ndarray out)


cdef inline int offer(Node node, object grad, ThreadState* state) except -1:
    """Offer the incoming gradient, to which the caller holds the only reference, to the rule of `node`."""
    if (state.modes & (NO_GRAD | FORWARD) == NO_GRAD and is_op_node(node) and node.hooks is None
            and state.observers == NULL and type(grad) is Tensor and type((<Tensor>grad).array) is ndarray
            and is_unshared(<Tensor>grad, 1)):
        state.spare = <void*>grad
    return 0
