"""Work on one array by several threads (threads.h)."""

# A part of some work: `n` of its items from `first` on. Parts are done in any order, by any thread, without the GIL.
ctypedef void (*part_t)(void* context, Py_ssize_t first, Py_ssize_t n) noexcept nogil

# All `n` items, in pieces of so many. What becomes of an item must not depend on where its part begins or ends.
cdef void share(part_t part, void* context, Py_ssize_t n, Py_ssize_t piece) noexcept nogil
