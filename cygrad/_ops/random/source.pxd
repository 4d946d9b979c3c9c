"""Declares what a call draws random numbers from."""


cdef class Source:
    cdef public object _source              # (kernels, numbers), or None before the first draw of a stream of Philox
    cdef public unsigned long long draws    # how often threads that named no generator drew from this one


cpdef tuple source_of(object generator, str function, object place=*)
