"""Memory pool for large arrays: caches freed blocks for reuse (memory_pool.h)."""

cimport numpy as cnp

cdef enum:
    POOLED = 1 << 15            # bytes; smaller arrays use NumPy's own allocator

# Returns the code object of the Python line being executed, and the offset of the current instruction.
ctypedef object (*site_t)(int* offset)

cdef int connect(site_t take_site, object explain) except -1

# A new uninitialized array from the pool. `strides` NULL means C order.
cdef cnp.ndarray empty_pooled(object descr, int ndim, cnp.npy_intp* dims, cnp.npy_intp* strides, size_t nbytes)

# Calls kernel(*arrays, *args). If an array is large, NumPy allocates from the pool during the call.
cdef object call_kernel(object kernel, tuple arrays, tuple args)

# For the tape: what `call_kernel` leaves kernels to while a tape is open, as (kernel, function, args, kwargs); make the pool
# NumPy's allocator in this thread, and undo that; the Python line being executed.
ctypedef object (*run_on_tape_t)(object kernel, object function, tuple args, dict kwargs)
cdef int connect_tape(run_on_tape_t run) except -1
cdef object array_memory_from_pool()
cdef object give_back_allocator(object former)
cdef tuple current_place()
