"""What a captured call on a GPU changes. See changes.pyx."""

from cygrad._core.graph.tensor cimport Tensor
from cygrad._core.replay.graphs cimport Graph

cdef class Former:              # a tensor that existed before a call, and what it was like
    cdef Tensor tensor
    cdef object array, grad, grad_fn, counter, op_name, code
    cdef long long version
    cdef int lasti
    cdef unsigned int flags
    cdef int put_back(self) except -1

cdef dict formers()             # {id: Former} of each tensor that lives
cdef tuple changes_of(dict before, list arguments, int device, object counts_of_steps)
cdef int check_leftovers(dict before, list leaves, list grads, Graph graph) except -1
