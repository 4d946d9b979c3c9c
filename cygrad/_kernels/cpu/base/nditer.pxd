"""Walking the common index space of some strided operands with a ufunc's inner loop."""

cimport numpy as cnp

cdef enum:
    MAXDIMS = 64                # NumPy's limit

ctypedef struct Operand:        # where the elements of an array are
    char* data
    int ndim
    cnp.npy_intp* dims
    cnp.npy_intp* strides
    cnp.npy_intp itemsize

# Pointers, count, steps in bytes, and the loop's own data. See Note [NumPy's inner loops] in loops.pyx.
ctypedef void (*loop_t)(char**, const cnp.npy_intp*, const cnp.npy_intp*, void*) noexcept nogil

ctypedef struct Loop:           # how a ufunc treats inputs of one type
    loop_t function             # NULL: it has no loop for them
    void* data
    int out_type
    cnp.npy_intp piece          # elements that are worth the trip to another thread; 0: not to be cut
    bint is_dense               # it needs outputs without gaps

ctypedef struct Walk:           # the index space, innermost dimension first
    int count                               # operands: inputs, then output
    int ndim
    cnp.npy_intp[MAXDIMS] dims
    cnp.npy_intp[3][MAXDIMS] strides        # of each operand, in bytes; 0 where it is repeated

ctypedef struct Core:           # what a generalized ufunc like matmul does at each index: (m, n) @ (n, p)
    cnp.npy_intp[3] dims
    cnp.npy_intp[6] strides

# In the order of their use:
cdef int join(Walk* walk, int nin, Operand* inputs) except -1
cdef bint memory_order(Walk* walk, int* order) noexcept
cdef void coalesce(Walk* walk, int* order, cnp.npy_intp itemsize) noexcept
cdef void lengthen_innermost(Walk* walk) noexcept nogil
cdef void run(Walk* walk, Loop* loop, char** start, const Core* core=*) noexcept nogil
cdef void run_at(Walk* walk, Loop* loop, char** start, const Core* core, cnp.npy_intp index) noexcept nogil

# `run` for an output that has each element once, shared by threads if it is large (Note [Pieces] in parallel.pyx), and
# for one whose steps are 0 where it collects: threads share the others.
cdef void run_shared(Walk* walk, Loop* loop, char** start, const Core* core=*) noexcept nogil
cdef void run_reduction(Walk* walk, Loop* loop, char** start) noexcept nogil
