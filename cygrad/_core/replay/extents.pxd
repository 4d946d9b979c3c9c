"""Where arrays lie in memory. See extents.pyx."""

cimport numpy as cnp
from libc.stdint cimport uintptr_t

ctypedef struct Span:       # addresses; equal if there are no bytes
    uintptr_t low
    uintptr_t high

cdef Span extent_of(cnp.ndarray array) noexcept         # that the elements span
cdef cnp.ndarray owner_of(cnp.ndarray array)            # the array that owns the memory, as far as NumPy knows
cdef list joined_ranges(list arrays)                    # see extents.pyx
