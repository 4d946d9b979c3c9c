"""Search for NaNs and infinities."""

cdef enum:
    NAN = 0
    NOT_FINITE = 1
    NOT_SMALL = 2           # so large that a sum of products of two such numbers might overflow
    NOT_NORMAL = 3          # zero, subnormal, infinite, or NaN

# Whether any element is bad in the given sense.
cdef bint has_bad(object a, int bad) except -1

# Whether `a` and `b` are cheaper to check than `product`, and so small that it must be finite. All of `a` may enter one sum.
cdef bint are_small(object a, object b, object product) except -1
