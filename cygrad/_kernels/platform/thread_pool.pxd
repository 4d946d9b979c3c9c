"""Multithreaded loops over one array (thread_pool.h)."""

cimport numpy as cnp

cdef enum:
    RELEASE_ABOVE = 20000       # elements; below this, releasing the GIL costs more than it gains
    LIGHT = 32768               # elements per chunk for memory-bound loops
    HEAVY = 8192                # and for compute-bound ones

# Processes `n` items starting at `first`. Called in any order, on any thread, without the GIL.
ctypedef void (*part_t)(void* context, Py_ssize_t first, Py_ssize_t n) noexcept nogil

# Process `n` items in chunks of `piece`. The result for an item must not depend on where its chunk begins or ends.
cdef void share(part_t part, void* context, Py_ssize_t n, Py_ssize_t piece) noexcept nogil

# The same for parts that call BLAS, kept to one thread even if there is only one chunk; and whether BLAS can be kept so.
cdef void share_products(part_t part, void* context, Py_ssize_t n, Py_ssize_t piece) noexcept nogil
cdef bint blas_works_alone() noexcept nogil
cdef bint blas_has_short_vectors() noexcept     # whether its loops do not use 512-bit vectors

ctypedef struct Elements:       # arrays with the same memory layout
    int count
    char* data[5]
    Py_ssize_t[5] steps

ctypedef void (*elements_t)(char** data, Py_ssize_t n, const void* settings) noexcept nogil

# Append an array; None becomes NULL.
cdef inline void enter(Elements* e, cnp.ndarray array) noexcept:
    e.data[e.count] = NULL if array is None else cnp.PyArray_BYTES(array)
    e.steps[e.count] = 0 if array is None else cnp.PyArray_ITEMSIZE(array)
    e.count += 1

# Run the loop over all n elements; for many, without the GIL and in chunks. The last array is the result; `size` is that of
# the settings, which hold no addresses.
cdef void over(Elements* e, elements_t loop, const void* settings, size_t size, Py_ssize_t n, Py_ssize_t piece) noexcept
