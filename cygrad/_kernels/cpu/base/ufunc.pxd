"""Elementwise work: NumPy's inner loops called directly on the memory of arrays."""

cimport numpy as cnp

from cygrad._kernels.cpu.base.arrays cimport NTYPES, cast, empty, may_overlap
from cygrad._kernels.cpu.base.nditer cimport Loop, loop_t

cdef extern from "numpy/ufuncobject.h":
    ctypedef struct PyUFuncObject:      # which of its fields numpy.pxd has depends on the version of NumPy
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
    cdef bint keeps_numbers             # numbers beside arrays of half precision are float32
    cdef Ufunc quotient                 # of `reciprocal`: its loops are half as fast as those of a division
    cdef Loop[NTYPES + 1] loops         # by type number of the inputs; the last is for bfloat16
    cdef void _enter_narrow(self)
    cdef int _row(self, cnp.ndarray a) noexcept

    # `out` may be None. The inputs of call2 have the same type number; the caller has promoted them.
    cdef cnp.ndarray call1(self, cnp.ndarray a, cnp.ndarray out)
    cdef cnp.ndarray call2(self, cnp.ndarray a, cnp.ndarray b, cnp.ndarray out)
    cdef cnp.ndarray call2_scalar(self, cnp.ndarray a, object scalar, bint scalar_first, cnp.ndarray out)
    cdef cnp.ndarray _fallback(self, cnp.ndarray a, cnp.ndarray b, cnp.ndarray out)
    cdef cnp.ndarray _fallback_scalar(self, cnp.ndarray a, object scalar, bint scalar_first, cnp.ndarray out)
