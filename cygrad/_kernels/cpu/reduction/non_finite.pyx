"""Search for NaNs and infinities, which `nan_check` runs on every result and gradient."""

import numpy as np

cimport numpy as cnp

from cygrad._kernels.tape.tape cimport refuse
from cygrad._kernels.cpu.base.arrays cimport RELEASE_ABOVE, dense
from cygrad._kernels.platform.thread_pool cimport LIGHT, share

cnp.import_array()

cdef extern from "reduction/non_finite.h" nogil:
    bint is_bad(bint is_double, const void* x, Py_ssize_t n, int bad) noexcept
    bint is_not_normal(bint is_double, const void* x, Py_ssize_t n) noexcept

cdef struct Search:             # a search for NaNs, non-finite or large numbers
    const char* x
    bint is_double
    int bad
    bint found


cdef void _search_part(void* context, Py_ssize_t first, Py_ssize_t n) noexcept nogil:
    cdef Search* s = <Search*>context
    cdef const void* x = <const void*>(s.x + first * (8 if s.is_double else 4))
    if is_not_normal(s.is_double, x, n) if s.bad == NOT_NORMAL else is_bad(s.is_double, x, n, s.bad):
        s.found = True          # benign race: threads only ever write True


cdef bint _found(Search* s, Py_ssize_t n) noexcept:
    refuse("looks for NaN or infinite numbers")
    s.found = False
    if n <= RELEASE_ABOVE:
        _search_part(s, 0, n)
    else:
        with nogil:
            share(_search_part, s, n, LIGHT)  # split as the data was written: each thread finds its chunk in its cache
    return s.found


cdef cnp.ndarray _block(cnp.ndarray a):
    """Return the elements in one dense block of memory, without the repetitions of broadcast dimensions."""
    if cnp.PyArray_IS_C_CONTIGUOUS(a) or cnp.PyArray_IS_F_CONTIGUOUS(a):
        return a
    return dense((<object>a)[tuple([slice(None if step else 1) for step in (<object>a).strides])])


cdef bint has_bad(object a, int bad) except -1:
    cdef Search search
    cdef cnp.ndarray block
    cdef int num
    cdef bint complex_
    if type(a) is not cnp.ndarray:
        return False
    num = cnp.PyArray_TYPE(<cnp.ndarray>a)
    complex_ = num == cnp.NPY_COMPLEX64 or num == cnp.NPY_COMPLEX128
    if complex_ and bad == NOT_NORMAL:  # either part may be 0
        return has_bad(np.asarray(np.abs(a)), bad)      # of no dimensions, it is no array
    if complex_ or num == cnp.NPY_FLOAT32 or num == cnp.NPY_FLOAT64:
        block = _block(a)
        search.x = <const char*>cnp.PyArray_DATA(block)
        search.is_double = num == cnp.NPY_FLOAT64 or num == cnp.NPY_COMPLEX128
        search.bad = bad
        return _found(&search, cnp.PyArray_SIZE(block) << complex_)
    if num <= cnp.NPY_ULONGLONG:        # boolean or integer
        return False
    if bad == NOT_NORMAL:
        sizes = np.abs(a)
        return not bool(((sizes >= np.finfo(a.dtype).tiny) & (sizes < np.inf)).all())
    return bad == NOT_SMALL or bool((~np.isfinite(a) if bad else np.isnan(a)).any())


cdef bint are_small(object a, object b, object product) except -1:
    cdef Py_ssize_t n
    if type(a) is not cnp.ndarray or type(b) is not cnp.ndarray or type(product) is not cnp.ndarray:
        return False
    n = cnp.PyArray_SIZE(<cnp.ndarray>a)
    return (n <= 1 << 26 and 3 * (n + cnp.PyArray_SIZE(<cnp.ndarray>b)) < 2 * cnp.PyArray_SIZE(<cnp.ndarray>product)
            and not has_bad(a, NOT_SMALL) and not has_bad(b, NOT_SMALL))


def are_finite(cnp.ndarray a not None):
    """Whether no element is NaN or infinite."""
    return not has_bad(a, NOT_FINITE)


def are_normal(cnp.ndarray a not None):
    """Whether all elements are finite, and so large that they have all their digits: none is 0, for example."""
    return not has_bad(a, NOT_NORMAL)
