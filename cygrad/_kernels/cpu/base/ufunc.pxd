"""Elementwise ufuncs: calls NumPy's inner loops directly on array memory."""

cimport numpy as cnp

from cygrad._kernels.cpu.base.arrays cimport NTYPES, cast, empty, may_overlap
from cygrad._kernels.cpu.base.nditer cimport Loop, loop_t

cdef extern from "numpy/ufuncobject.h":
    ctypedef struct PyUFuncObject:      # numpy.pxd declares different fields in different NumPy versions
        int nin
        int nargs
        int ntypes
        loop_t* functions
        void** data
        const char* types

cdef class Ufunc:
    cdef readonly str name
    cdef readonly object numpy          # the NumPy ufunc: the fallback
    cdef readonly int nin
    cdef bint keeps_numbers             # scalars combined with half-precision arrays stay float32
    cdef Ufunc quotient                 # only for `reciprocal`, whose own loops take twice as long as a division
    cdef Loop[NTYPES + 1] loops         # indexed by type number of the inputs; the last is for bfloat16
    cdef void _enter_narrow(self)
    cdef int _row(self, cnp.ndarray a) noexcept

    # `out` may be None. The inputs of call2 must have the same type number: the caller promotes them.
    cdef cnp.ndarray call1(self, cnp.ndarray a, cnp.ndarray out)
    cdef cnp.ndarray call2(self, cnp.ndarray a, cnp.ndarray b, cnp.ndarray out)
    cdef cnp.ndarray call2_scalar(self, cnp.ndarray a, object scalar, bint scalar_first, cnp.ndarray out)
    cdef cnp.ndarray _fallback(self, cnp.ndarray a, cnp.ndarray b, cnp.ndarray out)
    cdef cnp.ndarray _fallback_scalar(self, cnp.ndarray a, object scalar, bint scalar_first, cnp.ndarray out)
