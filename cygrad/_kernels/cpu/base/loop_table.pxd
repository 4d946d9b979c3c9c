"""C loops called by number. Each header documents the arguments of its loops; loop_numbers.h lists them."""

from cygrad._kernels.platform.thread_pool cimport part_t

cdef extern from "base/loop_call.h":
    ctypedef struct native_call:
        bint is_double
        Py_ssize_t itemsize
        Py_ssize_t piece
        char* data[23]
        Py_ssize_t n[17]
        double real
        bint failed

cdef part_t loop_of(int loop) noexcept      # takes a `native_call`, for arrays of float32 or float64
