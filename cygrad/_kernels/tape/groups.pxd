"""Groups of elementwise loops that run block by block. See groups.pyx."""

from cygrad._kernels.tape.tape cimport Entry

cdef class Group:                   # elementwise loops over as many items that follow each other, and sums of their results
    cdef readonly list entries
    cdef readonly list later        # small entries that came in between, and run after them
    cdef readonly Py_ssize_t items
    cdef dict touched               # {block: (offset, bytes per item, or 0 if all items see all of it)}
    cdef set written                # blocks
    cdef set sums                   # blocks that hold sums, which are there when all items are done
    cdef Py_ssize_t unit            # items that a block has a multiple of
    cdef Py_ssize_t piece           # items that one thread does in their order
    cdef int rooms                  # registers
    cdef Py_ssize_t width           # bytes of an item of the widest register
    cdef bint takes(self, Entry entry) except -1
    cdef bint takes_sums(self, Entry entry) except -1
    cdef bint goes_before(self, Entry entry) except -1
    cdef bint comes_later(self, Entry entry) except -1
    cdef int choose_registers(self, dict elsewhere) except -1

# The entries, with groups in the place of elementwise entries that may run together.
cdef list grouped(list entries)

cdef inline Py_ssize_t aligned(Py_ssize_t n) noexcept:
    """Round up to a multiple of 64 bytes, the width of the widest vectors."""
    return (n + 63) // 64 * 64
