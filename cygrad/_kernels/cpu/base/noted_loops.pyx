"""Notes the loops of ufuncs on the tape (Note [The tape] in tape/tape.pyx)."""

cimport numpy as cnp
from libc.string cimport memcpy, memset

from cygrad._kernels.cpu.base.arrays cimport RELEASE_ABOVE, Operand
from cygrad._kernels.cpu.base.nditer cimport Loop, Walk, extent_of_walk, run, run_row, run_shared
from cygrad._kernels.platform.thread_pool cimport share
from cygrad._kernels.tape.tape cimport ITEMWISE, READS, SCATTERS, WRITES, Word, note, note_loop, refuse, word

cdef enum:
    SHORT_ROW = 16              # elements: calls for shorter ones would take longer than one walk


cdef bint can_note(Loop* loop) noexcept:
    """Whether a loop can run again without Python, from a copy of `loop`."""
    if loop.piece == 0:
        refuse("a loop may raise an error")
        return False
    return True


cdef inline void keep_number(char** place, char* number, Number* kept, cnp.npy_intp itemsize) noexcept:
    """Let an operand that is a Python number stand in the noted context itself."""
    if place[0] == number:
        memcpy(kept, number, itemsize)
        place[0] = <char*>kept


# -- one row

cdef struct FlatCall:           # dense arrays and single numbers
    Loop loop
    int count                   # of operands
    cnp.npy_intp n
    char* data[3]
    cnp.npy_intp[3] steps
    Number number               # an operand that is a Python number


cdef void replay_flat(void* context) noexcept nogil:
    cdef FlatCall* call = <FlatCall*>context
    if call.n > RELEASE_ABOVE:
        share(replay_part, call, call.n, call.loop.piece)
    else:
        replay_part(call, 0, call.n)


cdef void replay_part(void* context, Py_ssize_t first, Py_ssize_t n) noexcept nogil:
    cdef FlatCall* call = <FlatCall*>context
    run_row(&call.loop, call.count, call.data, call.steps, first, n)


cdef void note_flat(Loop* loop, str kind, int nin, cnp.npy_intp n, char** data, cnp.npy_intp* steps, char* number) noexcept:
    cdef FlatCall call
    cdef Word[3] words
    cdef cnp.npy_intp itemsize = max(steps[0], steps[nin - 1])
    cdef int k
    if n == 0 or not can_note(loop):
        return
    memset(&call, 0, sizeof(call))
    call.loop = loop[0]
    call.count = nin + 1
    call.n = n
    for k in range(nin + 1):
        call.data[k] = data[k]
        call.steps[k] = steps[k]
        words[k] = word(&call, &call.data[k], (WRITES if k == nin else READS) | (ITEMWISE if steps[k] else 0), 0,
                        n * steps[k] if steps[k] else itemsize)
        if k < nin and steps[k] == 0:
            keep_number(&call.data[k], number, &call.number, itemsize)
    note_loop(replay_flat, replay_part, kind, &call, sizeof(call), words, nin + 1, n)


cdef void note_row(Walk* walk, Loop* loop, str kind, Operand* inputs, char** data, cnp.npy_intp n, char* number) noexcept:
    """Note a walk along one row of dense arrays and single numbers."""
    cdef FlatCall call
    cdef Word[3] words
    cdef int k, last = walk.count - 1
    cdef cnp.npy_intp step
    memset(&call, 0, sizeof(call))
    call.loop = loop[0]
    call.count = walk.count
    call.n = n
    for k in range(walk.count):
        step = walk.strides[k][0]
        call.data[k] = data[k]
        call.steps[k] = step
        words[k] = word(&call, &call.data[k], (WRITES if k == last else READS) | (ITEMWISE if step else 0), 0,
                        n * step if step else inputs[k].itemsize)
        if k < last and step == 0:
            keep_number(&call.data[k], number, &call.number, inputs[k].itemsize)
    note_loop(replay_flat, replay_part, kind, &call, sizeof(call), words, walk.count, n)


# -- many rows

cdef struct RowsCall:           # dense arrays, and others whose row or column is there for all
    Loop loop
    int count
    cnp.npy_intp length         # of a row
    cnp.npy_intp rows
    char* data[3]
    cnp.npy_intp[3] steps       # along a row
    cnp.npy_intp[3] strides     # from row to row
    Number number


cdef void replay_rows(void* context) noexcept nogil:
    cdef RowsCall* call = <RowsCall*>context
    if call.length * call.rows > RELEASE_ABOVE:
        share(replay_part_of_rows, call, call.length * call.rows, call.loop.piece)
    else:
        replay_part_of_rows(call, 0, call.length * call.rows)


cdef void replay_part_of_rows(void* context, Py_ssize_t first, Py_ssize_t n) noexcept nogil:
    cdef RowsCall* call = <RowsCall*>context
    cdef char* data[3]
    cdef cnp.npy_intp row = first // call.length, at = first % call.length, count
    cdef int k
    while n > 0:
        count = min(n, call.length - at)
        for k in range(call.count):
            data[k] = call.data[k] + row * call.strides[k]
        run_row(&call.loop, call.count, data, call.steps, at, count)
        n -= count
        row += 1
        at = 0


cdef bint has_rows(Walk* walk, Operand* inputs, Py_ssize_t itemsize) noexcept:
    """Whether a walk goes along the rows of a dense output, with inputs that are dense too, or one row or column of such."""
    cdef cnp.npy_intp n, step, stride
    cdef int k, last = walk.count - 1
    if walk.ndim != 2 or walk.dims[0] < SHORT_ROW:
        return False
    for k in range(walk.count):
        n = inputs[k].itemsize if k < last else itemsize
        step, stride = walk.strides[k][0], walk.strides[k][1]
        if step == n and stride == n * walk.dims[0]:
            continue
        if k == last or not (step == n and stride == 0 or step == 0 and (stride == n or stride == 0)):
            return False
    return True


cdef void note_rows(Walk* walk, Loop* loop, str kind, Operand* inputs, char** data, char* number) noexcept:
    cdef RowsCall call
    cdef Word[3] words
    cdef int k, last = walk.count - 1
    cdef cnp.npy_intp size
    cdef bint is_dense
    memset(&call, 0, sizeof(call))
    call.loop = loop[0]
    call.count = walk.count
    call.length, call.rows = walk.dims[0], walk.dims[1]
    for k in range(walk.count):
        call.data[k] = data[k]
        call.steps[k], call.strides[k] = walk.strides[k][0], walk.strides[k][1]
        is_dense = call.steps[k] != 0 and call.strides[k] != 0
        size = call.steps[k] * call.length if call.steps[k] else inputs[k].itemsize
        if call.strides[k]:
            size = call.strides[k] * call.rows
        words[k] = word(&call, &call.data[k], (WRITES if k == last else READS) | (ITEMWISE if is_dense else 0), 0, size)
        if k < last and call.steps[k] == 0 and call.strides[k] == 0:
            keep_number(&call.data[k], number, &call.number, inputs[k].itemsize)
    note_loop(replay_rows, replay_part_of_rows, kind, &call, sizeof(call), words, walk.count, call.length * call.rows)


# -- anything else

cdef struct WalkCall:           # the end of a call of `_run_general`
    Walk walk
    Loop loop
    char* data[3]
    cnp.npy_intp size
    Number number


cdef void replay_walk(void* context) noexcept nogil:
    cdef WalkCall* call = <WalkCall*>context
    if call.size > RELEASE_ABOVE:
        run_shared(&call.walk, &call.loop, call.data)
    else:
        run(&call.walk, &call.loop, call.data)


cdef void note_walk(Walk* walk, Loop* loop, str kind, Operand* inputs, char** data, cnp.npy_intp size, Py_ssize_t itemsize,
                    char* number) noexcept:
    cdef WalkCall call
    cdef Word[3] words
    cdef Py_ssize_t low, high, n
    cdef int k, d, last = walk.count - 1
    if not can_note(loop):
        return
    if walk.ndim == 1:
        call.size = 0               # one row, perhaps of expanded numbers: elementwise
        for k in range(walk.count):
            n = inputs[k].itemsize if k < last else itemsize
            call.size += walk.strides[k][0] != n and (k == last or walk.strides[k][0] != 0)
        if call.size == 0:
            note_row(walk, loop, kind, inputs, data, size, number)
            return
    if has_rows(walk, inputs, itemsize):
        note_rows(walk, loop, kind, inputs, data, number)
        return
    memset(&call, 0, sizeof(call))
    call.walk.count = walk.count
    call.walk.ndim = walk.ndim
    for d in range(walk.ndim):
        call.walk.dims[d] = walk.dims[d]
        for k in range(walk.count):
            call.walk.strides[k][d] = walk.strides[k][d]
    call.loop = loop[0]
    call.size = size
    for k in range(walk.count):
        call.data[k] = data[k]
        extent_of_walk(walk, k, inputs[k].itemsize if k < last else itemsize, &low, &high)
        words[k] = word(&call, &call.data[k], READS if k < last else WRITES if high - low == size * itemsize else SCATTERS,
                        low, high)
        if k < last:
            keep_number(&call.data[k], number, &call.number, inputs[k].itemsize)
    note(replay_walk, "loop", &call, sizeof(call), words, walk.count)
