"""Declares AccumulateGrad, the node at which gradients end."""

from cygrad._core.graph.node cimport Node
from cygrad._core.graph.tensor cimport Tensor

cdef class AccumulateGrad(Node):
    cdef void* leaf         # the tensor that owns this node; a borrowed reference (Note [Leaf edges] in node.pyx)
    cdef Tensor kept        # the same tensor as a strong reference, once Python has seen this node
    cdef unsigned long long busy        # the thread that is adding to the gradient (Note [One thread at a leaf])

cdef AccumulateGrad new_accumulator(Tensor leaf)
cdef int keep_leaf(AccumulateGrad node) except -1
cdef bint is_sparse(Tensor t) except -1
