"""Multithreaded loops over one array.

Note [Pieces]
-------------
A loop over many elements is split into chunks (`piece` elements each) that threads take (`thread_pool.h`). The split depends
on the shape alone, never on the number of threads, and a single thread also works chunk by chunk. Results are therefore
equal bit for bit for any number of threads. Sums add the partial sums of the chunks in order.
"""

import os
import sys

cimport numpy as cnp
from libc.string cimport memcpy, memset

from cygrad._kernels.platform import machine
from cygrad._kernels.tape.tape cimport ITEMWISE, READS, WRITES, Word, note_loop, refuse, tape_open, word

cnp.import_array()

cdef extern from "platform/thread_pool.h":
    void cygrad_share(part_t part, void* context, Py_ssize_t n, Py_ssize_t piece, int threads) noexcept nogil
    void cygrad_threads_begin() noexcept
    bint cygrad_find_blas(const char* library) noexcept
    bint cygrad_blas_has_short_vectors() noexcept

cdef int _threads = 0                       # 0: not initialized yet

cygrad_threads_begin()
cdef bint _blas_works_alone = cygrad_find_blas(os.fsencode(sys.modules["numpy._core._multiarray_umath"].__file__))


cdef bint blas_works_alone() noexcept nogil:
    return _blas_works_alone


cdef bint blas_has_short_vectors() noexcept:
    return cygrad_blas_has_short_vectors()


cdef void share(part_t part, void* context, Py_ssize_t n, Py_ssize_t piece) noexcept nogil:
    if n < 2 * piece:
        part(context, 0, n)
    else:
        share_products(part, context, n, piece)


cdef void share_products(part_t part, void* context, Py_ssize_t n, Py_ssize_t piece) noexcept nogil:
    if _threads == 0:
        with gil:
            num_threads()
    cygrad_share(part, context, n, piece, max(_threads, 1))


cdef struct Loop:
    Elements* elements
    elements_t function
    const void* settings


cdef void _loop_part(void* context, Py_ssize_t first, Py_ssize_t n) noexcept nogil:
    cdef Loop* loop = <Loop*>context
    cdef char* data[5]
    cdef int k
    for k in range(loop.elements.count):
        data[k] = loop.elements.data[k] + first * loop.elements.steps[k]
    loop.function(data, n, loop.settings)


cdef void over(Elements* e, elements_t loop, const void* settings, size_t size, Py_ssize_t n, Py_ssize_t piece) noexcept:
    cdef Loop shared
    if tape_open:
        _note(e, loop, settings, size, n, piece)
    if n <= RELEASE_ABOVE:
        loop(e.data, n, settings)
        return
    shared.elements = e
    shared.function = loop
    shared.settings = settings
    with nogil:
        share(_loop_part, &shared, n, piece)


cdef struct Call:               # a call of `over`, for the tape
    Elements elements
    elements_t loop
    Py_ssize_t n
    Py_ssize_t piece
    char[64] settings


cdef void _replay(void* context) noexcept nogil:
    cdef Call* call = <Call*>context
    if call.n > RELEASE_ABOVE:
        share(_replay_part, call, call.n, call.piece)
    else:
        _replay_part(call, 0, call.n)


cdef void _replay_part(void* context, Py_ssize_t first, Py_ssize_t n) noexcept nogil:
    cdef Call* call = <Call*>context
    cdef Loop shared
    shared.elements = &call.elements
    shared.function = call.loop
    shared.settings = <const void*>&call.settings[0]
    _loop_part(&shared, first, n)


cdef void _note(Elements* e, elements_t loop, const void* settings, size_t size, Py_ssize_t n, Py_ssize_t piece) noexcept:
    cdef Call call
    cdef Word[5] words
    cdef int k, last = e.count - 1
    if n == 0:
        return
    if size > sizeof(call.settings):
        refuse("a loop has many settings")
        return
    memset(&call, 0, sizeof(call))
    call.elements.count = e.count
    call.loop = loop
    call.n = n
    call.piece = piece
    memcpy(call.settings, settings, size)
    for k in range(e.count):
        call.elements.data[k] = e.data[k]
        call.elements.steps[k] = e.steps[k]
        words[k] = word(&call, &call.elements.data[k],
                        (READS if k < last else WRITES) | (ITEMWISE if e.steps[k] else 0), 0,
                        n * e.steps[k] if e.steps[k] else e.steps[last])
    note_loop(_replay, _replay_part, "loop", &call, sizeof(call), words, e.count, n)


def num_threads():
    """Return how many threads work on a large array."""
    global _threads
    if _threads == 0:
        _threads = machine.num_threads()
    return _threads


def set_num_threads(int num):
    """Set the number of threads, to 1 or more."""
    global _threads
    _threads = num
