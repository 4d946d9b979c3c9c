"""Elementwise functions of neural networks, and gradients from their input or their result: one pass each.

Their loops (`activations.h`) work on float32 and float64; float16 goes through float32, other types through NumPy.
"""

cimport numpy as cnp

from cygrad._kernels.arrays cimport (
    NTYPES, PURE, RELEASE_ABOVE, cast, dense, empty_like, is_plain, one_block, same_shape)
from cygrad._kernels import by_numpy

cnp.import_array()

cdef extern from "activations.h" nogil:
    ctypedef void (*map_t)(const void* x, void* out, Py_ssize_t n) noexcept
    ctypedef void (*gradient_t)(const void* g, const void* x, void* out, Py_ssize_t n) noexcept
    const map_t[2] maps[]
    const gradient_t[2] gradients[]
    cdef enum:
        SIGMOID
        SILU
        MISH
        GELU
        GELU_TANH
        TANH_OF_RESULT
        SIGMOID_OF_RESULT
        THRESHOLD_OF_RESULT


cdef inline bint _has_loop(int t) noexcept:
    return (t == cnp.NPY_FLOAT or t == cnp.NPY_DOUBLE) and not PURE


cdef inline bint _is_narrow(int t) noexcept:
    """float16 and the like of other packages (bfloat16)."""
    return t == cnp.NPY_FLOAT16 or t >= NTYPES


cdef cnp.ndarray _map(int function, cnp.ndarray a, object fallback):
    cdef int t = cnp.PyArray_TYPE(a)
    cdef Py_ssize_t n = cnp.PyArray_SIZE(a)
    cdef cnp.ndarray out
    cdef map_t loop
    cdef void* x
    cdef void* z
    if not _has_loop(t):
        if _is_narrow(t):
            return cast(_map(function, cast(a, cnp.NPY_FLOAT), fallback), t)
        return fallback(a)
    a = one_block(a)
    out = empty_like(a)
    loop = maps[function][t == cnp.NPY_DOUBLE]
    x = cnp.PyArray_DATA(a)
    z = cnp.PyArray_DATA(out)
    if n > RELEASE_ABOVE:
        with nogil:
            loop(x, z, n)
    else:
        loop(x, z, n)
    return out


cdef cnp.ndarray _gradient(int function, cnp.ndarray grad, cnp.ndarray a, object fallback):
    """From the gradient that comes in, and the input or the result."""
    cdef int t = cnp.PyArray_TYPE(a)
    cdef Py_ssize_t n = cnp.PyArray_SIZE(a)
    cdef cnp.ndarray out
    cdef gradient_t loop
    cdef void* g
    cdef void* x
    cdef void* z
    if not same_shape(grad, a) or cnp.PyArray_TYPE(grad) != t:
        raise ValueError(f"a gradient of shape {(<object>grad).shape} and type {grad.dtype} for an array of shape "
                         f"{(<object>a).shape} and type {a.dtype}")
    if not _has_loop(t):
        if _is_narrow(t):
            return cast(_gradient(function, cast(grad, cnp.NPY_FLOAT), cast(a, cnp.NPY_FLOAT), fallback), t)
        return fallback(grad, a)
    if not (is_plain(grad) and is_plain(a) and cnp.PyArray_IS_F_CONTIGUOUS(grad) and cnp.PyArray_IS_F_CONTIGUOUS(a)):
        grad = dense(grad)
        a = dense(a)
    out = empty_like(a)
    loop = gradients[function][t == cnp.NPY_DOUBLE]
    g = cnp.PyArray_DATA(grad)
    x = cnp.PyArray_DATA(a)
    z = cnp.PyArray_DATA(out)
    if n > RELEASE_ABOVE:
        with nogil:
            loop(g, x, z, n)
    else:
        loop(g, x, z, n)
    return out


# ---------------------------------------------------------------------------------------- of the input


cpdef cnp.ndarray sigmoid(cnp.ndarray a):
    """1 / (1 + exp(-a))."""
    return _map(SIGMOID, a, by_numpy.sigmoid)


def silu(cnp.ndarray a):
    """a / (1 + exp(-a))."""
    return _map(SILU, a, by_numpy.silu)


def silu_backward(cnp.ndarray grad, cnp.ndarray a):
    """grad * s * (1 + a * (1 - s)) with s = sigmoid(a)."""
    return _gradient(SILU, grad, a, by_numpy.silu_backward)


def mish(cnp.ndarray a):
    """a times the hyperbolic tangent of its softplus."""
    return _map(MISH, a, by_numpy.mish)


def mish_backward(cnp.ndarray grad, cnp.ndarray a):
    """grad * (t + a * sigmoid(a) * (1 - t**2)), t being that tangent."""
    return _gradient(MISH, grad, a, by_numpy.mish_backward)


def gelu(cnp.ndarray a, str approximate="none"):
    """a times the normal distribution function at a, or, with "tanh", times an approximation of it."""
    if approximate == "tanh":
        return _map(GELU_TANH, a, by_numpy.gelu_tanh)
    return _map(GELU, a, by_numpy.gelu)


def gelu_backward(cnp.ndarray grad, cnp.ndarray a, str approximate="none"):
    """grad times the derivative: the distribution function at a, plus a times its derivative."""
    if approximate == "tanh":
        return _gradient(GELU_TANH, grad, a, by_numpy.gelu_tanh_backward)
    return _gradient(GELU, grad, a, by_numpy.gelu_backward)


# ---------------------------------------------------------------------------------------- of the result


cpdef cnp.ndarray threshold_backward(cnp.ndarray grad, cnp.ndarray out):
    """grad where out > 0, else 0: the gradient of relu, from its result. Where `out` is nan, grad passes."""
    return _gradient(THRESHOLD_OF_RESULT, grad, out, by_numpy.threshold_backward)


cpdef cnp.ndarray tanh_backward(cnp.ndarray grad, cnp.ndarray out):
    """grad * (1 - out**2): the gradient of tanh, from its result."""
    return _gradient(TANH_OF_RESULT, grad, out, by_numpy.tanh_backward)


cpdef cnp.ndarray sigmoid_backward(cnp.ndarray grad, cnp.ndarray out):
    """grad * (1 - out) * out: the gradient of the logistic function, from its result."""
    return _gradient(SIGMOID_OF_RESULT, grad, out, by_numpy.sigmoid_backward)
