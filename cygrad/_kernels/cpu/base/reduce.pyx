"""Reductions along some dimensions.

Note [Reducing with elementwise loops]
--------------------------------------
NumPy's loop of a binary ufunc reduces if its first input and its output are the same element with step 0:
`out = f(out, a[0])`, `out = f(out, a[1])`, and so on. We walk `out` beside `a`, with steps of 0 along the reduced
dimensions. This handles any shape and any strides, and runs a SIMD loop whichever dimension is innermost.

Sums of contiguous float32 and float64 have loops of their own (`reduce.h`), which are faster and more accurate than adding
row to row.
"""

import numpy as np

cimport numpy as cnp
from libc.math cimport INFINITY
from libc.string cimport memset

from cygrad._kernels.cpu.base.arrays cimport MAXDIMS, NTYPES, PURE, RELEASE_ABOVE, cast, empty, is_plain
from cygrad._kernels.cpu.base.ufunc cimport Ufunc
from cygrad._kernels.platform.thread_pool cimport LIGHT, share
from cygrad._kernels.cpu.base.nditer cimport (
    Loop, Walk, coalesce, extent_of_walk, lengthen_innermost, loop_t, memory_order, run, run_reduction)
from cygrad._kernels.cpu.base import numpy_fallback
from cygrad._kernels.device.dispatch import dispatching
from cygrad._kernels.tape.tape cimport (
    ITEMWISE, READS, SCATTERS, WRITES, Word, note, note_constant, note_sums, refuse, tape_open, word)
from cygrad._library import later

rescaled_powers = later("cygrad._kernels.cpu.base.rescaled_powers")  # needed only where sums of powers overflow

cnp.import_array()

cdef extern from "base/reduce.h" nogil:
    # float if `is_double` is 0, else double
    void add_middle(bint is_double, const void* x, Py_ssize_t outer, Py_ssize_t n, Py_ssize_t inner, void* out) noexcept
    void add_columns(bint is_double, const void* x, Py_ssize_t n, Py_ssize_t inner, Py_ssize_t step, void* out) noexcept
    double sum_of_row(bint is_double, const void* x, Py_ssize_t n) noexcept
    ctypedef struct running_sum:
        pass
    void begin_sum(running_sum* s) noexcept
    void add_to_sum(bint is_double, running_sum* s, const void* x, Py_ssize_t n) noexcept
    double total_of(const running_sum* s) noexcept
    enum:
        CHUNK "BLOCK"
    void add_squares(bint is_double, const void* x, Py_ssize_t outer, Py_ssize_t n, const void* center,
                     void* out) noexcept
    bint are_accurate(bint is_double, const void* sums, Py_ssize_t n, Py_ssize_t count) noexcept

cdef extern from "base/ufunc_reductions.h":
    void replace_reduction(bint is_product, char kind, loop_t* loop, void** settings) noexcept

cdef Ufunc _absolute = Ufunc(np.absolute)
cdef Ufunc _add = Ufunc(np.add)
cdef Ufunc _divide = Ufunc(np.divide)
cdef Ufunc _exp = Ufunc(np.exp)
cdef Ufunc _isfinite = Ufunc(np.isfinite)
cdef Ufunc _log = Ufunc(np.log)
cdef Ufunc _logical_and = Ufunc(np.logical_and)
cdef Ufunc _logical_or = Ufunc(np.logical_or)
cdef Ufunc _maximum = Ufunc(np.maximum)
cdef Ufunc _minimum = Ufunc(np.minimum)
cdef Ufunc _multiply = Ufunc(np.multiply)
cdef Ufunc _power = Ufunc(np.power)
cdef Ufunc _sqrt = Ufunc(np.sqrt)
cdef Ufunc _subtract = Ufunc(np.subtract)

cdef void _replace(Ufunc ufunc, int t, bint is_product, char kind) noexcept:
    if ufunc.loops[t].function != NULL:
        replace_reduction(is_product, kind, &ufunc.loops[t].function, &ufunc.loops[t].data)

_replace(_multiply, cnp.NPY_FLOAT, True, b"f")
_replace(_multiply, cnp.NPY_DOUBLE, True, b"d")
_replace(_multiply, cnp.NPY_INT64, True, b"i")
_replace(_add, cnp.NPY_INT64, False, b"i")

cdef struct Shape:              # which dimensions are reduced, and the shape of the result
    bint[MAXDIMS] reduced
    cnp.npy_intp count          # elements of the array per element of the result
    int ndim                    # of the result
    cnp.npy_intp[MAXDIMS] dims


# ------------------------------------------------------------------------------------------------- the plan


cdef int _plan(Shape* shape, cnp.ndarray a, tuple axes, bint keepdim) except -1:
    """Fill `shape` for a reduction over `axes`."""
    cdef int i, axis, ndim = cnp.PyArray_NDIM(a)
    for i in range(ndim):
        shape.reduced[i] = axes is None
    if axes is not None:
        for axis in axes:
            if not 0 <= axis < ndim or shape.reduced[axis]:
                raise ValueError(f"axes {axes} are not distinct dimensions of an array with {ndim}")
            shape.reduced[axis] = True
    shape.count = 1
    shape.ndim = 0
    for i in range(ndim):
        if shape.reduced[i]:
            shape.count *= cnp.PyArray_DIM(a, i)
        if keepdim or not shape.reduced[i]:
            shape.dims[shape.ndim] = 1 if shape.reduced[i] else cnp.PyArray_DIM(a, i)
            shape.ndim += 1
    return 0


cdef void _follow(Walk* walk, Shape* shape, cnp.ndarray a, cnp.npy_intp itemsize) noexcept:
    """Build the walk of `a` and the result, in the memory order of `a`. On return the operands are result, `a`, result."""
    cdef int i, k, ndim = cnp.PyArray_NDIM(a)
    cdef int[MAXDIMS] order
    cdef cnp.npy_intp step = itemsize
    walk.count = 2
    walk.ndim = ndim
    for k in range(ndim):
        i = ndim - 1 - k
        walk.dims[k] = cnp.PyArray_DIM(a, i)
        walk.strides[0][k] = 0 if walk.dims[k] == 1 else cnp.PyArray_STRIDE(a, i)
        walk.strides[1][k] = 0
        if not shape.reduced[i]:
            walk.strides[1][k] = step
            step *= walk.dims[k]
    memory_order(walk, order)
    coalesce(walk, order, itemsize)
    walk.count = 3
    for k in range(walk.ndim):
        walk.strides[2][k] = walk.strides[1][k]
        walk.strides[1][k] = walk.strides[0][k]
        walk.strides[0][k] = walk.strides[2][k]


# --------------------------------------------------------------------------------------------- running it


cdef enum Start:                # initial value of a reduction
    ZERO
    ONE
    FIRST                       # the first elements, for functions with f(x, x) = x


cdef cnp.ndarray _reduce(Ufunc ufunc, cnp.ndarray a, Shape* shape, Start start):
    cdef int t = cnp.PyArray_TYPE(a)
    cdef cnp.ndarray out = empty(shape.ndim, shape.dims, t)
    cdef Walk walk
    cdef Loop* loop
    cdef char* data[3]
    if start == FIRST and shape.count == 0:
        raise ValueError("the largest or smallest of no elements")
    if cnp.PyArray_SIZE(out) == 0:
        return out
    if PURE or t >= NTYPES or ufunc.loops[t].function == NULL:
        refuse("runs in NumPy", ufunc.name)
        return numpy_fallback.reduce(ufunc.numpy, a, _reduced(shape, cnp.PyArray_NDIM(a)), out)
    if not is_plain(a):
        refuse("runs in NumPy", ufunc.name)
        a = np.array(a, dtype=cnp.PyArray_DescrFromType(t))
    _follow(&walk, shape, a, cnp.PyArray_ITEMSIZE(a))
    if start == ZERO:
        if _add_contiguous(&walk, t, a, out):
            return out
        memset(cnp.PyArray_DATA(out), 0, cnp.PyArray_NBYTES(out))
    elif start == ONE:
        cnp.PyArray_FillWithScalar(out, 1)
    if tape_open and start != FIRST:
        _note_start(out, start)
    loop = &ufunc.loops[t]
    data[0] = data[2] = cnp.PyArray_BYTES(out)
    data[1] = cnp.PyArray_BYTES(a)
    if tape_open and cnp.PyArray_SIZE(a) != 0:
        _note_reduction(&walk, loop, data, start == FIRST, cnp.PyArray_SIZE(a), cnp.PyArray_ITEMSIZE(a), out)
    if start == FIRST:
        _copy_first(walk, loop, data)
    if cnp.PyArray_SIZE(a) > RELEASE_ABOVE:
        with nogil:
            lengthen_innermost(&walk)
            run_reduction(&walk, loop, data)
    elif cnp.PyArray_SIZE(a) != 0:
        lengthen_innermost(&walk)
        run(&walk, loop, data)
    return out


cdef tuple _reduced(Shape* shape, int ndim):
    """The reduced dimensions."""
    return tuple([i for i in range(ndim) if shape.reduced[i]])


cdef void _copy_first(Walk walk, Loop* loop, char** data) noexcept nogil:
    """Initialize the result with the first elements: f(x, x) along the kept dimensions."""
    cdef char* operands[3]
    cdef int k
    for k in range(walk.ndim):
        if walk.strides[2][k] == 0:
            walk.dims[k] = 1
        walk.strides[0][k] = walk.strides[1][k]
    operands[0] = operands[1] = data[1]
    operands[2] = data[2]
    lengthen_innermost(&walk)
    run(&walk, loop, operands)


# -- for the tape (Note [The tape] in tape.pyx)

cdef struct ReduceCall:         # the end of a call of `_reduce`
    Walk walk
    Loop loop
    char* data[3]
    bint copies_first
    cnp.npy_intp size


cdef void _replay_reduction(void* context) noexcept nogil:
    cdef ReduceCall* call = <ReduceCall*>context
    cdef Walk walk = call.walk
    if call.copies_first:
        _copy_first(call.walk, &call.loop, call.data)
    lengthen_innermost(&walk)
    if call.size > RELEASE_ABOVE:
        run_reduction(&walk, &call.loop, call.data)
    else:
        run(&walk, &call.loop, call.data)


cdef void _note_start(cnp.ndarray out, Start start) noexcept:
    """Note that the result was set to 0 or 1."""
    note_constant(cnp.PyArray_DATA(out), cnp.PyArray_DATA(out), cnp.PyArray_ITEMSIZE(out), cnp.PyArray_SIZE(out))


cdef void _note_reduction(Walk* walk, Loop* loop, char** data, bint copies_first, cnp.npy_intp size, cnp.npy_intp itemsize,
                          cnp.ndarray out) noexcept:
    cdef ReduceCall call
    cdef Word[3] words
    cdef Py_ssize_t low, high
    cdef int d, k
    memset(&call, 0, sizeof(call))
    call.walk.count = walk.count
    call.walk.ndim = walk.ndim
    for d in range(walk.ndim):
        call.walk.dims[d] = walk.dims[d]
        for k in range(walk.count):
            call.walk.strides[k][d] = walk.strides[k][d]
    call.loop = loop[0]
    call.copies_first = copies_first
    call.size = size
    for k in range(3):
        call.data[k] = data[k]
    extent_of_walk(walk, 1, itemsize, &low, &high)
    words[0] = word(&call, &call.data[1], READS, low, high)
    words[1] = word(&call, &call.data[0], WRITES if copies_first else READS | WRITES, 0, cnp.PyArray_NBYTES(out))
    words[2] = word(&call, &call.data[2], WRITES, 0, cnp.PyArray_NBYTES(out))
    note(_replay_reduction, "reduction", &call, sizeof(call), words, 3)


cdef enum:
    PARTIAL = 1 << 17           # maximum number of buffered partial sums


cdef bint _add_contiguous(Walk* walk, int t, cnp.ndarray a, cnp.ndarray out) except -1:
    """Sum with our own loops if `a` is one dense block. Return whether it is."""
    cdef Py_ssize_t[5] sizes                # kept, reduced, kept, reduced, kept: from innermost to outermost
    cdef cnp.npy_intp step = cnp.PyArray_ITEMSIZE(a), result_step = step, rows
    cdef Py_ssize_t outer, start, count, together
    cdef int k, role = 0
    cdef bint is_double
    cdef const char* x
    cdef cnp.ndarray partial
    if t != cnp.NPY_FLOAT and t != cnp.NPY_DOUBLE:
        return False
    for k in range(5):
        sizes[k] = 1
    for k in range(walk.ndim):
        if walk.strides[1][k] != step:
            return False
        step *= walk.dims[k]
        if walk.strides[0][k] == 0:
            role += 1 - role % 2
        else:
            if walk.strides[0][k] != result_step:
                return False
            result_step *= walk.dims[k]
            role += role % 2
        if role > 4:
            return False
        sizes[role] *= walk.dims[k]
    is_double = t == cnp.NPY_DOUBLE
    x = cnp.PyArray_BYTES(a)
    if sizes[3] == 1:
        _sum_block(is_double, x, sizes[2] * sizes[4], sizes[1], sizes[0], cnp.PyArray_DATA(out))
        return True
    # Sum adjacent elements first, then the partial sums; in chunks of the middle kept dimension if there are too many.
    together = sizes[4] * sizes[2]
    if together * sizes[3] * sizes[0] > PARTIAL:
        together = max(1, min(sizes[2], PARTIAL // (sizes[3] * sizes[0])))
    rows = together * sizes[3] * sizes[0]
    partial = empty(1, &rows, t)
    step = cnp.PyArray_ITEMSIZE(a)
    if together == sizes[4] * sizes[2]:
        _sum_block(is_double, x, rows // sizes[0], sizes[1], sizes[0], cnp.PyArray_DATA(partial))
        _sum_block(is_double, cnp.PyArray_DATA(partial), sizes[4], sizes[3], sizes[2] * sizes[0],
                   cnp.PyArray_DATA(out))
        return True
    for outer in range(sizes[4]):
        for start in range(0, sizes[2], together):
            count = min(together, sizes[2] - start)
            for k in range(sizes[3]):
                _sum_block(is_double, x + ((outer * sizes[3] + k) * sizes[2] + start) * sizes[1] * sizes[0] * step,
                           count, sizes[1], sizes[0], cnp.PyArray_BYTES(partial) + k * count * sizes[0] * step)
            _sum_block(is_double, cnp.PyArray_DATA(partial), 1, sizes[3], count * sizes[0],
                       cnp.PyArray_BYTES(out) + (outer * sizes[2] + start) * sizes[0] * step)
    return True


cdef enum:
    WIDE = 2048                 # threads split the columns, not the rows, from this number on

cdef struct Sums:               # sums of x, of shape (outer, n, inner), over the middle dimension
    bint is_double
    Py_ssize_t itemsize
    char* x
    Py_ssize_t n
    Py_ssize_t inner
    Py_ssize_t together         # rows or columns per chunk
    Py_ssize_t pieces           # number of chunks in one (n, inner)
    char* out                   # (outer, inner), or one row per chunk


cdef void _sum_outer(void* context, Py_ssize_t first, Py_ssize_t count) noexcept nogil:
    cdef Sums* s = <Sums*>context
    add_middle(s.is_double, <void*>(s.x + first * s.n * s.inner * s.itemsize), count, s.n, s.inner,
               <void*>(s.out + first * s.inner * s.itemsize))


cdef void _sum_columns(void* context, Py_ssize_t first, Py_ssize_t count) noexcept nogil:
    cdef Sums* s = <Sums*>context
    cdef Py_ssize_t i, j
    for i in range(first, first + count):
        j = i % s.pieces * s.together
        add_columns(s.is_double, <void*>(s.x + (i // s.pieces * s.n * s.inner + j) * s.itemsize), s.n,
                    min(s.together, s.inner - j), s.inner,
                    <void*>(s.out + (i // s.pieces * s.inner + j) * s.itemsize))


cdef void _sum_rows(void* context, Py_ssize_t first, Py_ssize_t count) noexcept nogil:
    cdef Sums* s = <Sums*>context
    cdef Py_ssize_t i, j
    for i in range(first, first + count):
        j = i % s.pieces * s.together
        add_middle(s.is_double, <void*>(s.x + (i // s.pieces * s.n + j) * s.inner * s.itemsize), 1,
                   min(s.together, s.n - j), s.inner, <void*>(s.out + i * s.inner * s.itemsize))


cdef void _sum_parts_of_rows(void* context, Py_ssize_t first, Py_ssize_t count) noexcept nogil:
    """For `inner` == 1; writes doubles."""
    cdef Sums* s = <Sums*>context
    cdef Py_ssize_t i, j
    for i in range(first, first + count):
        j = i % s.pieces * s.together
        (<double*>s.out)[i] = sum_of_row(s.is_double, <void*>(s.x + (i // s.pieces * s.n + j) * s.itemsize),
                                         min(s.together, s.n - j))


cdef void _add_parts(Sums* s, Py_ssize_t outer, void* out) noexcept nogil:
    cdef Py_ssize_t i
    cdef double total
    for i in range(outer):
        total = sum_of_row(True, <void*>(<double*>s.out + i * s.pieces), s.pieces)
        if s.is_double:
            (<double*>out)[i] = total
        else:
            (<float*>out)[i] = <float>total


cdef int _sum_block(bint is_double, const void* x, Py_ssize_t outer, Py_ssize_t n, Py_ssize_t inner,
                    void* out) except -1:
    """Sum over the middle dimension; large arrays in chunks (Note [Pieces] in thread_pool.pyx)."""
    cdef cnp.npy_intp size
    cdef cnp.ndarray partial
    cdef char* sums = NULL
    if tape_open:
        _note_sum(is_double, x, outer, n, inner, out)
    if outer * n * inner <= RELEASE_ABOVE:
        add_middle(is_double, x, outer, n, inner, out)
        return 0
    size = _room_for_partial_sums(outer, n, inner)
    if size != 0:
        partial = empty(1, &size, cnp.NPY_DOUBLE if is_double or inner == 1 else cnp.NPY_FLOAT)
        sums = cnp.PyArray_BYTES(partial)
    with nogil:
        _share_sums(is_double, x, outer, n, inner, out, sums)
    return 0


cdef Py_ssize_t _room_for_partial_sums(Py_ssize_t outer, Py_ssize_t n, Py_ssize_t inner) noexcept nogil:
    """How many partial sums `_share_sums` keeps."""
    cdef Py_ssize_t together
    if n * inner <= 2 * LIGHT or inner >= WIDE:
        return 0
    together = LIGHT // inner
    return outer * ((n + together - 1) // together) * inner


cdef void _share_sums(bint is_double, const void* x, Py_ssize_t outer, Py_ssize_t n, Py_ssize_t inner, void* out,
                      char* partial) noexcept nogil:
    cdef Sums s
    s.is_double = is_double
    s.itemsize = sizeof(double) if is_double else sizeof(float)
    s.x = <char*>x
    s.out = <char*>out
    s.n = n
    s.inner = inner
    if n * inner <= 2 * LIGHT:
        share(_sum_outer, &s, outer, max(1, LIGHT // (n * inner)))
    elif inner >= WIDE:
        s.together = max(WIDE, LIGHT // n)
        s.pieces = (inner + s.together - 1) // s.together
        share(_sum_columns, &s, outer * s.pieces, 1)
    else:
        s.together = LIGHT // inner
        s.pieces = (n + s.together - 1) // s.together
        s.out = partial
        share(_sum_parts_of_rows if inner == 1 else _sum_rows, &s, outer * s.pieces, 1)
        if inner == 1:
            _add_parts(&s, outer, out)
        else:
            add_middle(is_double, <void*>s.out, outer, s.pieces, inner, out)


cdef struct SumCall:            # a call of `_sum_block`, for the tape
    bint is_double
    char* x
    Py_ssize_t outer
    Py_ssize_t n
    Py_ssize_t inner
    char* out
    char* partial
    Py_ssize_t row              # elements of a sum, or of a partial sum; 0: only as a whole
    running_sum sum


cdef void _replay_sum(void* context) noexcept nogil:
    cdef SumCall* call = <SumCall*>context
    if call.outer * call.n * call.inner <= RELEASE_ABOVE:
        add_middle(call.is_double, <void*>call.x, call.outer, call.n, call.inner, <void*>call.out)
    else:
        _share_sums(call.is_double, call.x, call.outer, call.n, call.inner, call.out, call.partial)


cdef void _replay_part_of_sums(void* context, Py_ssize_t first, Py_ssize_t n) noexcept nogil:
    """Add some elements, which may be the first ones of a sum, more of it, or its last ones."""
    cdef SumCall* call = <SumCall*>context
    cdef Py_ssize_t itemsize = sizeof(double) if call.is_double else sizeof(float)
    cdef Py_ssize_t row = call.row, size = call.outer * call.n, at, m
    if call.partial == NULL and first % row == 0 and n % row == 0:
        add_middle(call.is_double, <void*>(call.x + first * itemsize), n // row, row, 1,
                   <void*>(call.out + first // row * itemsize))
        return
    while n > 0:
        at = first % row
        m = min(n, row - at)
        if at == 0:
            begin_sum(&call.sum)
        add_to_sum(call.is_double, &call.sum, <void*>(call.x + first * itemsize), m)
        first += m
        n -= m
        if first % row != 0 and first != size:
            continue
        at = (first - 1) // row
        if call.partial != NULL:
            (<double*>call.partial)[at] = total_of(&call.sum)
        elif call.is_double:
            (<double*>call.out)[at] = total_of(&call.sum)
        else:
            (<float*>call.out)[at] = <float>total_of(&call.sum)


cdef void _add_noted_parts(void* context) noexcept nogil:
    cdef SumCall* call = <SumCall*>context
    cdef Sums s
    if call.partial == NULL:
        return
    s.is_double, s.out, s.pieces = call.is_double, call.partial, (call.n + call.row - 1) // call.row
    _add_parts(&s, 1, call.out)


cdef Py_ssize_t _items_of_sum(Py_ssize_t outer, Py_ssize_t n, Py_ssize_t inner) noexcept:
    """How many elements each sum, or partial sum, has if these can be added block by block; else 0."""
    if inner != 1:
        return 0
    if outer == 1:
        return LIGHT if n > 2 * LIGHT else n if n < LIGHT else 0
    return n if n <= CHUNK or n <= LIGHT and n % CHUNK == 0 else 0


cdef int _note_sum(bint is_double, const void* x, Py_ssize_t outer, Py_ssize_t n, Py_ssize_t inner, void* out) except -1:
    cdef SumCall call
    cdef Word[3] words
    cdef Py_ssize_t itemsize = sizeof(double) if is_double else sizeof(float)
    cdef cnp.npy_intp room = 0
    cdef cnp.ndarray partial = None
    memset(&call, 0, sizeof(call))
    if outer * n * inner > RELEASE_ABOVE:
        room = 8 * _room_for_partial_sums(outer, n, inner)
    if room != 0:
        partial = empty(1, &room, cnp.NPY_UINT8)        # what the replay writes to
        call.partial = cnp.PyArray_BYTES(partial)
    call.is_double = is_double
    call.x = <char*>x
    call.outer, call.n, call.inner = outer, n, inner
    call.out = <char*>out
    call.row = _items_of_sum(outer, n, inner)
    words[0] = word(&call, &call.x, READS | (ITEMWISE if call.row else 0), 0, outer * n * inner * itemsize)
    words[1] = word(&call, &call.partial, SCATTERS, 0, room)
    words[2] = word(&call, &call.out, WRITES, 0, outer * inner * itemsize)
    if call.row:
        note_sums(_replay_sum, _replay_part_of_sums, _add_noted_parts, "sum", &call, sizeof(call), words, 3, outer * n,
                  call.row, CHUNK if outer == 1 or n > CHUNK else n)
    else:
        note(_replay_sum, "sum", &call, sizeof(call), words, 3)
    return 0


cdef void sum_middle(bint is_double, const void* x, Py_ssize_t outer, Py_ssize_t n, Py_ssize_t inner,
                     void* out) noexcept nogil:
    add_middle(is_double, x, outer, n, inner, out)


# ------------------------------------------------------------------------------------------- sums and products


cdef inline bint _is_narrow(int t) noexcept:
    """Whether the type is float16 or similar (bfloat16), which is accumulated in float32."""
    return t == cnp.NPY_FLOAT16 or t >= NTYPES


cdef inline int _accumulator(int t) noexcept:
    if t < cnp.NPY_FLOAT:
        return cnp.NPY_INT64
    return cnp.NPY_FLOAT if _is_narrow(t) else t


cdef int _check_type(int typenum, str kernel) except -1:
    """Raise NotImplementedError for numbers of 8 bits, which are not added up or multiplied."""
    if typenum >= NTYPES:
        numpy_fallback.refuse_float8(cnp.PyArray_DescrFromType(typenum), kernel)
    return 0


cdef cnp.ndarray _total(Ufunc ufunc, cnp.ndarray a, Shape* shape, int typenum, Start start):
    """Sum or product, accumulated in a wide enough type and cast to the requested one."""
    cdef int t = cnp.PyArray_TYPE(a)
    if typenum < 0:
        typenum = cnp.NPY_INT64 if t < cnp.NPY_FLOAT else t
    _check_type(typenum, "sum_cpu" if ufunc is _add else "prod_out_cpu")
    a = cast(a, _accumulator(typenum) if _is_narrow(typenum) else typenum)
    return cast(_reduce(ufunc, a, shape, start), typenum)


cpdef cnp.ndarray sum(cnp.ndarray a, tuple axes=None, bint keepdim=False, int typenum=-1):
    """Sum over `axes`; bool and integers are added in int64 unless a type number is given."""
    cdef Shape shape
    cdef int t = cnp.PyArray_TYPE(a)
    if t < cnp.NPY_FLOAT and t != cnp.NPY_INT64 and typenum < 0 and cnp.PyArray_SIZE(a) > 1 << 15:
        return numpy_fallback.sum_of_narrow_integers(a, axes, keepdim)
    _plan(&shape, a, axes, keepdim)
    return _total(_add, a, &shape, typenum, ZERO)


cpdef cnp.ndarray prod(cnp.ndarray a, tuple axes=None, bint keepdim=False, int typenum=-1):
    """Product over `axes`; bool and integers are multiplied in int64 unless a type number is given."""
    cdef Shape shape
    _plan(&shape, a, axes, keepdim)
    return _total(_multiply, a, &shape, typenum, ONE)


cpdef cnp.ndarray mean(cnp.ndarray a, tuple axes=None, bint keepdim=False, int typenum=-1):
    """Mean over `axes` of floating-point or complex numbers; NaN over no elements."""
    cdef Shape shape
    cdef cnp.ndarray out
    _plan(&shape, a, axes, keepdim)
    if typenum < 0:
        typenum = cnp.PyArray_TYPE(a)
    if typenum < cnp.NPY_FLOAT:
        raise ValueError("the mean of integers needs a floating point type")
    _check_type(typenum, "sum_cpu")
    out = _total(_add, a, &shape, cnp.NPY_FLOAT if _is_narrow(typenum) else typenum, ZERO)
    return cast(_divide.call2_scalar(out, shape.count, False, out), typenum)


cdef cnp.ndarray sum_to_dims(cnp.ndarray a, int ndim, cnp.npy_intp* dims):
    cdef Shape shape
    cdef int i, new = cnp.PyArray_NDIM(a) - ndim        # dimensions that broadcasting prepended
    cdef bint changes = new != 0
    if new < 0:
        raise ValueError("sum_to cannot add dimensions")
    shape.count = 1
    shape.ndim = ndim
    for i in range(new):
        shape.reduced[i] = True
    for i in range(ndim):
        shape.dims[i] = dims[i]
        shape.reduced[new + i] = dims[i] == 1 and cnp.PyArray_DIM(a, new + i) != 1
        changes |= shape.reduced[new + i]
        if dims[i] != cnp.PyArray_DIM(a, new + i) and dims[i] != 1:
            raise ValueError(f"{(<object>a).shape} is not what {tuple([dims[i] for i in range(ndim)])} broadcasts to")
    return _total(_add, a, &shape, cnp.PyArray_TYPE(a), ZERO) if changes else a


cpdef cnp.ndarray sum_to(cnp.ndarray a, tuple shape):
    """Sum `a` over the dimensions along which `shape` was broadcast; `a` itself if it has that shape. Keeps the dtype."""
    cdef cnp.npy_intp[MAXDIMS] dims
    cdef int i, ndim = <int>min(len(shape), MAXDIMS)
    for i in range(ndim):
        dims[i] = shape[i]
    return sum_to_dims(a, ndim, dims)


# ------------------------------------------------------------------------------ variance, norm, log-sum-exp


cdef struct Squares:            # for rows of length n
    bint is_double
    Py_ssize_t n
    char* x
    char* center                # one per row, or NULL
    char* out


cdef void _add_squares(void* context, Py_ssize_t first, Py_ssize_t count) noexcept nogil:
    cdef Squares* s = <Squares*>context
    cdef Py_ssize_t itemsize = sizeof(double) if s.is_double else sizeof(float)
    add_squares(s.is_double, <void*>(s.x + first * s.n * itemsize), count, s.n,
                NULL if s.center == NULL else <void*>(s.center + first * itemsize), <void*>(s.out + first * itemsize))


cdef cnp.ndarray _squares_along_rows(cnp.ndarray a, Shape* shape, cnp.ndarray center):
    """Sum squared distances from `center` (None: from 0); None unless `a` consists of contiguous float or double rows."""
    cdef int i, t = cnp.PyArray_TYPE(a)
    cdef Py_ssize_t outer = 1
    cdef bint seen = False
    cdef cnp.ndarray out
    cdef Squares squares
    if PURE or not (t == cnp.NPY_FLOAT or t == cnp.NPY_DOUBLE) or not (is_plain(a) and cnp.PyArray_IS_C_CONTIGUOUS(a)):
        return None
    for i in range(cnp.PyArray_NDIM(a)):
        if shape.reduced[i]:
            seen = True
        elif seen:
            return None
        else:
            outer *= cnp.PyArray_DIM(a, i)
    out = empty(shape.ndim, shape.dims, t)
    squares.is_double = t == cnp.NPY_DOUBLE
    squares.x = cnp.PyArray_BYTES(a)
    squares.center = NULL if center is None else cnp.PyArray_BYTES(center)
    squares.n = shape.count
    squares.out = cnp.PyArray_BYTES(out)
    refuse("checks the range of sums of squares")
    if outer * shape.count > RELEASE_ABOVE:
        with nogil:
            share(_add_squares, &squares, outer, max(1, LIGHT // shape.count))
    else:
        _add_squares(&squares, 0, outer)
    return out


cdef inline bint _are_accurate(cnp.ndarray sums, Shape* shape) noexcept:
    """Whether no sum of powers left the range of the type. Note [Sums of powers] in rescaled_powers.py tells the rest."""
    refuse("checks the range of sums of powers")
    return are_accurate(cnp.PyArray_TYPE(sums) == cnp.NPY_DOUBLE, cnp.PyArray_DATA(sums), cnp.PyArray_SIZE(sums),
                        shape.count)


cpdef bint are_in_range(cnp.ndarray sums) except -1:
    """Whether each of these sums of positive powers is finite and not so small that terms may have underflowed."""
    cdef int t = cnp.PyArray_TYPE(sums)
    refuse("checks the range of sums of powers")
    if not (t == cnp.NPY_FLOAT or t == cnp.NPY_DOUBLE) or not (is_plain(sums) and cnp.PyArray_IS_C_CONTIGUOUS(sums)):
        sums = np.array(sums, np.float64 if t == cnp.NPY_DOUBLE else np.float32, order="C")
    return are_accurate(cnp.PyArray_TYPE(sums) == cnp.NPY_DOUBLE, cnp.PyArray_DATA(sums), cnp.PyArray_SIZE(sums), 1 << 20)


cpdef cnp.ndarray var(cnp.ndarray a, tuple axes=None, double correction=1, bint keepdim=False):
    """Sum of squared distances from the mean, divided by the number of elements less `correction` (but at least 0)."""
    return _spread(a, axes, correction, keepdim, False)


cpdef cnp.ndarray std(cnp.ndarray a, tuple axes=None, double correction=1, bint keepdim=False):
    """The square root of `var`, also where that itself would leave the range of the type."""
    return _spread(a, axes, correction, keepdim, True)


cdef cnp.ndarray _spread(cnp.ndarray a, tuple axes, double correction, bint keepdim, bint is_root):
    cdef Shape shape
    cdef int t = cnp.PyArray_TYPE(a)
    cdef double freedom
    cdef cnp.ndarray center, distance, out
    if _is_narrow(t):
        return cast(_spread(cast(a, cnp.NPY_FLOAT), axes, correction, keepdim, is_root), t)
    _plan(&shape, a, axes, keepdim)
    center = mean(a, axes, True)
    out = _squares_along_rows(a, &shape, center)
    if out is None:
        distance = _subtract.call2(a, center, None)
        if cnp.PyTypeNum_ISCOMPLEX(t):
            distance = _absolute.call1(distance, None)
        out = _reduce(_add, _multiply.call2(distance, distance, distance), &shape, ZERO)
    freedom = max(0.0, shape.count - correction)
    if not _are_accurate(out, &shape):
        return rescaled_powers.spread(a, center, axes, freedom, keepdim, is_root)
    out = _divide.call2_scalar(out, freedom, False, out)
    return _sqrt.call1(out, out) if is_root else out


cpdef cnp.ndarray norm(cnp.ndarray a, double p=2, tuple axes=None, bint keepdim=False):
    """The p-norm of the elements over `axes`, for any p including inf and -inf; p=0 counts the nonzero elements."""
    cdef Shape shape
    cdef int t = cnp.PyArray_TYPE(a)
    cdef cnp.ndarray size, powers, out = None
    if _is_narrow(t):
        return cast(norm(cast(a, cnp.NPY_FLOAT), p, axes, keepdim), t)
    _plan(&shape, a, axes, keepdim)
    if p == 2:
        out = _squares_along_rows(a, &shape, None)
    if out is None:
        size = _absolute.call1(a, None)
        if p == INFINITY:
            return _reduce(_maximum, size, &shape, FIRST)
        if p == -INFINITY:
            return _reduce(_minimum, size, &shape, FIRST)
        if p == 0:
            return cast(sum(cast(size, cnp.NPY_BOOL), axes, keepdim), cnp.PyArray_TYPE(size))
        if p == 1:
            return _reduce(_add, size, &shape, ZERO)
        powers = _multiply.call2(size, size, size) if p == 2 else _power.call2_scalar(size, p, False, size)
        out = _reduce(_add, powers, &shape, ZERO)
    if not _are_accurate(out, &shape):
        return rescaled_powers.norm(a, p, axes, keepdim)
    return _sqrt.call1(out, out) if p == 2 else _power.call2_scalar(out, 1 / p, False, out)


cpdef cnp.ndarray logsumexp(cnp.ndarray a, tuple axes=None, bint keepdim=False):
    """Compute log(sum(exp(a))) over axes, without overflow."""
    cdef cnp.ndarray largest, out
    if _is_narrow(cnp.PyArray_TYPE(a)):
        return cast(logsumexp(cast(a, cnp.NPY_FLOAT), axes, keepdim), cnp.PyArray_TYPE(a))
    if cnp.PyArray_SIZE(a) == 0:
        out = sum(_exp.call1(a, None), axes, keepdim)
        return _log.call1(out, out)
    refuse("looks for infinite numbers", "logsumexp")
    largest = amax((<object>a).real, axes, True)
    if not all_(_isfinite.call1(largest, None)):
        largest = np.where(np.isinf(largest), largest.dtype.type(0), largest)
    largest = cast(largest, cnp.PyArray_TYPE(a))        # the type may be complex
    out = _subtract.call2(a, largest, None)
    out = sum(_exp.call1(out, out), axes, True)
    out = _add.call2(_log.call1(out, out), largest, None)
    return out if keepdim else np.asarray(np.squeeze(out, axes))


# ------------------------------------------------------------------------------------------- order and truth


cpdef cnp.ndarray amax(cnp.ndarray a, tuple axes=None, bint keepdim=False):
    """Largest element over `axes`; NaN if any is NaN. Raises ``ValueError`` for no elements."""
    cdef Shape shape
    _plan(&shape, a, axes, keepdim)
    return _reduce(_maximum, a, &shape, FIRST)


cpdef cnp.ndarray amin(cnp.ndarray a, tuple axes=None, bint keepdim=False):
    """Smallest element over `axes`; NaN if any is NaN. Raises ``ValueError`` for no elements."""
    cdef Shape shape
    _plan(&shape, a, axes, keepdim)
    return _reduce(_minimum, a, &shape, FIRST)


cpdef cnp.ndarray all_(cnp.ndarray a, tuple axes=None, bint keepdim=False):
    """Whether all elements over `axes` are nonzero, as bool."""
    cdef Shape shape
    _plan(&shape, a, axes, keepdim)
    if shape.count == 0:
        return np.ones(_shape_of(&shape), bool)
    return _reduce(_logical_and, cast(a, cnp.NPY_BOOL), &shape, FIRST)


cpdef cnp.ndarray any_(cnp.ndarray a, tuple axes=None, bint keepdim=False):
    """Whether any element over `axes` is nonzero, as bool."""
    cdef Shape shape
    _plan(&shape, a, axes, keepdim)
    if shape.count == 0:
        return np.zeros(_shape_of(&shape), bool)
    return _reduce(_logical_or, cast(a, cnp.NPY_BOOL), &shape, FIRST)


cdef tuple _shape_of(Shape* shape):
    return tuple([shape.dims[i] for i in range(shape.ndim)])


dispatching(globals(), "sum prod mean sum_to var std norm logsumexp amax amin all_ any_")
