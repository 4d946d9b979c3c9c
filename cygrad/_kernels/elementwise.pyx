"""Elementwise functions for which NumPy has no ufunc, one that differs from PyTorch's, or a slow one."""

import numpy as np

cimport numpy as cnp
from libc.math cimport INFINITY, erf as c_erf, floor, fmod, isinf
from numpy cimport (
    PyArray_DATA, PyArray_ISBEHAVED_RO, PyArray_IS_C_CONTIGUOUS, PyArray_ITEMSIZE, PyArray_NDIM, PyArray_SIZE,
    PyArray_TYPE, ndarray)

from cygrad._kernels.arrays cimport RELEASE_ABOVE, cast, empty_like, one_block
from cygrad._kernels.loops cimport Ufunc

cnp.import_array()

cdef extern from "elementwise.h" nogil:
    void clamp_float(const float* x, float* out, Py_ssize_t n, float low, float high) noexcept
    void clamp_double(const double* x, double* out, Py_ssize_t n, double low, double high) noexcept
    void sign_float(const float* x, float* out, Py_ssize_t n) noexcept
    void sign_double(const double* x, double* out, Py_ssize_t n) noexcept
    void select_4(const cnp.npy_uint8* c, const cnp.npy_uint32* a, const cnp.npy_uint32* b, cnp.npy_uint32* out,
                  Py_ssize_t n, bint a_is_one, bint b_is_one) noexcept
    void select_8(const cnp.npy_uint8* c, const cnp.npy_uint64* a, const cnp.npy_uint64* b, cnp.npy_uint64* out,
                  Py_ssize_t n, bint a_is_one, bint b_is_one) noexcept
    void erf_float(const float* x, float* out, Py_ssize_t n) noexcept

cdef Ufunc _absolute = Ufunc(np.absolute)
cdef Ufunc _copysign = Ufunc(np.copysign)
cdef Ufunc _maximum = Ufunc(np.maximum)
cdef Ufunc _minimum = Ufunc(np.minimum)
cdef Ufunc _multiply = Ufunc(np.multiply)
cdef Ufunc _power = Ufunc(np.power)
cdef Ufunc _reciprocal = Ufunc(np.reciprocal)
cdef Ufunc _sign = Ufunc(np.sign)
cdef Ufunc _sqrt = Ufunc(np.sqrt)


cpdef ndarray relu(ndarray a):
    """max(a, 0); nan stays nan."""
    return clamp(a, 0, None)


cpdef ndarray rsqrt(ndarray a):
    """1 / sqrt(a)."""
    cdef ndarray out = _sqrt.call1(a, None)
    return _reciprocal.call1(out, out)


cpdef ndarray power(ndarray a, double exponent):
    """Floating-point `a` to a power for which there is something better than NumPy's loop.

    That calls the C library for each negative element, fifty times slower than its own code for positive ones.
    """
    cdef ndarray out
    if exponent == 0.5:
        return _sqrt.call1(a, None)
    if exponent == -1:
        return _reciprocal.call1(a, None)
    if exponent == 2 or exponent == 3 or exponent == -2:
        out = _multiply.call2(a, a, None)
        return out if exponent == 2 else _multiply.call2(out, a, out) if exponent == 3 else _reciprocal.call1(out, out)
    if exponent != floor(exponent) or isinf(exponent):
        return _power.call2_scalar(a, exponent, False, None)
    out = _absolute.call1(a, None)
    _power.call2_scalar(out, exponent, False, out)
    return _copysign.call2(out, a, out) if fmod(exponent, 2) else out


def sign(ndarray a not None):
    """-1, 0 or 1; a / |a| for complex a. Other than in NumPy, nan gives 0, and truth values are allowed."""
    cdef int t = PyArray_TYPE(a)
    if t == cnp.NPY_BOOL:
        return cnp.PyArray_NewCopy(a, cnp.NPY_CORDER)
    if t == cnp.NPY_FLOAT or t == cnp.NPY_DOUBLE:
        return _sign_of_floats(a, t == cnp.NPY_FLOAT)
    out = _sign.call1(a, None)
    if cnp.PyTypeNum_ISFLOAT(t):
        out[np.isnan(out)] = 0
    return out


cdef ndarray _sign_of_floats(ndarray a, bint single):
    cdef ndarray out
    a = one_block(a)
    out = empty_like(a)
    if single:
        sign_float(<const float*>PyArray_DATA(a), <float*>PyArray_DATA(out), PyArray_SIZE(a))
    else:
        sign_double(<const double*>PyArray_DATA(a), <double*>PyArray_DATA(out), PyArray_SIZE(a))
    return out


def where(ndarray condition not None, ndarray a not None, ndarray b not None):
    """Elements of `a` where the condition holds, else of `b`; all broadcast, `a` and `b` have one type."""
    cdef ndarray out
    cdef Py_ssize_t n = PyArray_SIZE(condition)
    cdef int size = PyArray_ITEMSIZE(a)
    cdef bint a_is_one = _is_one_number(a), b_is_one = _is_one_number(b)
    if (PyArray_TYPE(condition) != cnp.NPY_BOOL or PyArray_TYPE(a) != PyArray_TYPE(b) or size not in (4, 8)
            or a_is_one and b_is_one or not PyArray_IS_C_CONTIGUOUS(condition)
            or not (a_is_one or _lies_like(a, condition)) or not (b_is_one or _lies_like(b, condition))):
        return np.where(condition, a, b)
    out = empty_like(b if a_is_one else a)
    if n > RELEASE_ABOVE:
        with nogil:
            _select(PyArray_DATA(condition), PyArray_DATA(a), PyArray_DATA(b), PyArray_DATA(out), n, size,
                    a_is_one, b_is_one)
    else:
        _select(PyArray_DATA(condition), PyArray_DATA(a), PyArray_DATA(b), PyArray_DATA(out), n, size,
                a_is_one, b_is_one)
    return out


cdef inline bint _is_one_number(ndarray a) noexcept:
    return PyArray_NDIM(a) == 0 and PyArray_ISBEHAVED_RO(a)


cdef bint _lies_like(ndarray a, ndarray condition) noexcept:
    """Whether two arrays have one shape, and their elements lie in order, one after another."""
    return cnp.PyArray_SAMESHAPE(a, condition) and PyArray_IS_C_CONTIGUOUS(a) and PyArray_ISBEHAVED_RO(a)


cdef void _select(const void* c, const void* a, const void* b, void* out, Py_ssize_t n, int size, bint a_is_one,
                  bint b_is_one) noexcept nogil:
    if size == 4:
        select_4(<const cnp.npy_uint8*>c, <const cnp.npy_uint32*>a, <const cnp.npy_uint32*>b, <cnp.npy_uint32*>out, n,
                 a_is_one, b_is_one)
    else:
        select_8(<const cnp.npy_uint8*>c, <const cnp.npy_uint64*>a, <const cnp.npy_uint64*>b, <cnp.npy_uint64*>out, n,
                 a_is_one, b_is_one)


def erf(ndarray a not None):
    """The error function; of float64 by the C library's."""
    cdef ndarray out
    cdef int t = PyArray_TYPE(a)
    cdef Py_ssize_t n = PyArray_SIZE(a)
    if t != cnp.NPY_FLOAT and t != cnp.NPY_DOUBLE:
        return cast(erf(cast(a, cnp.NPY_FLOAT)), t)
    a = one_block(a)
    out = empty_like(a)
    if n > RELEASE_ABOVE:
        with nogil:
            _erf_loop(PyArray_DATA(a), PyArray_DATA(out), n, t == cnp.NPY_FLOAT)
    else:
        _erf_loop(PyArray_DATA(a), PyArray_DATA(out), n, t == cnp.NPY_FLOAT)
    return out


cdef void _erf_loop(const void* a, void* out, Py_ssize_t n, bint single) noexcept nogil:
    cdef Py_ssize_t i
    if single:
        erf_float(<const float*>a, <float*>out, n)
    else:
        for i in range(n):
            (<double*>out)[i] = c_erf((<const double*>a)[i])


cpdef ndarray clamp(ndarray a, object low, object high):
    """min(max(a, low), high); a bound is an array of the type of `a`, a number, or None. nan stays nan."""
    cdef ndarray out = a
    cdef bint by_numbers = not isinstance(low, ndarray) and not isinstance(high, ndarray)
    if by_numbers and PyArray_TYPE(a) in (cnp.NPY_FLOAT, cnp.NPY_DOUBLE):
        return clamp_floats(a, -INFINITY if low is None else low, INFINITY if high is None else high)
    if low is not None:
        out = _bounded(_maximum, a, low, None)
    if high is not None:
        reuse = low is not None and not isinstance(high, ndarray)
        out = _bounded(_minimum, out, high, out if reuse else None)
    return out


cdef ndarray clamp_floats(ndarray a, double low, double high):
    cdef ndarray out
    cdef Py_ssize_t n = PyArray_SIZE(a)
    if low != low or high != high:
        return np.full_like(a, np.nan)
    a = one_block(a)
    out = empty_like(a)
    if n > RELEASE_ABOVE:
        with nogil:
            _clamp_loop(PyArray_DATA(a), PyArray_DATA(out), n, PyArray_TYPE(a) == cnp.NPY_FLOAT, low, high)
    else:
        _clamp_loop(PyArray_DATA(a), PyArray_DATA(out), n, PyArray_TYPE(a) == cnp.NPY_FLOAT, low, high)
    return out


cdef void _clamp_loop(const void* a, void* out, Py_ssize_t n, bint single, double low, double high) noexcept nogil:
    if single:
        clamp_float(<const float*>a, <float*>out, n, <float>low, <float>high)
    else:
        clamp_double(<const double*>a, <double*>out, n, low, high)


cdef ndarray _bounded(Ufunc ufunc, ndarray a, object bound, ndarray out):
    if isinstance(bound, ndarray):
        return ufunc.call2(a, <ndarray>bound, out)
    return ufunc.call2_scalar(a, bound, False, out)
