"""Random numbers from the Mersenne Twister (twister.pyx), or from NumPy's bit generator, without the overhead of its
methods (draw.h).
"""

from types import SimpleNamespace

from cpython.pycapsule cimport PyCapsule_GetPointer
from libc.stdint cimport UINT32_MAX, int64_t, uint64_t
from libc.string cimport memcpy, memset

cimport numpy as cnp
import numpy as np

from cygrad._kernels.tape.tape cimport WRITES, Word, note, refuse_always, replay_t, tape_open, word
from cygrad._kernels.cpu.base.arrays cimport PURE, empty, is_plain
from cygrad._kernels.cpu.random.twister cimport Twister, drew, note_stream
from cygrad._kernels.cpu.random.twister import KINDS
from cygrad._kernels.platform.thread_pool cimport LIGHT, RELEASE_ABOVE, Elements, enter, over
from cygrad._library import later

cdef int WORDS_BELOW = KINDS.WORDS_BELOW

mersenne = later("cygrad._kernels.cpu.random.mersenne")     # it imports this module
generic = later("cygrad._kernels.cpu.random.random")        # likewise

cnp.import_array()

cdef extern from "random/draw.h":
    enum:
        UNIFORM_NUMBERS
        NORMAL_NUMBERS
        EXPONENTIAL_NUMBERS
        COINS
        INTEGERS
        SHUFFLED
        MOST_DRAWS
    ctypedef struct bitgen_t:
        pass
    ctypedef struct draws:
        bitgen_t* source
        int what
        bint is_float
        void* out
        Py_ssize_t size
        int64_t low
        uint64_t span
        double a
        double b
    void draw_numbers(const draws* wanted) nogil

# The kinds of random numbers that `draw` draws.
DRAWS = SimpleNamespace(UNIFORMS=UNIFORM_NUMBERS, NORMALS=NORMAL_NUMBERS, EXPONENTIALS=EXPONENTIAL_NUMBERS, COINS=COINS,
                        INTEGERS=INTEGERS, SHUFFLED=SHUFFLED)


cpdef cnp.ndarray draw(object numbers, cnp.ndarray out, int what, object a=0, object b=1):
    """Fill the array with random numbers from a `Twister` or from NumPy's generator, and return it.

    Integers are drawn from the b < 2^64 values starting at a. Cases without a loop here go to `fill` of mersenne.py or
    random.py.
    """
    if out is None:
        raise TypeError("expected an array")
    if type(numbers) is Twister:
        return out if drew(<Twister>numbers, out, what, a, b) else mersenne.fill(numbers, out, what, a, b)
    if what == WORDS_BELOW:
        what = INTEGERS
    cdef int typenum = cnp.PyArray_TYPE(out)
    cdef Py_ssize_t size = cnp.PyArray_SIZE(out)
    cdef bint is_whole = what >= INTEGERS, is_float = typenum == cnp.NPY_FLOAT
    cdef draws wanted
    if is_whole and typenum != cnp.NPY_INT64 and typenum <= cnp.NPY_DOUBLE and size <= MOST_DRAWS and is_plain(out):
        refuse_always("draws random numbers of a type or layout that is converted")
        whole = empty(cnp.PyArray_NDIM(out), cnp.PyArray_DIMS(out), cnp.NPY_INT64)
        cnp.PyArray_CopyInto(out, draw(numbers, whole, what, a, b))
        return out
    if PURE or not is_plain(out) or not cnp.PyArray_IS_C_CONTIGUOUS(out) or (
            size > MOST_DRAWS if is_float else <uint64_t>size > UINT32_MAX) or (
            typenum != (cnp.NPY_INT64 if is_whole else cnp.NPY_DOUBLE) and (is_whole or not is_float)):
        refuse_always("draws random numbers in NumPy")
        return generic.fill(numbers, out, what, a, b)
    wanted.what, wanted.is_float, wanted.size, wanted.out = what, is_float, size, cnp.PyArray_DATA(out)
    if is_whole:
        wanted.low, wanted.span = a, b
    else:
        wanted.a, wanted.b = a, b
        if not is_float and (what != UNIFORM_NUMBERS or wanted.a != 0 or wanted.b != 1):
            refuse_always("draws random numbers in NumPy")
            return generic.fill(numbers, out, what, a, b)
    bits = numbers.bit_generator
    wanted.source = <bitgen_t*>PyCapsule_GetPointer(bits.capsule, "BitGenerator")
    if tape_open:
        _note(numbers, bits.lock, &wanted, cnp.PyArray_NBYTES(out))
    with bits.lock:
        if size <= RELEASE_ABOVE:
            draw_numbers(&wanted)
        else:
            with nogil:
                draw_numbers(&wanted)
    return out


def scaled(cnp.ndarray drawn not None, scale):
    """A dense array of float32 times a number of NumPy's float32 or float64, in the type of that."""
    cdef Elements elements
    cdef double factor = scale
    cdef bint is_double = type(scale) is np.float64
    cdef cnp.ndarray out
    if not is_plain(drawn) or cnp.PyArray_TYPE(drawn) != cnp.NPY_FLOAT or not cnp.PyArray_IS_C_CONTIGUOUS(drawn):
        raise TypeError("expected a dense array of float32")
    out = empty(cnp.PyArray_NDIM(drawn), cnp.PyArray_DIMS(drawn), cnp.NPY_DOUBLE if is_double else cnp.NPY_FLOAT)
    elements.count = 0
    enter(&elements, drawn)
    enter(&elements, out)
    over(&elements, _scale_f64 if is_double else _scale_f32, &factor, sizeof(factor), cnp.PyArray_SIZE(drawn), LIGHT)
    return out


cdef void _scale_f32(char** data, Py_ssize_t n, const void* factor) noexcept nogil:
    cdef Py_ssize_t i
    cdef float scale = <float>(<const double*>factor)[0]
    for i in range(n):
        (<float*>data[1])[i] = (<float*>data[0])[i] * scale


cdef void _scale_f64(char** data, Py_ssize_t n, const void* factor) noexcept nogil:
    cdef Py_ssize_t i
    cdef double scale = (<const double*>factor)[0]
    for i in range(n):
        (<double*>data[1])[i] = (<float*>data[0])[i] * scale


# -- for the tape (Note [The tape] in tape.pyx)

cdef struct DrawCall:
    void* lock                      # the stream's, which lives as long as the stream
    draws wanted


cdef void _replay(void* context) noexcept with gil:
    cdef DrawCall* call = <DrawCall*>context
    with <object>call.lock:
        draw_numbers(&call.wanted)


cdef int _note(object numbers, object lock, const draws* wanted, Py_ssize_t nbytes) except -1:
    cdef DrawCall call
    cdef Word w
    memset(&call, 0, sizeof(call))
    memcpy(&call.wanted, wanted, sizeof(draws))
    call.lock = <void*>lock
    w = word(&call, &call.wanted.out, WRITES, 0, nbytes)
    note_stream(numbers)
    note(<replay_t>_replay, "draw", &call, sizeof(call), &w, 1)
    return 0
