"""Elementwise functions for which NumPy has no ufunc, a slow one, or one that differs from PyTorch's."""

from types import NoneType

import numpy as np

cimport numpy as cnp
from libc.stdint cimport INT64_MAX, INT64_MIN, int64_t, uint8_t, uint32_t, uint64_t
from libc.math cimport INFINITY, floor, fmod, isinf
from libc.string cimport memset
from numpy cimport (
    PyArray_ISBEHAVED_RO, PyArray_IS_C_CONTIGUOUS, PyArray_ITEMSIZE, PyArray_NDIM, PyArray_SIZE,
    PyArray_TYPE, ndarray)

from cygrad._kernels.cpu.base import numpy_fallback
from cygrad._kernels.cpu.base.arrays cimport cast, empty_like, one_block
from cygrad._kernels.cpu.base.ufunc cimport Ufunc
from cygrad._kernels.platform.thread_pool cimport HEAVY, LIGHT, Elements, enter, over
from cygrad._kernels.device.dispatch import dispatching
from cygrad._kernels.tape.tape cimport refuse

cnp.import_array()

cdef extern from "base/elementwise.h" nogil:
    void clamp_float(const float* x, float* out, Py_ssize_t n, float low, float high) noexcept
    void clamp_double(const double* x, double* out, Py_ssize_t n, double low, double high) noexcept
    void clamp_int64(const int64_t* x, int64_t* out, Py_ssize_t n, int64_t low, int64_t high) noexcept
    enum: SIGN, RSQRT
    void run_function(char** data, Py_ssize_t n, int function, bint is_single) noexcept
    void select_4(const uint8_t* c, const uint32_t* a, const uint32_t* b, uint32_t* out,
                  Py_ssize_t n, bint a_is_one, bint b_is_one) noexcept
    void select_8(const uint8_t* c, const uint64_t* a, const uint64_t* b, uint64_t* out,
                  Py_ssize_t n, bint a_is_one, bint b_is_one) noexcept
    void erf_float(const float* x, float* out, Py_ssize_t n) noexcept
    void erf_double(const double* x, double* out, Py_ssize_t n) noexcept

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
    """max(a, 0); NaN stays NaN."""
    return clamp(a, 0, None)


def copy_of_real(ndarray a not None):
    """The real parts as a new array."""
    return (<object>a).real.copy()


cpdef ndarray rsqrt(ndarray a):
    """1 / sqrt(a)."""
    cdef ndarray out
    if PyArray_TYPE(a) in (cnp.NPY_FLOAT, cnp.NPY_DOUBLE):
        return _of_floats(a, RSQRT)
    out = _sqrt.call1(a, None)
    return _reciprocal.call1(out, out)


cpdef ndarray power(ndarray a, double exponent):
    """Raise floating-point `a` to a power, avoiding NumPy's loop where there is something better.

    NumPy calls the C library for each negative element, fifty times slower than its own code for positive ones.
    """
    cdef ndarray out
    if exponent == 0.5:
        return _sqrt.call1(a, None)
    if exponent == -0.5:
        return rsqrt(a)
    if exponent == -1:
        return _reciprocal.call1(a, None)
    if exponent == 1:
        return _multiply.call2_scalar(a, exponent, False, None)
    if exponent == 2 or exponent == 3 or exponent == -2:
        out = _multiply.call2(a, a, None)
        return out if exponent == 2 else _multiply.call2(out, a, out) if exponent == 3 else _reciprocal.call1(out, out)
    if exponent != floor(exponent) or isinf(exponent):
        return _power.call2_scalar(a, exponent, False, None)
    out = _absolute.call1(a, None)
    _power.call2_scalar(out, exponent, False, out)
    return _copysign.call2(out, a, out) if fmod(exponent, 2) else out


def sign(ndarray a not None):
    """-1, 0 or 1; a / |a| for complex a. Unlike NumPy's, NaN gives 0, and bool is allowed."""
    cdef int t = PyArray_TYPE(a)
    if t == cnp.NPY_BOOL:
        return cnp.PyArray_NewCopy(a, cnp.NPY_CORDER)
    if t == cnp.NPY_FLOAT or t == cnp.NPY_DOUBLE:
        return _of_floats(a, SIGN)
    out = _sign.call1(a, None)
    if cnp.PyTypeNum_ISFLOAT(t):
        out[np.isnan(out)] = 0
    return out


cdef struct Function:
    int which
    bint is_single


cdef ndarray _of_floats(ndarray a, int which):
    """Apply a function of elementwise.h to float32 or float64."""
    cdef ndarray out
    cdef Elements elements
    cdef Function function
    a = one_block(a)
    out = empty_like(a)
    function.which = which
    function.is_single = PyArray_TYPE(a) == cnp.NPY_FLOAT
    elements.count = 0
    enter(&elements, a)
    enter(&elements, out)
    over(&elements, _function_loop, &function, sizeof(function), PyArray_SIZE(a), LIGHT)
    return out


cdef void _function_loop(char** data, Py_ssize_t n, const void* function) noexcept nogil:
    run_function(data, n, (<const Function*>function).which, (<const Function*>function).is_single)


cdef struct Selection:
    int size                    # bytes per element
    bint a_is_one               # one number for all elements
    bint b_is_one


def where(ndarray condition not None, ndarray a not None, ndarray b not None):
    """Elements of `a` where the condition holds, else of `b`. All broadcast; `a` and `b` have one type."""
    cdef ndarray out
    cdef Elements elements
    cdef Selection s
    s.size = PyArray_ITEMSIZE(a)
    s.a_is_one = _is_one_number(a)
    s.b_is_one = _is_one_number(b)
    if (PyArray_TYPE(condition) != cnp.NPY_BOOL or PyArray_TYPE(a) != PyArray_TYPE(b) or s.size not in (4, 8)
            or s.a_is_one and s.b_is_one or not PyArray_IS_C_CONTIGUOUS(condition)
            or not (s.a_is_one or _lies_like(a, condition)) or not (s.b_is_one or _lies_like(b, condition))):
        refuse("runs in NumPy", "where")
        return numpy_fallback.where(condition, a, b)
    out = empty_like(b if s.a_is_one else a)
    elements.count = 0
    enter(&elements, condition)
    enter(&elements, a)
    enter(&elements, b)
    enter(&elements, out)
    if s.a_is_one:
        elements.steps[1] = 0
    if s.b_is_one:
        elements.steps[2] = 0
    over(&elements, _select, &s, sizeof(s), PyArray_SIZE(condition), LIGHT)
    return out


cdef inline bint _is_one_number(ndarray a) noexcept:
    return PyArray_NDIM(a) == 0 and PyArray_ISBEHAVED_RO(a)


cdef bint _lies_like(ndarray a, ndarray condition) noexcept:
    """Whether `a` has the condition's shape and is aligned and C-contiguous."""
    return cnp.PyArray_SAMESHAPE(a, condition) and PyArray_IS_C_CONTIGUOUS(a) and PyArray_ISBEHAVED_RO(a)


cdef void _select(char** data, Py_ssize_t n, const void* settings) noexcept nogil:
    cdef Selection* s = <Selection*>settings
    cdef const uint8_t* c = <const uint8_t*>data[0]
    if s.size == 4:
        select_4(c, <const uint32_t*>data[1], <const uint32_t*>data[2], <uint32_t*>data[3], n,
                 s.a_is_one, s.b_is_one)
    else:
        select_8(c, <const uint64_t*>data[1], <const uint64_t*>data[2], <uint64_t*>data[3], n,
                 s.a_is_one, s.b_is_one)


def erf(ndarray a not None):
    """The error function."""
    cdef ndarray out
    cdef Elements elements
    cdef int t = PyArray_TYPE(a)
    cdef bint single = t == cnp.NPY_FLOAT
    if t != cnp.NPY_FLOAT and t != cnp.NPY_DOUBLE:
        return cast(erf(cast(a, cnp.NPY_FLOAT)), t)
    a = one_block(a)
    out = empty_like(a)
    elements.count = 0
    enter(&elements, a)
    enter(&elements, out)
    over(&elements, _erf_loop, &single, sizeof(single), PyArray_SIZE(a), HEAVY)
    return out


cdef void _erf_loop(char** data, Py_ssize_t n, const void* single) noexcept nogil:
    if (<bint*>single)[0]:
        erf_float(<const float*>data[0], <float*>data[1], n)
    else:
        erf_double(<const double*>data[0], <double*>data[1], n)


cpdef ndarray clamp(ndarray a, object low, object high, ndarray out=None):
    """min(max(a, low), high); a bound is an array of the type of `a`, a number, or None. NaN stays NaN.

    `out` may be an array for the result: either `a`, or one that does not overlap it.
    """
    cdef ndarray found = a
    cdef bint by_numbers = not isinstance(low, ndarray) and not isinstance(high, ndarray)
    if by_numbers and PyArray_TYPE(a) in (cnp.NPY_FLOAT, cnp.NPY_DOUBLE):
        return clamp_floats(a, -INFINITY if low is None else low, INFINITY if high is None else high, out)
    if PyArray_TYPE(a) == cnp.NPY_INT64 and type(low) in (int, NoneType) and type(high) in (int, NoneType):
        return clamp_integers(a, INT64_MIN if low is None else low, INT64_MAX if high is None else high, out)
    if low is not None:
        found = _bounded(_maximum, a, low, out if high is None else None)
    if high is not None:
        reuse = out is None and low is not None and not isinstance(high, ndarray)
        found = _bounded(_minimum, found, high, found if reuse else out)
    return found


cdef struct Bounds:
    bint single
    double low
    double high


cdef ndarray clamp_integers(ndarray a, int64_t low, int64_t high, ndarray out):
    cdef int64_t[2] bounds
    cdef Elements elements
    a = one_block(a)
    if out is None or not PyArray_IS_C_CONTIGUOUS(a):
        out = empty_like(a)
    bounds[0] = low
    bounds[1] = high
    elements.count = 0
    enter(&elements, a)
    enter(&elements, out)
    over(&elements, _clamp_integers_loop, bounds, sizeof(bounds), PyArray_SIZE(a), LIGHT)
    return out


cdef void _clamp_integers_loop(char** data, Py_ssize_t n, const void* bounds) noexcept nogil:
    clamp_int64(<const int64_t*>data[0], <int64_t*>data[1], n, (<const int64_t*>bounds)[0],
                (<const int64_t*>bounds)[1])


cdef ndarray clamp_floats(ndarray a, double low, double high, ndarray out):
    cdef Elements elements
    cdef Bounds bounds
    if low != low or high != high:
        out = np.empty_like(a) if out is None else out
        refuse("runs in NumPy", "clamp")
        (<object>out).fill(np.nan)
        return out
    a = one_block(a)
    if out is None or not PyArray_IS_C_CONTIGUOUS(a):
        out = empty_like(a)
    memset(&bounds, 0, sizeof(bounds))
    bounds.single = PyArray_TYPE(a) == cnp.NPY_FLOAT
    bounds.low = low
    bounds.high = high
    elements.count = 0
    enter(&elements, a)
    enter(&elements, out)
    over(&elements, _clamp_loop, &bounds, sizeof(bounds), PyArray_SIZE(a), LIGHT)
    return out


cdef void _clamp_loop(char** data, Py_ssize_t n, const void* settings) noexcept nogil:
    cdef Bounds* b = <Bounds*>settings
    if b.single:
        clamp_float(<const float*>data[0], <float*>data[1], n, <float>b.low, <float>b.high)
    else:
        clamp_double(<const double*>data[0], <double*>data[1], n, b.low, b.high)


cdef ndarray _bounded(Ufunc ufunc, ndarray a, object bound, ndarray out):
    if isinstance(bound, ndarray):
        return ufunc.call2(a, <ndarray>bound, out)
    return ufunc.call2_scalar(a, bound, False, out)


dispatching(globals(), "relu copy_of_real rsqrt power sign where erf clamp")
