"""Where the blocks of a program lie. See arena.pyx."""

# Let blocks lie in the memory of `kept` ones, which outlive a run, as long as these are not in use. Return (slot, bytes) of
# each such memory.
cdef list lend(list units, list kept)

# Give each block that has no memory a place in the arena, and return the size of that.
cdef Py_ssize_t place(list units) except -1

# The blocks that have no memory yet, in the order of their first use. All blocks learn when that is, and their last.
cdef list in_order_of_use(list units)

# The entries of a unit: those of a group, or the only one.
cdef list entries_of(unit)
