"""The search for nan and infinite numbers."""

cdef enum:
    NAN = 0
    NOT_FINITE = 1
    NOT_SMALL = 2           # so large that a sum of products of two such numbers might be infinite
    MOST_PRODUCTS = 1 << 26     # that the sum may have

# Is there such an element?
cdef bint has_bad(object a, int bad) except -1
