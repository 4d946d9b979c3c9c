"""Iterate over the broadcast index space of several strided operands with a ufunc's inner loop.

The operands are broadcast against each other, the dimensions are sorted into memory order, adjacent dimensions that are
contiguous with each other are fused, and the loop is called on the innermost dimension at each index of the others.
"""

cimport numpy as cnp

from cygrad._kernels.platform.thread_pool cimport share

cnp.import_array()

cdef enum:
    SHORT = 16                  # shorter innermost dimensions are worth swapping for a longer one
    WIDE = 2048                 # innermost dimensions from this length on are worth splitting among threads


cdef int join(Walk* walk, int nin, Operand* inputs) except -1:
    """Broadcast the inputs against each other. Dimensions keep their order but are stored last first."""
    cdef int i, k, ndim = 0
    cdef cnp.npy_intp n
    for k in range(nin):
        ndim = max(ndim, inputs[k].ndim)
    walk.count = nin + 1
    walk.ndim = ndim
    for i in range(ndim):
        walk.dims[i] = 1
        for k in range(nin):
            n = inputs[k].dims[inputs[k].ndim - 1 - i] if i < inputs[k].ndim else 1
            if n == 1:
                walk.strides[k][i] = 0
                continue
            if walk.dims[i] == 1:
                walk.dims[i] = n
            elif walk.dims[i] != n:
                raise do_not_broadcast(nin, inputs)
            walk.strides[k][i] = inputs[k].strides[inputs[k].ndim - 1 - i]
    return 0


cdef object do_not_broadcast(int nin, Operand* inputs):
    """Return the error that reports the shapes of operands that do not broadcast."""
    from cygrad._kernels.device.errors import broadcast_failure  # needed only for errors
    cdef int i, k
    shapes = [tuple([inputs[k].dims[i] for i in range(inputs[k].ndim)]) for k in range(nin)]
    return RuntimeError(broadcast_failure(*shapes))


cdef inline int _compare_steps(Walk* walk, int i, int j) noexcept:
    """Return 1 if dimension i has larger steps in memory than j, -1 if smaller, 0 if no operand decides."""
    cdef int k
    cdef cnp.npy_intp s, t
    for k in range(walk.count):
        s = abs(walk.strides[k][i])
        t = abs(walk.strides[k][j])
        if s != 0 and t != 0 and s != t:
            return 1 if s > t else -1
    return 0


cdef bint memory_order(Walk* walk, int* order) noexcept:
    """Sort the dimensions by increasing steps in memory. Return whether that changes their order."""
    cdef int i, j, k, d, comparison
    cdef bint changed = False
    for i in range(walk.ndim):
        order[i] = i
    for i in range(1, walk.ndim):
        k, d = i, i
        for j in range(i - 1, -1, -1):
            comparison = _compare_steps(walk, order[j], d)
            if comparison > 0:
                order[k] = order[j]
                order[j] = d
                k = j
                changed = True
            elif comparison < 0:
                break
    return changed


cdef void coalesce(Walk* walk, int* order, cnp.npy_intp itemsize) noexcept:
    """Reorder the dimensions, drop those of size 1, and fuse neighbors that are contiguous with each other."""
    cdef Walk source
    cdef int i, k, d, last = -1
    cdef bint fuses
    source.count = walk.count
    source.ndim = walk.ndim
    for i in range(walk.ndim):      # cheaper than copying the whole struct
        source.dims[i] = walk.dims[i]
        for k in range(walk.count):
            source.strides[k][i] = walk.strides[k][i]
    for i in range(source.ndim):
        d = order[i]
        if source.dims[d] == 1:
            continue
        fuses = last >= 0
        for k in range(source.count):
            fuses = fuses and source.strides[k][d] == walk.strides[k][last] * walk.dims[last]
        if fuses:
            walk.dims[last] *= source.dims[d]
            continue
        last += 1
        walk.dims[last] = source.dims[d]
        for k in range(source.count):
            walk.strides[k][last] = source.strides[k][d]
    if last < 0:                # one element; the steps do not matter, but must not be 0
        last = 0
        walk.dims[0] = 1
        for k in range(source.count):
            walk.strides[k][0] = itemsize
    walk.ndim = last + 1


cdef void lengthen_innermost(Walk* walk) noexcept nogil:
    """Swap a short innermost dimension for the longest: many loop calls cost more than scattered memory accesses."""
    cdef int i, k, longest = 0
    if walk.dims[0] >= SHORT:
        return
    for i in range(1, walk.ndim):
        if walk.dims[i] > walk.dims[longest]:
            longest = i
    if longest != 0:
        walk.dims[0], walk.dims[longest] = walk.dims[longest], walk.dims[0]
        for k in range(walk.count):
            walk.strides[k][0], walk.strides[k][longest] = walk.strides[k][longest], walk.strides[k][0]


cdef void extent_of_walk(const Walk* walk, int k, Py_ssize_t itemsize, Py_ssize_t* low, Py_ssize_t* high) noexcept:
    """The bytes that operand k reaches, relative to its address."""
    cdef int d
    low[0] = high[0] = 0
    for d in range(walk.ndim):
        if walk.dims[d] == 0:
            low[0] = high[0] = 0
            return
        if walk.strides[k][d] < 0:
            low[0] += (walk.dims[d] - 1) * walk.strides[k][d]
        else:
            high[0] += (walk.dims[d] - 1) * walk.strides[k][d]
    high[0] += itemsize


cdef void run(Walk* walk, Loop* loop, char** start, const Core* core=NULL) noexcept nogil:
    """Call the loop on the innermost dimension at each index of the outer ones."""
    cdef cnp.npy_intp rows = 1
    cdef int d
    for d in range(1, walk.ndim):
        rows *= walk.dims[d]
    _run_part(walk, loop, start, core, 0, rows, 0, walk.dims[0])


cdef void run_at(Walk* walk, Loop* loop, char** start, const Core* core, cnp.npy_intp index) noexcept nogil:
    """Call the loop at a single index, which is flattened with the innermost dimension first."""
    _run_part(walk, loop, start, core, index // walk.dims[0], 1, index % walk.dims[0], 1)


cdef void _run_part(Walk* walk, Loop* loop, char** start, const Core* core, cnp.npy_intp row, cnp.npy_intp rows,
                    cnp.npy_intp first, cnp.npy_intp length) noexcept nogil:
    """Process `length` elements from `first` on in each of `rows` rows (indices of the outer dimensions) from `row` on."""
    cdef char* data[3]
    cdef char* given[3]             # a copy, because loops may modify their arguments
    cdef cnp.npy_intp[4] dims
    cdef cnp.npy_intp[9] steps
    cdef cnp.npy_intp[MAXDIMS] index
    cdef int d, k
    for k in range(walk.count):
        data[k] = start[k] + first * walk.strides[k][0]
        steps[k] = walk.strides[k][0]
    for d in range(1, walk.ndim):
        index[d] = 0
        if row != 0:                # spares small arrays the divisions
            index[d] = row % walk.dims[d]
            row //= walk.dims[d]
            for k in range(walk.count):
                data[k] += index[d] * walk.strides[k][d]
    dims[0] = length
    if core != NULL:
        for k in range(3):
            dims[1 + k] = core.dims[k]
        for k in range(6):
            steps[3 + k] = core.strides[k]
    while True:
        for k in range(walk.count):
            given[k] = data[k]
        touch_ends(given, dims, steps, walk.count, core != NULL)
        loop.function(given, dims, steps, loop.data)
        rows -= 1
        if rows == 0:
            return
        d = 1
        while True:
            index[d] += 1
            for k in range(walk.count):
                data[k] += walk.strides[k][d]
            if index[d] < walk.dims[d]:
                break
            index[d] = 0
            for k in range(walk.count):
                data[k] -= walk.dims[d] * walk.strides[k][d]
            d += 1


cdef struct Shared:             # a walk split into chunks: each part of one row, or several whole rows
    Walk* walk
    Loop* loop
    char** start
    const Core* core
    cnp.npy_intp parts          # chunks per row


cdef void _run_rows(void* context, Py_ssize_t first, Py_ssize_t n) noexcept nogil:
    cdef Shared* s = <Shared*>context
    _run_part(s.walk, s.loop, s.start, s.core, first, n, 0, s.walk.dims[0])


cdef void _run_parts_of_rows(void* context, Py_ssize_t first, Py_ssize_t n) noexcept nogil:
    cdef Shared* s = <Shared*>context
    cdef cnp.npy_intp length = s.walk.dims[0], i, begin
    for i in range(first, first + n):
        begin = i % s.parts * s.loop.piece
        _run_part(s.walk, s.loop, s.start, s.core, i // s.parts, 1, begin, min(s.loop.piece, length - begin))


cdef void run_shared(Walk* walk, Loop* loop, char** start, const Core* core=NULL) noexcept nogil:
    cdef Shared s
    cdef cnp.npy_intp rows = 1
    cdef int d
    s.walk = walk
    s.loop = loop
    s.start = start
    s.core = core
    for d in range(1, walk.ndim):
        rows *= walk.dims[d]
    if loop.piece == 0:
        run(walk, loop, start, core)
        return
    s.parts = (walk.dims[0] + loop.piece - 1) // loop.piece
    if s.parts > 1:
        share(_run_parts_of_rows, &s, rows * s.parts, 1)
    else:
        share(_run_rows, &s, rows, max(1, loop.piece // walk.dims[0]))


cdef void _run_outermost(void* context, Py_ssize_t first, Py_ssize_t n) noexcept nogil:
    cdef Shared* s = <Shared*>context
    _run_part(s.walk, s.loop, s.start, NULL, first * s.parts, n * s.parts, 0, s.walk.dims[0])


cdef void _run_innermost(void* context, Py_ssize_t first, Py_ssize_t n) noexcept nogil:
    cdef Shared* s = <Shared*>context
    _run_part(s.walk, s.loop, s.start, NULL, 0, s.parts, first, n)


cdef void run_reduction(Walk* walk, Loop* loop, char** start) noexcept nogil:
    cdef Shared s
    cdef int d, last = walk.ndim - 1, result = walk.count - 1
    s.walk = walk
    s.loop = loop
    s.start = start
    s.parts = 1                     # rows per index of the outermost dimension, or all rows
    for d in range(1, last):
        s.parts *= walk.dims[d]
    if loop.piece != 0 and last > 0 and walk.strides[result][last] != 0:
        share(_run_outermost, &s, walk.dims[last], max(1, loop.piece // (s.parts * walk.dims[0])))
    elif loop.piece != 0 and walk.strides[result][0] != 0 and walk.dims[0] >= WIDE:
        if last > 0:
            s.parts *= walk.dims[last]
        share(_run_innermost, &s, walk.dims[0], max(WIDE // 2, loop.piece // s.parts))
    else:
        run(walk, loop, start)
