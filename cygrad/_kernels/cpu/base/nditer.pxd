"""Iterate over the broadcast index space of several strided operands with a ufunc's inner loop."""

cimport numpy as cnp

cdef enum:
    MAXDIMS = 64                # NumPy's limit

ctypedef struct Operand:        # memory layout of one operand
    char* data
    int ndim
    cnp.npy_intp* dims
    cnp.npy_intp* strides
    cnp.npy_intp itemsize

# Pointers, count, steps in bytes, and the loop's own data. See Note [NumPy's inner loops] in ufunc.pyx.
ctypedef void (*loop_t)(char**, const cnp.npy_intp*, const cnp.npy_intp*, void*) noexcept nogil

ctypedef struct Loop:           # the loop of a ufunc for inputs of one type
    loop_t function             # NULL: no loop for this type
    void* data
    int out_type
    cnp.npy_intp piece          # elements per chunk when threads share the work; 0: never split
    bint is_dense               # needs outputs without gaps

ctypedef struct Walk:           # the index space, innermost dimension first
    int count                               # operands: inputs, then output
    int ndim
    cnp.npy_intp[MAXDIMS] dims
    cnp.npy_intp[3][MAXDIMS] strides        # of each operand, in bytes; 0 where it is broadcast

ctypedef struct Core:           # core dimensions of a generalized ufunc such as matmul: (m, n) @ (n, p)
    cnp.npy_intp[3] dims
    cnp.npy_intp[6] strides

# In the order of use:
cdef int join(Walk* walk, int nin, Operand* inputs) except -1
cdef bint memory_order(Walk* walk, int* order) noexcept
cdef void coalesce(Walk* walk, int* order, cnp.npy_intp itemsize) noexcept
cdef void lengthen_innermost(Walk* walk) noexcept nogil
cdef void run(Walk* walk, Loop* loop, char** start, const Core* core=*) noexcept nogil
cdef void run_at(Walk* walk, Loop* loop, char** start, const Core* core, cnp.npy_intp index) noexcept nogil

# `run_shared` is `run` on several threads if the output is large and has each element once (Note [Pieces] in
# thread_pool.pyx).
# `run_reduction` is for outputs whose steps are 0 along the reduced dimensions: threads share the other dimensions.
cdef void run_shared(Walk* walk, Loop* loop, char** start, const Core* core=*) noexcept nogil
cdef void run_reduction(Walk* walk, Loop* loop, char** start) noexcept nogil

# For the tape: the bytes that operand k reaches, relative to its address.
cdef void extent_of_walk(const Walk* walk, int k, Py_ssize_t itemsize, Py_ssize_t* low, Py_ssize_t* high) noexcept

cdef extern from "platform/sanitized.h" nogil:     # a no-op except in sanitized builds
    void touch_ends(char** data, const cnp.npy_intp* dims, const cnp.npy_intp* steps, int count,
                    bint is_product) noexcept

cdef inline void run_row(Loop* loop, int count, char** start, cnp.npy_intp* steps, Py_ssize_t first,
                         Py_ssize_t n) noexcept nogil:
    """Run a loop over some elements of a row."""
    cdef char* data[3]
    cdef cnp.npy_intp length = n
    cdef int k
    for k in range(count):
        data[k] = start[k] + first * steps[k]
    touch_ends(data, &length, steps, count, False)
    loop.function(data, &length, steps, loop.data)
