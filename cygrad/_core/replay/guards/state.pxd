"""Declares the guards of Python state, and the comparison of values that they use."""

from cpython.object cimport PyObject

cdef bint same(PyObject* found, PyObject* expected) except -1    # one value, or equal values of one type

cdef class Guard:
    cdef list kept                  # what the checks point to
    cdef list texts                 # one for each check: where its owner stands in the program
    cdef void* checks
    cdef Py_ssize_t n, room
    cdef readonly Py_ssize_t failed     # number of the check that failed last, or -1
    cdef int add(self, int kind, str text, object owner, tuple keys, tuple values) except -1
    cpdef bint holds(self) except -1
