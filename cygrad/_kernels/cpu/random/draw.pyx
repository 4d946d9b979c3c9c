"""Random numbers from the Mersenne Twister (twister.pyx), or from NumPy's bit generator, without the overhead of its
methods (draw.h).
"""

from types import SimpleNamespace

from cpython.pycapsule cimport PyCapsule_GetPointer
from libc.stdint cimport UINT32_MAX, int64_t, uint64_t

cimport numpy as cnp

from cygrad._kernels.tape.tape cimport refuse_always
from cygrad._kernels.cpu.base.arrays cimport PURE, empty, is_plain
from cygrad._kernels.cpu.random.twister cimport Twister, drew
from cygrad._kernels.cpu.random.twister import KINDS
from cygrad._kernels.platform.thread_pool cimport RELEASE_ABOVE
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
    refuse_always("draws random numbers")
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
        whole = empty(cnp.PyArray_NDIM(out), cnp.PyArray_DIMS(out), cnp.NPY_INT64)
        cnp.PyArray_CopyInto(out, draw(numbers, whole, what, a, b))
        return out
    if PURE or not is_plain(out) or not cnp.PyArray_IS_C_CONTIGUOUS(out) or (
            size > MOST_DRAWS if is_float else <uint64_t>size > UINT32_MAX) or (
            typenum != (cnp.NPY_INT64 if is_whole else cnp.NPY_DOUBLE) and (is_whole or not is_float)):
        return generic.fill(numbers, out, what, a, b)
    wanted.what, wanted.is_float, wanted.size, wanted.out = what, is_float, size, cnp.PyArray_DATA(out)
    if is_whole:
        wanted.low, wanted.span = a, b
    else:
        wanted.a, wanted.b = a, b
        if not is_float and (what != UNIFORM_NUMBERS or wanted.a != 0 or wanted.b != 1):
            return generic.fill(numbers, out, what, a, b)
    bits = numbers.bit_generator
    wanted.source = <bitgen_t*>PyCapsule_GetPointer(bits.capsule, "BitGenerator")
    with bits.lock:
        if size <= RELEASE_ABOVE:
            draw_numbers(&wanted)
        else:
            with nogil:
                draw_numbers(&wanted)
    return out
