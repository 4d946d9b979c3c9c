"""Loops that a program need not run. See pruning.pyx."""

# The entries whose results are seen: by a slot, or by a later entry of this kind; and those that draw random numbers, as
# the next draw depends on them. Checks come first.
cdef list live(list entries)

# The entries without products of real numbers with a constant 1 that only elementwise loops read, such as the first
# products of a backward pass. The loops get the other factor, which has the same bits.
cdef list without_products_with_one(list entries)
