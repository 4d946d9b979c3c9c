"""Loops that are called by number: for kernels whose arguments are better checked in Python (norms.py, images.py,
recurrent.py).

What a loop takes stands beside it in its header. `run` sees to it that pointers are those of dense arrays; that these
have the sizes that the numbers say is what the caller checks.
"""

from libc.string cimport memset

cimport numpy as cnp

from cygrad._kernels.arrays cimport PURE, is_plain
from cygrad._kernels.parallel cimport part_t, share
from cygrad._kernels.blas cimport matmul_loop
from cygrad._kernels.walk cimport Loop, loop_t

cnp.import_array()

cdef extern from "native.h":
    enum:
        LOOPS
    ctypedef struct product_loop:
        loop_t function
        void* data
    product_loop product_loops[2]
    const part_t native_parts[]
    bint native_has(int loop) nogil


cdef void _keep_product_loop(bint is_double) noexcept:
    cdef Loop* loop = matmul_loop(cnp.NPY_DOUBLE if is_double else cnp.NPY_FLOAT)
    product_loops[is_double].function = loop.function
    product_loops[is_double].data = loop.data

_keep_product_loop(False)
_keep_product_loop(True)


def has_loops(cnp.ndarray a not None):
    """Whether there are loops for the type of the array."""
    return cnp.PyArray_TYPE(a) in (cnp.NPY_FLOAT, cnp.NPY_DOUBLE) and not PURE


def has_loop(int loop):
    """Whether the compiler could make that loop, and this processor can run it."""
    return bool(native_has(loop))


cdef part_t loop_of(int loop) noexcept:
    return native_parts[loop]


def run(int loop, tuple arrays, tuple numbers, double real, Py_ssize_t items, Py_ssize_t piece):
    """Run a loop over so many items, in pieces for threads; tells whether it failed. The first array says the type.

    Arrays are dense, and of float32 or float64 (or of integers, where a loop takes those); None, and what is left out at
    the end, is a NULL.
    """
    cdef native_call c
    cdef cnp.ndarray array
    cdef Py_ssize_t i
    cdef part_t part
    memset(&c, 0, sizeof(c))
    fits = 0 <= loop < LOOPS and len(arrays) <= 23 and len(numbers) <= 17
    if not fits or not has_loops(arrays[0]) or not native_has(loop):
        raise ValueError(f"no loop {loop}")
    for i in range(len(arrays)):
        array = arrays[i]
        if array is not None and not (is_plain(array) and cnp.PyArray_IS_C_CONTIGUOUS(array)):
            raise ValueError("an array is not dense")
        c.data[i] = NULL if array is None else cnp.PyArray_BYTES(array)
    for i in range(len(numbers)):
        c.n[i] = numbers[i]
    c.is_double = cnp.PyArray_TYPE(arrays[0]) == cnp.NPY_DOUBLE
    c.itemsize = 8 if c.is_double else 4
    c.piece = max(piece, 1)
    c.real = real
    part = native_parts[loop]
    with nogil:
        share(part, &c, items, c.piece)
    return c.failed
