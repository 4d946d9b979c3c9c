"""The memory of large arrays: a pool that keeps what is freed (pool.h)."""

cimport numpy as cnp

cdef enum:
    POOLED = 1 << 15            # bytes; smaller arrays have NumPy's own memory

# The code object of the Python line that is being run, and the offset of the instruction there.
ctypedef object (*site_t)(int* offset)

cdef int connect(site_t take_site, object explain) except -1

# A new array of uninitialised memory from the pool. `strides` may be NULL for C order.
cdef cnp.ndarray empty_pooled(object descr, int ndim, cnp.npy_intp* dims, cnp.npy_intp* strides, size_t nbytes)

# kernel(*arrays, *args); for large arrays, what NumPy allocates meanwhile comes from the pool.
cdef object call_kernel(object kernel, tuple arrays, tuple args)
