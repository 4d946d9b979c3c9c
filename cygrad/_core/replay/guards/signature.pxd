"""Declares the pattern of a call's arguments."""

cdef class _Pattern:
    cdef int kind
    cdef Py_ssize_t number      # of the tensor
    cdef object value           # or the type of the container
    cdef tuple keys, parts

cdef class Signature:
    cdef _Pattern args, kwargs
    cdef readonly list tensors, objects
    cdef Py_ssize_t n
    cdef object _fixed
    cdef dict _numbers
    cpdef list match(self, tuple args, dict kwargs)
