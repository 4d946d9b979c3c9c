"""The search for nan and infinite numbers."""

cdef enum:
    NAN = 0
    NOT_FINITE = 1
    NOT_SMALL = 2           # so large that a sum of products of two such numbers might be infinite

# Is there such an element?
cdef bint has_bad(object a, int bad) except -1

# Are `a` and `b` so small that their product is finite, and less to read than it? At most all of `a` is in one sum.
cdef bint are_small(object a, object b, object product) except -1
