"""Calls of kernels on the tape. See calls.pyx."""

cimport numpy as cnp

# Runs a kernel (`function`, known as `kernel`) while a tape is open: notes its loops, or else the whole call.
cdef object run_on_tape(object kernel, object function, tuple args, dict kwargs)

cdef class Made:                        # an array that a call returns
    cdef object descr
    cdef int ndim
    cdef cnp.npy_intp[64] dims
    cdef cnp.npy_intp[64] steps
    cdef Py_ssize_t size                # in bytes; 0: of no elements
    cdef Py_ssize_t low                 # the bytes that it spans, relative to its address
    cdef Py_ssize_t high
    cdef int word                       # the address in the context of the entry that it lies behind
    cdef Py_ssize_t offset              # how far
    cdef bint fits(self, cnp.ndarray array) noexcept
    cdef bint is_like(self, int typenum, int ndim, cnp.npy_intp* dims, cnp.npy_intp* steps) noexcept

cdef class Call:                        # a call that can be repeated
    cdef readonly str name
    cdef object function
    cdef tuple args
    cdef bint has_lists                 # lists or dictionaries are among them
    cdef list inputs                    # arrays in `args`, which are pointed to the memory of each run
    cdef list constants                 # inputs whose memory the tape does not know, such as tables: they stay what they are
    cdef list results                   # of Made, or other values, which must be the same again
    cdef readonly bint must_run         # it decides something, or changes an argument: nobody has to read its results
    cdef Py_ssize_t n_words             # addresses: those of the inputs, and of the memory that the call gives
    cdef list fresh                     # for each of the latter: its slot, or -1: it has memory to be copied to
    cdef list slots                     # for each of the latter: the slot, if it outlives the run
    cdef str run(self, object launches, char** addresses, list held)
