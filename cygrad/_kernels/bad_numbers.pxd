"""The search for nan and infinite numbers."""

# Is there a nan among the elements; or with `inf` an infinite number?
cdef bint has_bad(object a, bint inf) except -1
