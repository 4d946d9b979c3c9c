"""The Mersenne Twister (twister.h)."""

cimport numpy as cnp

cdef extern from "random/twister.h":
    ctypedef struct twister:
        unsigned long long seed

cdef extern from "platform/lock.h":
    ctypedef struct cygrad_lock:
        pass

cdef class Twister:
    cdef twister state
    cdef cygrad_lock lock       # held while numbers are drawn, and while the state is read or set

# Fill an array and return True; or return False, having drawn nothing, if its type or layout needs `fill` (mersenne.py).
cdef bint drew(Twister numbers, cnp.ndarray out, int what, object a, object b) except -1

# A noted loop draws from a stream: a `Twister`, or NumPy's generator.
cdef int note_stream(object numbers) except -1
