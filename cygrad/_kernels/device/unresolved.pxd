"""Arrays whose conjugation or negation is deferred; see unresolved.pyx."""

cdef class Unresolved:
    cdef readonly object memory     # numpy.ndarray or cupy.ndarray
    cdef object __weakref__

cdef inline bint is_unresolved(object a) noexcept:
    return type(a) is Unresolved

cdef inline object behind(object a):
    """Return the array in whose memory the elements are."""
    return (<Unresolved>a).memory if type(a) is Unresolved else a

cpdef object resolved(object a)                 # anything but an Unresolved is returned as it is
cpdef object opposite(object a)                 # the same memory seen with the other sign
cpdef object shown_through(object a, object part)   # a part of the memory of `a`, with the sign of `a`
