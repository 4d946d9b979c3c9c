"""Work on one array by several threads (threads.h)."""

cimport numpy as cnp

cdef enum:
    RELEASE_ABOVE = 20000       # elements; for fewer, giving up the GIL costs more than it is worth
    LIGHT = 32768               # elements of a piece, where memory is all a loop waits for
    HEAVY = 8192                # and where it computes

# A part of some work: `n` of its items from `first` on. Parts are done in any order, by any thread, without the GIL.
ctypedef void (*part_t)(void* context, Py_ssize_t first, Py_ssize_t n) noexcept nogil

# All `n` items, in pieces of so many. What becomes of an item must not depend on where its part begins or ends.
cdef void share(part_t part, void* context, Py_ssize_t n, Py_ssize_t piece) noexcept nogil

# The same for parts that call BLAS, which takes no threads of its own even if there is but one part; and whether that is so.
cdef void share_products(part_t part, void* context, Py_ssize_t n, Py_ssize_t piece) noexcept nogil
cdef bint blas_works_alone() noexcept nogil
cdef bint blas_has_short_vectors() noexcept     # and whether its loops leave those of 512 bits unused

ctypedef struct Elements:       # of arrays that lie in memory alike
    int count
    char* data[5]
    Py_ssize_t[5] steps

ctypedef void (*elements_t)(char** data, Py_ssize_t n, const void* settings) noexcept nogil

# One more array; None is a NULL.
cdef inline void enter(Elements* e, cnp.ndarray array) noexcept:
    e.data[e.count] = NULL if array is None else cnp.PyArray_BYTES(array)
    e.steps[e.count] = 0 if array is None else cnp.PyArray_ITEMSIZE(array)
    e.count += 1

# The loop over all n elements; over many of them without the GIL, in pieces.
cdef void over(Elements* e, elements_t loop, const void* settings, Py_ssize_t n, Py_ssize_t piece) noexcept
