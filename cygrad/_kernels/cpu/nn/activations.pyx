"""Activation functions, and their gradients from the input or the result, each in a single pass.

The loops (`activations.h`) support float32 and float64; float16 goes through float32, other types through NumPy, with the
formulas in numpy_fallback.py.
"""

cimport numpy as cnp

from cygrad._kernels.cpu.base.arrays cimport (
    NTYPES, PURE, RELEASE_ABOVE, cast, dense, empty_like, is_plain, one_block, same_shape)
from cygrad._kernels.platform.thread_pool cimport share
from cygrad._kernels.cpu.base import numpy_fallback
from cygrad._kernels.device.dispatch import dispatching
from cygrad._kernels.tape.tape cimport ITEMWISE, READS, WRITES, Word, note_loop, refuse, tape_open, word

cnp.import_array()

cdef extern from "nn/activations.h" nogil:
    ctypedef void (*map_t)(const void* x, void* out, Py_ssize_t n) noexcept
    ctypedef void (*gradient_t)(const void* g, const void* x, void* out, Py_ssize_t n) noexcept
    map_t map_of(int function, bint is_double) noexcept
    gradient_t gradient_of(int function, bint is_double) noexcept
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
    """Whether the type is float16 or similar (bfloat16)."""
    return t == cnp.NPY_FLOAT16 or t >= NTYPES


cdef enum:
    PIECE = 1 << 14             # elements per chunk

cdef struct Work:
    map_t map
    gradient_t gradient
    const char* g
    const char* x
    char* out
    Py_ssize_t itemsize


cdef void _map_part(void* context, Py_ssize_t first, Py_ssize_t n) noexcept nogil:
    cdef Work* work = <Work*>context
    first *= work.itemsize
    work.map(work.x + first, work.out + first, n)


cdef void _gradient_part(void* context, Py_ssize_t first, Py_ssize_t n) noexcept nogil:
    cdef Work* work = <Work*>context
    first *= work.itemsize
    work.gradient(work.g + first, work.x + first, work.out + first, n)


# -- for the tape (Note [The tape] in tape.pyx)

cdef struct Call:
    Work work
    Py_ssize_t n


cdef void _replay(void* context) noexcept nogil:
    cdef Call* call = <Call*>context
    if call.work.map != NULL:
        share(_map_part, &call.work, call.n, PIECE)
    else:
        share(_gradient_part, &call.work, call.n, PIECE)


cdef void _note(Work* work, bint is_gradient, Py_ssize_t n) noexcept:
    cdef Call call
    cdef Word[3] words
    cdef Py_ssize_t size = n * work.itemsize
    if n == 0:
        return
    call.work = work[0]
    call.n = n
    if is_gradient:
        call.work.map = NULL
    else:
        call.work.gradient = NULL
        call.work.g = NULL
    words[0] = word(&call, &call.work.x, READS | ITEMWISE, 0, size)
    words[1] = word(&call, &call.work.g, READS | ITEMWISE, 0, size)
    words[2] = word(&call, &call.work.out, WRITES | ITEMWISE, 0, size)
    note_loop(_replay, _gradient_part if is_gradient else _map_part, "loop", &call, sizeof(call), words, 3, n)


cdef class Pointwise:
    """A loop of activations.h, by number; `fallback` computes the same with NumPy."""

    cdef int function
    cdef object fallback

    # `gpu.form_of` looks up the GPU form by these two
    @property
    def __name__(self):
        return self.fallback.__name__

    @property
    def module(self):
        return "cygrad._kernels.cpu.nn.activations"

    def __cinit__(self, int function, fallback):
        self.function = function
        self.fallback = fallback


cdef class Map(Pointwise):
    """An elementwise function."""

    def __call__(self, cnp.ndarray a):
        cdef int t = cnp.PyArray_TYPE(a)
        cdef Py_ssize_t n = cnp.PyArray_SIZE(a)
        cdef cnp.ndarray out
        cdef Work work
        if not _has_loop(t):
            if _is_narrow(t):
                return cast(self(cast(a, cnp.NPY_FLOAT)), t)
            refuse("runs in NumPy", self.__name__)
            return self.fallback(a)
        a = one_block(a)
        out = empty_like(a)
        work.map = map_of(self.function, t == cnp.NPY_DOUBLE)
        work.x = cnp.PyArray_BYTES(a)
        work.out = cnp.PyArray_BYTES(out)
        work.itemsize = cnp.PyArray_ITEMSIZE(a)
        if tape_open:
            _note(&work, False, n)
        if n > RELEASE_ABOVE:
            with nogil:
                share(_map_part, &work, n, PIECE)
        else:
            work.map(work.x, work.out, n)
        return out


cdef class Gradient(Pointwise):
    """The gradient of a function from the incoming gradient and the function's input or result."""

    def __call__(self, cnp.ndarray grad, cnp.ndarray a, bint over=False):
        """Return a new array, or, with `over`, reuse the memory of `grad` if it has the layout of `a`."""
        cdef int t = cnp.PyArray_TYPE(a)
        cdef Py_ssize_t n = cnp.PyArray_SIZE(a)
        cdef cnp.ndarray out
        cdef Work work
        if not same_shape(grad, a) or cnp.PyArray_TYPE(grad) != t:
            raise ValueError(f"a gradient of shape {(<object>grad).shape} and type {grad.dtype} for an array of shape "
                             f"{(<object>a).shape} and type {a.dtype}")
        if not _has_loop(t):
            if _is_narrow(t):
                return cast(self(cast(grad, cnp.NPY_FLOAT), cast(a, cnp.NPY_FLOAT)), t)
            refuse("runs in NumPy", self.__name__)
            return self.fallback(grad, a)
        if not (is_plain(grad) and is_plain(a) and cnp.PyArray_IS_F_CONTIGUOUS(grad)
                and cnp.PyArray_IS_F_CONTIGUOUS(a)):
            over = over and cnp.PyArray_IS_C_CONTIGUOUS(grad)
            grad = dense(grad)
            a = dense(a)
        out = grad if over else empty_like(a)
        work.gradient = gradient_of(self.function, t == cnp.NPY_DOUBLE)
        work.g = cnp.PyArray_BYTES(grad)
        work.x = cnp.PyArray_BYTES(a)
        work.out = cnp.PyArray_BYTES(out)
        work.itemsize = cnp.PyArray_ITEMSIZE(a)
        if tape_open:
            _note(&work, True, n)
        if n > RELEASE_ABOVE:
            with nogil:
                share(_gradient_part, &work, n, PIECE)
        else:
            work.gradient(work.g, work.x, work.out, n)
        return out


sigmoid = Map(SIGMOID, numpy_fallback.sigmoid)
silu = Map(SILU, numpy_fallback.silu)
mish = Map(MISH, numpy_fallback.mish)
gelu_exact = Map(GELU, numpy_fallback.gelu)
gelu_tanh = Map(GELU_TANH, numpy_fallback.gelu_tanh)

# From the input
silu_backward = Gradient(SILU, numpy_fallback.silu_backward)
mish_backward = Gradient(MISH, numpy_fallback.mish_backward)
gelu_backward = Gradient(GELU, numpy_fallback.gelu_backward)
gelu_tanh_backward = Gradient(GELU_TANH, numpy_fallback.gelu_tanh_backward)

# From the result. threshold is relu's: the gradient passes where the result is NaN
tanh_backward = Gradient(TANH_OF_RESULT, numpy_fallback.tanh_backward)
sigmoid_backward = Gradient(SIGMOID_OF_RESULT, numpy_fallback.sigmoid_backward)
threshold_backward = Gradient(THRESHOLD_OF_RESULT, numpy_fallback.threshold_backward)


def gelu(cnp.ndarray a not None, str approximate="none"):
    """GELU: a times the normal CDF at a, or times its approximation if "tanh"."""
    return gelu_tanh(a) if approximate == "tanh" else gelu_exact(a)


dispatching(globals(), """sigmoid silu mish gelu_exact gelu_tanh silu_backward mish_backward gelu_backward gelu_tanh_backward
    tanh_backward sigmoid_backward threshold_backward gelu""")
