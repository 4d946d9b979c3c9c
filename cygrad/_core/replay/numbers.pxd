"""Declares what a captured step reads anew in each run."""

cdef class Live:                        # its methods do nothing, see numbers.pyx
    cdef bint refresh(self) noexcept
    cdef int done(self) except -1
    cdef object saved(self)
    cdef int restore(self, object state) except -1

cdef class Numbers(Live):
    cdef readonly dict owner            # where they stand
    cdef readonly tuple keys            # of those that may change between calls
    cdef readonly list tensors          # that held some of them
    cdef object memory                  # the array of float64 that the loops of the step read
    cdef tuple names, counts

# The list of `Live` of the step that this thread notes, or None.
cdef list followed()
