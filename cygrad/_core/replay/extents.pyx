"""Where arrays lie in memory: the addresses that their elements span, and the arrays that own it."""

cimport numpy as cnp
from cpython.list cimport PyList_GET_ITEM, PyList_GET_SIZE
from cpython.mem cimport PyMem_Free, PyMem_Malloc
from cpython.object cimport PyObject
from libc.stdint cimport uintptr_t
from libc.stdlib cimport qsort

cnp.import_array()


cdef Span extent_of(cnp.ndarray array) noexcept:
    cdef Span found
    cdef cnp.npy_intp last
    cdef int i
    found.low = found.high = <uintptr_t>cnp.PyArray_BYTES(array)
    if cnp.PyArray_SIZE(array) == 0:
        return found
    for i in range(cnp.PyArray_NDIM(array)):
        last = (cnp.PyArray_DIMS(array)[i] - 1) * cnp.PyArray_STRIDES(array)[i]
        if last < 0:
            found.low += last
        else:
            found.high += last
    found.high += cnp.PyArray_ITEMSIZE(array)
    return found


def span_of(cnp.ndarray array not None):
    """The addresses (low, high) that the elements of an array span."""
    cdef Span found = extent_of(array)
    return found.low, found.high


cdef cnp.ndarray owner_of(cnp.ndarray array):
    cdef PyObject* base = cnp.PyArray_BASE(array)
    while base != NULL and isinstance(<object>base, cnp.ndarray):
        array = <cnp.ndarray>base
        base = cnp.PyArray_BASE(array)
    return array


cdef int by_address(const void* a, const void* b) noexcept nogil:
    cdef const Span* x = <const Span*>a
    cdef const Span* y = <const Span*>b
    return (x.low > y.low) - (x.low < y.low)


cdef list joined_ranges(list arrays):
    """The memory that arrays, or those that own theirs, lie in, as ranges that do not overlap, sorted: (low, high)."""
    cdef Py_ssize_t i, n = 0
    cdef list found = []
    cdef Span span
    cdef Span* spans = <Span*>PyMem_Malloc((PyList_GET_SIZE(arrays) + 1) * sizeof(Span))
    if spans == NULL:
        raise MemoryError
    try:
        for i in range(PyList_GET_SIZE(arrays)):
            spans[n] = extent_of(owner_of(<cnp.ndarray?><object>PyList_GET_ITEM(arrays, i)))
            n += spans[n].low != spans[n].high
        if n == 0:
            return found
        qsort(spans, n, sizeof(Span), by_address)
        span = spans[0]
        for i in range(1, n):
            if spans[i].low < span.high:
                span.high = max(span.high, spans[i].high)
            else:
                found.append((span.low, span.high))
                span = spans[i]
        found.append((span.low, span.high))
        return found
    finally:
        PyMem_Free(spans)
