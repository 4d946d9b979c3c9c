"""What was there before a step was captured. See situation.pyx."""

from cygrad._core.graph.tensor cimport Tensor

cdef class Seen:                # a tensor that existed before the step, and what it was like
    cdef Tensor tensor
    cdef object array, grad, grad_fn, counter
    cdef long long version
    cdef unsigned int flags
    cdef int describe(self, Tensor tensor) except -1

cdef class Situation:           # what is known of a call that has been noted, besides the tape
    cdef list arguments
    cdef list ranges            # the external ranges of the tape
    cdef list lives             # what the step reads anew
    cdef dict before            # {id: Seen} of each tensor
    cdef object flatten, census
    cdef bint sees_grads, reads_grads, is_pass, has_passed      # whether a backward pass has run
    cdef tuple layouts
    cdef Py_ssize_t n_shown     # how many tensors the caller gets; the others are casts of parameters
    cdef int begin(self) except -1
