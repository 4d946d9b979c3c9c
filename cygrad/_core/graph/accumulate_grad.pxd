"""Declares AccumulateGrad, the node at which gradients end."""

from numpy cimport ndarray

from cygrad._core.graph.node cimport Node
from cygrad._core.graph.tensor cimport Tensor

cdef class AccumulateGrad(Node):
    cdef void* leaf         # the tensor that owns this node; a borrowed reference (Note [Leaf edges] in node.pyx)
    cdef Tensor kept        # the same tensor as a strong reference, once Python has seen this node
    cdef unsigned long long busy        # the thread that is adding to the gradient (Note [One thread at a leaf])

cdef AccumulateGrad new_accumulator(Tensor leaf)
cdef int keep_leaf(AccumulateGrad node) except -1
cdef bint is_unshared(Tensor t, Py_ssize_t held) except -1
cdef ndarray add_arrays(ndarray a, ndarray b, ndarray out)
cdef Tensor add_gradients(Tensor a, Tensor b)               # a + b; may reuse the memory of an unshared operand
